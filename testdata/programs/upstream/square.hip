// One kernel and main.

#include "check.h"

__global__ void square(int *out, const int *in, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    out[i] = in[i] * in[i];
  }
}

int main() {
  constexpr int COUNT = 64;
  int in[COUNT];
  int out[COUNT] = {};
  for (int i = 0; i < COUNT; i++) {
    in[i] = i;
  }
  int *device_in = on_device(in, COUNT);
  int *device_out = on_device(out, COUNT);
  square<<<1, COUNT>>>(device_out, device_in, COUNT);
  to_host(out, device_out, COUNT);
  for (int i = 0; i < COUNT; i++) {
    if (out[i] != i * i) {
      return 1;
    }
  }
  return 0;
}
