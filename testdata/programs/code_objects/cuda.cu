// Kernels for NVIDIA GPUs, without CUDA's headers: with functions that are not inlined, shared, local and constant
// memory, bounds for the launch, and registers that are spilled if there are few.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

__constant__ int table[20];

__device__ __attribute__((noinline)) int pick(int a, int b) {
  if (a > 3 && (b < 2 || a < 9))
    return a * b;
  return b;
}

inline __device__ __attribute__((noinline)) int clamped(int a) { return a > 2 ? a : 3; }

__global__ void plain(int *p) { *p = clamped(*p); }

__global__ __attribute__((launch_bounds(128))) void memory(float *p, int n) {
  __shared__ float shared[100];
  int local[40];
  for (int i = 0; i < 40; ++i)
    local[i] = n * i;
  shared[n] = p[n];
  p[0] = shared[n + 1] + local[n & 31] + table[n & 15] + pick(n, local[n & 7]);
}

template <int Count> __global__ void spilling(float *p, int n) {
  float values[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i)
    values[i] = p[i * n];
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int i = 0; i < Count; ++i)
      values[i] = values[i] * values[(i + 7) % Count] + j;
  }
#pragma unroll
  for (int i = 0; i < Count; ++i)
    p[i * n] = values[i];
}

template __global__ void spilling<60>(float *, int);
