// Private arrays indexed by values known only at run time: they live in scratch memory (or, at
// higher optimisation levels, in indexed registers), and so do spills and a callee's stack frame.
#include "dev.h"

__global__ void insertion_sort(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 values[12];
  for (u32 k = 0; k < 12; ++k)
    values[k] = in[(i * 7 + k * 5) % n];
  for (u32 k = 1; k < 12; ++k) {
    u32 value = values[k];
    u32 at = k;
    while (at > 0 && values[at - 1] > value) {
      values[at] = values[at - 1];
      --at;
    }
    values[at] = value;
  }
  out[i] = values[i % 12] * 31u + values[6];
}
REGISTER_KERNEL(insertion_sort);

__device__ __noinline__ u32 checksum(const u8 *bytes, u32 count) {
  u32 sum = 1;
  for (u32 k = 0; k < count; ++k) {
    if (bytes[k] & 0x80)
      sum = sum * 33u ^ bytes[k];
    else
      sum += bytes[k];
  }
  return sum;
}

// A pointer to private memory handed to a function: a flat access into the private aperture.
__global__ void private_bytes(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u8 bytes[16];
  u32 word = in[i];
  for (u32 k = 0; k < 16; ++k)
    bytes[k] = static_cast<u8>(word >> (k & 3) * 8 ^ k * 17);
  out[i] = checksum(bytes, 1 + (word & 15));
}
REGISTER_KERNEL(private_bytes);
