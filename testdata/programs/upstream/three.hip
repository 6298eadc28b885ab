// Three kernels of one translation unit.

#include "check.h"

__global__ void fill(int *values, int value) { values[threadIdx.x] = value; }

__global__ void scale(int *values, int factor) { values[threadIdx.x] *= factor; }

__global__ void negate(int *values, int count) {
  int i = threadIdx.x;
  if (i < count) {
    values[i] = -values[i];
  }
}

int main() {
  constexpr int COUNT = 16;
  int values[COUNT] = {};
  int *device = on_device(values, COUNT);
  fill<<<1, COUNT>>>(device, 5);
  scale<<<1, COUNT>>>(device, 3);
  negate<<<1, COUNT>>>(device, COUNT);
  to_host(values, device, COUNT);
  for (int value : values) {
    if (value != -15) {
      return 1;
    }
  }
  return 0;
}
