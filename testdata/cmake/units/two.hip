#include <hip/hip_runtime.h>

__device__ int half_of(int value);

__global__ void two(int *values) {
  int value = values[threadIdx.x];
  if (value < 0) {
    value = 0; // never
  }
  values[threadIdx.x] = half_of(value);
}

void run_two(int *values, int count) {
  two<<<1, count>>>(values);
}
