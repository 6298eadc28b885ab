// Another translation unit with the functions of the header.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

#include "regions.h"

static __device__ __attribute__((noinline)) int hidden(int value) { return value > 1 ? 3 : 4; }

extern "C" __global__ void other(int *value) { *value = unused(*value) + hidden(*value); }
