// `fill DEVICE`: runs one kernel on one of the GPUs.

#include "check.h"

__global__ void fill(int *values, int value, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    values[i] = value;
  }
}

int main(int, char **arguments) {
  constexpr int COUNT = 32;
  CHECK(hipSetDevice(std::atoi(arguments[1])));
  int values[COUNT] = {};
  int *device = on_device(values, COUNT);
  fill<<<1, COUNT>>>(device, 99, COUNT);
  to_host(values, device, COUNT);
  for (int value : values) {
    if (value != 99) {
      return 1;
    }
  }
  return 0;
}
