// More counters than lanes and registers, and loops in loops whose turns do not fit 16 bits.
#include "dev.h"

__device__ u32 choose(u32 which, u32 value) {
  switch (which) {
  case 0:
    value += 1;
    break;
  case 1:
    value -= 1;
    break;
  case 2:
    value ^= 14;
    break;
  case 3:
    value *= 3;
    break;
  case 4:
    value += 5;
    break;
  case 5:
    value -= 5;
    break;
  case 6:
    value ^= 42;
    break;
  case 7:
    value *= 7;
    break;
  case 8:
    value += 9;
    break;
  case 9:
    value -= 9;
    break;
  case 10:
    value ^= 70;
    break;
  case 11:
    value *= 11;
    break;
  case 12:
    value += 13;
    break;
  case 13:
    value -= 13;
    break;
  case 14:
    value ^= 98;
    break;
  case 15:
    value *= 15;
    break;
  case 16:
    value += 17;
    break;
  case 17:
    value -= 17;
    break;
  case 18:
    value ^= 126;
    break;
  case 19:
    value *= 19;
    break;
  case 20:
    value += 21;
    break;
  case 21:
    value -= 21;
    break;
  case 22:
    value ^= 154;
    break;
  case 23:
    value *= 23;
    break;
  case 24:
    value += 25;
    break;
  case 25:
    value -= 25;
    break;
  case 26:
    value ^= 182;
    break;
  case 27:
    value *= 27;
    break;
  case 28:
    value += 29;
    break;
  case 29:
    value -= 29;
    break;
  case 30:
    value ^= 210;
    break;
  case 31:
    value *= 31;
    break;
  case 32:
    value += 33;
    break;
  case 33:
    value -= 33;
    break;
  case 34:
    value ^= 238;
    break;
  case 35:
    value *= 35;
    break;
  case 36:
    value += 37;
    break;
  case 37:
    value -= 37;
    break;
  case 38:
    value ^= 266;
    break;
  case 39:
    value *= 39;
    break;
  case 40:
    value += 41;
    break;
  case 41:
    value -= 41;
    break;
  case 42:
    value ^= 294;
    break;
  case 43:
    value *= 43;
    break;
  case 44:
    value += 45;
    break;
  case 45:
    value -= 45;
    break;
  case 46:
    value ^= 322;
    break;
  case 47:
    value *= 47;
    break;
  default:
    value = ~value;
  }
  return value;
}

__global__ void many(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 value = in[i];
  value = choose(value % 50, value);
  for (u32 turn = 0; turn < value % 5; ++turn)
    value = choose((value + turn) % 53, value);
  if (value & 1) {
    value += choose(i % 49, i);
    if (value & 2)
      value += 5;
  }
  out[i] = value;
}
REGISTER_KERNEL(many);

// Without a known bound, and with more than 2^16 turns.
__global__ void endless(const u32 *in, u32 *out) {
  u32 i = global_x();
  u32 state = in[i];
  u32 turns = 0;
  u32 odd = 0;
  while (true) {
    state = state * 1664525 + 1013904223;
    if (state & 1u << 20)
      ++odd;
    if (++turns >= 70000 && (state >> 24) == i)
      break;
  }
  out[i] = odd;
}
REGISTER_KERNEL(endless);

// The inner loop has a bound, the outer one has none.
__global__ void nested(const u32 *in, u32 *out, u32 stop) {
  u32 i = global_x();
  u32 state = in[i];
  u32 sum = 0;
  do {
    for (u32 turn = 0; turn < 9; ++turn)
      if (state >> turn & 1)
        sum += turn;
    state = state * 22695477 + 1;
  } while (state >> 24 != stop);
  out[i] = sum;
}
REGISTER_KERNEL(nested);
