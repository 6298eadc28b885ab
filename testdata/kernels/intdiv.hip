// Integer division and remainder, signed and unsigned, 32 and 64 bits wide: the compiler expands
// each into reciprocals, multiplications and corrections. Zero divisors take their own branch.
#include "dev.h"

__global__ void divide32(const int *a, const int *b, int *quotients, u32 *remainders, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  int x = a[i];
  int y = b[i];
  if (y == 0) {
    quotients[i] = -1;
    remainders[i] = ~0u;
    return;
  }
  int quotient = x / y;
  if (quotient * y != x)
    quotient += x % y;
  quotients[i] = quotient;
  u32 ux = static_cast<u32>(x);
  u32 uy = static_cast<u32>(y);
  remainders[i] = ux % uy + ux / uy;
}
REGISTER_KERNEL(divide32);

__global__ void divide64(const i64 *a, const i64 *b, i64 *quotients, u64 *remainders, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  i64 x = a[i];
  i64 y = b[i];
  if (y == 0 || y == -1) {
    quotients[i] = 0;
    remainders[i] = ~0ull;
    return;
  }
  quotients[i] = x < y ? x / y : x % y;
  u64 ux = static_cast<u64>(x);
  u64 uy = static_cast<u64>(y);
  remainders[i] = ux / uy + (ux % uy << 1);
}
REGISTER_KERNEL(divide64);
