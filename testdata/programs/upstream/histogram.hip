// Work-items that take three ways.

#include "check.h"

__device__ int bin(int value) {
  if (value > 100) {
    return 2;
  }
  if (value > 0) {
    return 1;
  }
  return 0;
}

__global__ void histogram(const int *values, int *bins, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    atomicAdd(&bins[bin(values[i])], 1);
  }
}

int main() {
  constexpr int COUNT = 256;
  int values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = i % 3 == 0 ? -1 : i % 3 == 1 ? 50 : 200;
  }
  int bins[3] = {};
  int *device_values = on_device(values, COUNT);
  int *device_bins = on_device(bins, 3);
  histogram<<<1, COUNT>>>(device_values, device_bins, COUNT);
  to_host(bins, device_bins, 3);
  return bins[0] == 86 && bins[1] == 85 && bins[2] == 85 ? 0 : 1;
}
