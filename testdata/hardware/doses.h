// Kernels that programs of the pack launch: see README.md. The host compiles them too, for the counts that are expected.
#pragma once

#ifndef __CUDACC__
#include "on_host.h"
#endif

// A launch has so many threads, and values.
#define BLOCKS 4u
#define THREADS 256u
#define VALUES 1000u
#define BINS 10u

__device__ __attribute__((noinline)) unsigned bin_of(float value) {
  if (value < 0)
    return 0;
  if (value >= BINS)
    return BINS - 1;
  return (unsigned)value;
}

extern "C" __global__ void histogram(const float *values, unsigned count, unsigned *bins) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  for (unsigned k = 0; k < i % 3; ++k)
    atomicAdd(&bins[bin_of(values[i])], 1u);
}

extern "C" __global__ void collatz(unsigned *steps, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    unsigned long long number = i + 1;
    unsigned taken = 0;
    while (number != 1) {
      if (number % 2 == 0) {
        number /= 2;
      } else {
        number = 3 * number + 1;
      }
      ++taken;
    }
    steps[i] = taken;
  }
}

extern "C" __global__ void never(unsigned *values) {
  if (threadIdx.x == 0)
    values[0] = 1;
}
