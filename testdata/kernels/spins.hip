// More loops without a bound than bring their counts to copies, and more blocks in them than registers count.
#include "dev.h"

template <u32 N> __device__ u32 spin(u32 value) {
  u32 hits = 0;
  while (value != 1) {
    if (value & 1)
      value = 3 * value + 1;
    else
      value >>= 1;
    if (value % (N + 2) == 0)
      hits += N;
    if ((value & 127) == N)
      hits ^= value;
  }
  return hits;
}

template <u32 N> __device__ u32 spin_all(u32 value) {
  u32 hits = spin<N>(value + N);
  if constexpr (N > 0)
    hits = 31 * hits + spin_all<N - 1>(value);
  return hits;
}

__global__ void spins(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i < n)
    out[i] = spin_all<39>(in[i]);
}
REGISTER_KERNEL(spins);
