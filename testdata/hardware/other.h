// A kernel of another module. In a program with -fgpu-rdc, its function is in another unit.
#pragma once

#ifndef __CUDACC__
#include "on_host.h"
#endif

#ifdef WEIGHT_ELSEWHERE
__device__ unsigned weight_of(unsigned number);
#else
__device__ unsigned weight_of(unsigned number) {
  switch (number % 4) {
  case 0:
    return 1;
  case 1:
    return number > 100 ? 2 : 3;
  default:
    return 4;
  }
}
#endif

#ifndef ONLY_WEIGHT
extern "C" __global__ void weigh(unsigned *weights, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && i % 5 != 0)
    weights[i] = weight_of(i);
}
#endif
