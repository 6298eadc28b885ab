// Functions that are not inlined: called in loops, by each other, by their address too, with many counters, and from
// a function with many.
#include "dev.h"

struct Pair {
  u32 sum;
  u32 turns;
};

// Returns nothing, and has a loop.
__device__ __noinline__ void halve(u32 *value) {
  while (*value > 9)
    *value /= 2;
}

// Returns a structure, and calls another in a loop.
__device__ __noinline__ Pair digits(u32 value, u32 base) {
  Pair result = {0, 0};
  while (value != 0) {
    u32 digit = value % base;
    halve(&digit);
    if (digit & 1)
      result.sum += digit;
    value /= base;
    ++result.turns;
  }
  return result;
}

struct Five {
  u32 of[5];
};

// Its result is in memory.
__device__ __noinline__ Five five(u32 value) {
  Five result = {{value, 2, 3, 4, 5}};
  for (u32 i = 0; i < value % 4; ++i)
    result.of[i + 1] += value;
  return result;
}

// Recursive: it is called by itself, and calls a function that is not.
__device__ __noinline__ u32 descend(u32 value, u32 depth) {
  if (depth == 0)
    return digits(value, 10).sum;
  if (value % 3 == 0)
    return descend(value / 3, depth - 1) + 1;
  return descend(value + depth, depth - 1);
}

__device__ __noinline__ bool is_odd(u32 value);

__device__ __noinline__ bool is_even(u32 value) {
  if (value == 0)
    return true;
  return is_odd(value - 1);
}

__device__ __noinline__ bool is_odd(u32 value) {
  if (value == 0)
    return false;
  return is_even(value - 1);
}

// Called by its name and by its address.
__device__ __noinline__ u32 both(u32 value) {
  if (value > 40)
    return value - 40;
  return value + 3;
}

// More counts than a function returns.
__device__ __noinline__ u32 loops(u32 value) {
  u32 sum = 0;
  for (u32 i = 0; i < (value & 1); ++i)
    sum += i;
  for (u32 i = 0; i < (value & 2); ++i)
    sum += 2 * i;
  for (u32 i = 0; i < (value & 4); ++i)
    sum += 3 * i + (value & 1);
  for (u32 i = 0; i < (value & 8); ++i)
    if (i & 1)
      sum += value;
  for (u32 i = 0; i < (value & 16); ++i)
    sum ^= value + i;
  return sum;
}

// Has no registers for the counts of what it calls.
__device__ __noinline__ u32 classes(u32 value) {
  u32 sum = 0;
  for (u32 turn = 0; turn < 5; ++turn) {
    value = value * 5 + turn;
    switch (value % 19) {
    case 0: sum += 3; break;
    case 1: sum += value; break;
    case 2: sum ^= value; break;
    case 3: sum -= 7; break;
    case 4: sum = sum * 3 + 1; break;
    case 5: sum |= 16; break;
    case 6: sum &= ~2u; break;
    case 7: sum += value >> 3; break;
    case 8: sum = ~sum; break;
    case 9: sum += turn; break;
    case 10: sum -= value; break;
    case 11: sum ^= turn + 5; break;
    case 12: sum += both(value & 63); break;
    case 13: sum = sum / 3; break;
    case 14: sum += sum << 4; break;
    case 15: sum ^= sum >> 7; break;
    case 16: sum -= turn * 9; break;
    case 17: sum += 1000; break;
    default: sum += both(sum & 127); break;
    }
  }
  return sum;
}

__global__ void callees(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 value = in[i];
  u32 sum = 0;
  u32 (*function)(u32) = value & 64 ? both : loops;
  for (u32 turn = 0; turn < 6; ++turn) {
    if (value & (1u << turn))
      sum += digits(value + turn, turn + 2).turns;
    else
      sum = both(sum);
    sum += five(value ^ turn).of[turn % 5];
    if (turn > 3)
      sum += function(value + turn);
  }
  if (is_even(value & 7))
    sum += classes(value);
  else
    sum += loops(value);
  out[i] = sum + descend(value, i % 5);
}
REGISTER_KERNEL(callees);

// Some lanes call, and the last wave is not full.
__global__ void few(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i < n && (in[i] & 3) == 1) {
    for (u32 turn = 0; turn < in[i] % 11; ++turn)
      out[i] += digits(in[i] ^ turn, 7).sum;
  }
}
REGISTER_KERNEL(few);
