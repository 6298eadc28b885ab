// Control flow that front ends count in more places than statements: short-circuit operators,
// conditional expressions, fall-through, do-while, continue, nested loops left by a jump.
#include "dev.h"

__global__ void short_circuit(const int *a, const int *b, int *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  int x = a[i];
  int y = b[i];
  int result = 0;
  if ((x > 0 && y > 0) || (x < -10 && !(y == 3)))
    result = x > y ? x : y;
  else if (x == 0 || y == 0 || x + y == 7)
    result = x == 0 ? (y == 0 ? 1000 : y) : -x;
  out[i] = result;
}
REGISTER_KERNEL(short_circuit);

__global__ void fall_through(const int *in, int *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  int steps = 0;
  switch (in[i] & 15) {
  case 9:
    steps += 5;
    [[fallthrough]];
  case 4:
    steps += 7;
    [[fallthrough]];
  case 1:
    ++steps;
    break;
  case 15:
    return;
  case 12:
    steps = -1;
  }
  out[i] = steps;
}
REGISTER_KERNEL(fall_through);

// The first pair of the row whose sum is `wanted`, as row position times 100 plus column position.
__global__ void search(const int *in, int *out, int wanted, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  const int *row = in + i * 8;
  int found = -1;
  for (int p = 0; p < 8; ++p) {
    if (row[p] < 0)
      continue;
    for (int q = p + 1; q < 8; ++q) {
      if (row[p] + row[q] == wanted) {
        found = p * 100 + q;
        goto done;
      }
    }
  }
done:
  out[i] = found;
}
REGISTER_KERNEL(search);

__global__ void digits(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 value = in[i];
  u32 sum = 0;
  do {
    u32 digit = value % 10;
    value /= 10;
    if (digit == 7)
      break;
    sum += digit;
  } while (value != 0);
  out[i] = sum;
}
REGISTER_KERNEL(digits);
