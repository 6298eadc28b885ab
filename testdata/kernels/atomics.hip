// Atomics in LDS and in global memory, 32 and 64 bits wide, with and without the old value used.
// Nothing here depends on the order in which lanes, waves and workgroups arrive.
#include "dev.h"

__global__ void histogram(const u32 *in, u32 *bins, u64 *total, int *largest, u32 n) {
  __shared__ u32 local[16];
  u32 t = thread_x();
  if (t < 16)
    local[t] = 0;
  barrier();
  for (u32 i = global_x(); i < n; i += block_size_x() * 4) {
    u32 bin = in[i] & 15;
    __scoped_atomic_fetch_add(&local[bin], 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
    if (in[i] > 50)
      __scoped_atomic_fetch_max(largest, static_cast<int>(in[i]), __ATOMIC_RELAXED,
                                __MEMORY_SCOPE_DEVICE);
  }
  barrier();
  if (t < 16 && local[t] != 0) {
    __scoped_atomic_fetch_add(&bins[t], local[t], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    __scoped_atomic_fetch_add(total, static_cast<u64>(local[t]), __ATOMIC_RELAXED,
                              __MEMORY_SCOPE_DEVICE);
  }
}
REGISTER_KERNEL(histogram);

// Each work-item has its own word: the first exchange misses, the second hits.
__global__ void compare_exchange(u32 *words, u32 *attempts, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 expected = ~0u;
  u32 tries = 1;
  while (!__scoped_atomic_compare_exchange_n(&words[i], &expected, expected * 3u + i, 0,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             __MEMORY_SCOPE_DEVICE))
    ++tries;
  attempts[i] = tries;
}
REGISTER_KERNEL(compare_exchange);

__global__ void exchange(u32 *words, u64 *wide, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 old = __scoped_atomic_exchange_n(&words[i], i, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  u64 wide_old = __scoped_atomic_exchange_n(&wide[i], static_cast<u64>(old) << 32 | i,
                                            __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  if (wide_old & 1)
    __scoped_atomic_fetch_sub(&words[i], 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
REGISTER_KERNEL(exchange);

// masks: [0] and, [1] or, [2] xor, [3] smallest, [4] largest.
__global__ void masks(const u32 *in, u32 *result, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 value = in[i];
  __scoped_atomic_fetch_and(&result[0], value | 0xff00ff00u, __ATOMIC_RELAXED,
                            __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_or(&result[1], value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_xor(&result[2], value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_min(&result[3], value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_max(&result[4], value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
REGISTER_KERNEL(masks);
