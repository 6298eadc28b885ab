// The program of the whole cycle: counted, then compiled again with its counts.

#include "check.h"

__global__ void scale(float *values, float factor, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    values[i] *= factor;
  }
}

int main() {
  constexpr int COUNT = 128;
  float values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = static_cast<float>(i);
  }
  float *device = on_device(values, COUNT);
  scale<<<1, COUNT>>>(device, 2.0F, COUNT);
  to_host(values, device, COUNT);
  for (int i = 0; i < COUNT; i++) {
    if (values[i] != static_cast<float>(2 * i)) {
      return 1;
    }
  }
  return 0;
}
