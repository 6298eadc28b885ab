// Waves that end before their kernel returns: in a branch, in a loop, and in functions that are called.
#include "dev.h"

__global__ void in_branch(const u32 *in, u32 *out, u32 last) {
  u32 value = in[global_x()];
  if (value & 1)
    value += 3;
  if (block_x() > last) {
    if (value & 2)
      ++value;
    out[global_x()] = value;
    end_thread();
  }
  for (u32 turn = 0; turn < (value & 7); ++turn)
    value = value * 5 + turn;
  out[global_x()] = value;
}
REGISTER_KERNEL(in_branch);

__device__ __noinline__ u32 ends_at(u32 block, u32 value) {
  if (value & 4)
    value ^= 0x55;
  if (block_x() == block)
    end_thread();
  return value + 1;
}

__device__ __noinline__ u32 calls_it(u32 block, u32 value) {
  u32 result = ends_at(block, value);
  if (result & 8)
    result += 2;
  return result;
}

// The callers have counts in registers when the thread ends in a function.
__global__ void in_functions(const u32 *in, u32 *out, u32 turns) {
  u32 value = in[global_x()];
  for (u32 turn = 0; turn < turns; ++turn) {
    if (value & 16)
      value += turn;
    value = calls_it(turn * 2, value);
  }
  out[global_x()] = value;
}
REGISTER_KERNEL(in_functions);

// Never returns.
__device__ __noinline__ void finish(u32 *out, u32 value) {
  if (value > 100)
    value = 100;
  out[global_x()] = value;
  end_thread();
}

__global__ void in_loop(const u32 *in, u32 *out) {
  u32 value = in[global_x()];
  u32 turn = 0;
  while (true) {
    if (value & 1)
      ++value;
    if (++turn > block_x())
      finish(out, value);
    value >>= 1;
  }
}
REGISTER_KERNEL(in_loop);
