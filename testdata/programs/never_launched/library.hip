// A library with a kernel that is never launched.

#include "kernels.h"

__global__ void halve(float *values) { values[threadIdx.x] /= 2.0F; }

extern "C" void launch_halve() {
  on_values([](float *values) { halve<<<1, COUNT>>>(values); });
}
