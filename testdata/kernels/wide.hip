// 64-bit integers on a 32-bit machine: multiplication, high halves, shifts and rotations by an
// amount known only at run time, carries, counting bits.
#include "dev.h"

__global__ void multiply(const u64 *a, const u64 *b, u64 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u64 x = a[i];
  u64 y = b[i];
  u64 product = x * y;
  u32 amount = static_cast<u32>(y & 63);
  if (product >> 63)
    product = ~product + 1;
  u64 rotated = x << amount | x >> (-amount & 63);
  i64 arithmetic = static_cast<i64>(y) >> amount;
  out[i] = product ^ rotated ^ static_cast<u64>(arithmetic);
}
REGISTER_KERNEL(multiply);

__global__ void high_half(const u64 *a, const u64 *b, u64 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  unsigned __int128 product = static_cast<unsigned __int128>(a[i]) * b[i];
  out[i] = static_cast<u64>(product >> 64) - static_cast<u64>(product);
}
REGISTER_KERNEL(high_half);

__global__ void count_bits(const u64 *a, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u64 x = a[i];
  u32 bits = static_cast<u32>(__builtin_popcountll(x));
  if (x == 0) {
    out[i] = 64;
    return;
  }
  u32 leading = static_cast<u32>(__builtin_clzll(x));
  u32 trailing = static_cast<u32>(__builtin_ctzll(x));
  out[i] = bits << 16 | leading << 8 | trailing;
}
REGISTER_KERNEL(count_bits);
