// A device function that the kernel calls; both sides of its branch run.

#include "check.h"

__device__ int magnitude(int value) { return value < 0 ? -value : value; }

__global__ void magnitudes(int *values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    values[i] = magnitude(values[i]);
  }
}

int main() {
  constexpr int COUNT = 16;
  int values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = i % 2 == 0 ? i : -i;
  }
  int *device = on_device(values, COUNT);
  magnitudes<<<1, COUNT>>>(device, COUNT);
  to_host(values, device, COUNT);
  for (int i = 0; i < COUNT; i++) {
    if (values[i] != i) {
      return 1;
    }
  }
  return 0;
}
