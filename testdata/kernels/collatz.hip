// A loop whose trip count differs per lane, with a branch and a break inside: lanes leave one by
// one and the execution mask thins out.
#include "dev.h"

__global__ void collatz(const u32 *in, u32 *out, u32 limit, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 value = in[i];
  u32 steps = 0;
  while (value != 1) {
    if (value & 1)
      value = 3 * value + 1;
    else
      value >>= 1;
    if (++steps > limit)
      break;
  }
  out[i] = steps;
}
REGISTER_KERNEL(collatz);
