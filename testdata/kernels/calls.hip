// Calls that are not inlined (one function calling another, arguments and results in registers,
// the stack) and a switch over lanes that take different cases.
#include "dev.h"

__device__ __noinline__ int classify(int value) {
  switch (value % 7) {
  case 0:
    return 11;
  case 1:
    return value * 2;
  case 2:
    return value - 5;
  case 3:
    if (value > 100)
      return 1;
    return 2;
  case 4:
    return value ^ 0x55;
  case 5:
    return -value;
  default: // negative values
    return 0;
  }
}

__device__ __noinline__ int sum_of_classes(int first, int count) {
  int sum = 0;
  for (int j = 0; j < count; ++j)
    sum += classify(first + j);
  return sum;
}

__device__ __noinline__ int factorial(int n) {
  if (n <= 1)
    return 1;
  return n * factorial(n - 1);
}

__global__ void calls(const int *in, int *out, int count, u32 n) {
  u32 i = global_x();
  if (i < n)
    out[i] = sum_of_classes(in[i], count);
}
REGISTER_KERNEL(calls);

// Recursion to a depth that differs per lane.
__global__ void recursion(int *out, u32 n) {
  u32 i = global_x();
  if (i < n)
    out[i] = factorial(static_cast<int>(i % 6));
}
REGISTER_KERNEL(recursion);
