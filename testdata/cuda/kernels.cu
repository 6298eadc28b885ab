// Kernels whose counts tests plant or compare.
__device__ __attribute__((noinline)) int bin_of(float value) {
  int bin = (int)value;
  if (bin < 0) {
    return 0;
  }
  return bin < 10 ? bin : 9;
}

template <class T> __global__ void scale(T *values, int count, T factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    values[i] *= factor;
  }
}

__global__ void histogram(const float *values, int count, unsigned *bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    for (int k = 0; k < i % 3; k++)
      atomicAdd(&bins[bin_of(values[i])], 1u);
  }
}

__global__ void never(int *value) { *value = 1; }

template __global__ void scale<float>(float *, int, float);
