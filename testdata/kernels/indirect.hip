// Functions that are called by their address: lanes of a wave call different ones.
#include "dev.h"

using Function = int (*)(int);

__device__ __noinline__ int doubled(int value) { return value > 50 ? value : value * 2; }

__device__ __noinline__ int halved(int value) {
  int turns = 0;
  while (value > 1) {
    value /= 2;
    ++turns;
  }
  return turns;
}

__device__ __noinline__ int negated(int value) {
  if (value == 0)
    return 7;
  return -value;
}

__device__ __noinline__ int apply(Function function, int value, int times) {
  for (int turn = 0; turn < times; ++turn)
    value = function(value);
  return value;
}

__global__ void indirect(const int *in, int *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  Function functions[] = {doubled, halved, negated};
  out[i] = apply(functions[i % 3], in[i], static_cast<int>(i % 4));
}
REGISTER_KERNEL(indirect);
