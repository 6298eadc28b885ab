// A histogram: a grid-stride loop, atomic additions in LDS, and from there to memory.
#include "dev.h"

constexpr u32 BINS = 64;

__global__ void bins(const u32 *in, u32 *out, u32 count, u32 stride) {
  __shared__ u32 local[BINS];
  u32 t = thread_x();
  if (t < BINS)
    local[t] = 0;
  barrier();
  for (u32 i = global_x(); i < count; i += stride) {
    u32 value = in[i];
    if (value < 1u << 16)
      __atomic_fetch_add(&local[value >> 10], 1u, __ATOMIC_RELAXED);
  }
  barrier();
  if (t < BINS && local[t] != 0)
    __atomic_fetch_add(&out[t], local[t], __ATOMIC_RELAXED);
}
REGISTER_KERNEL(bins);
