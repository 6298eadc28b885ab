// Compiled by the tests without HIP's headers: every kind of region that clang writes.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define NOINLINE __attribute__((noinline))

#include "regions.h"

#define CLAMPED(value, low, high) ((value) < (low) ? (low) : (value) > (high) ? (high) : (value))
#define NESTED(value) CLAMPED(value, LOW(value), 100)
#define LOW(value) ((value) & 1 ? -1 : 0)
#define BOTH(a, b) ((a) > 2 && (b) < 7)
#define EITHER(a, b) (BOTH(a, b) || (a) == (b))
#define CHECK(condition) \
  do { \
    if (!(condition)) \
      return -1; \
  } while (0)

static __device__ NOINLINE int hidden(int value) {
  switch (value % 5) {
  case 0:
    return 1;
  case 1:
  case 2:
    value += 3;
    break;
  default:
    return value > 9 ? 4 : 5;
  }
  return value;
}

static __device__ int never(int value) { return value > 0 ? 1 : 2; }

template <class T, int N> __device__ NOINLINE T repeated(T value) {
  if constexpr (N > 2)
    return value * 2;
  for (int i = 0; i < N; ++i) {
    if (value > static_cast<T>(i))
      continue;
    value += 1;
  }
  return value;
}

__device__ NOINLINE int included(int value) {
  int result = 0;
#include "regions.inc"
  return result;
}

__device__ NOINLINE int macros(int value) {
  CHECK(value != 77);
  int sum = NESTED(value);
  if (EITHER(sum, value) && BOTH(value, sum))
    sum += CLAMPED(sum, 1, 5);
  while (true) {
    if (++sum > 10 || (value > 3 && sum > 5 && BOTH(sum, value)))
      break;
  }
  return sum;
}

__device__ inline bool chosen(bool value) { return value; }

__device__ NOINLINE bool decided(int a, int b, int c, int d, int e, int f) {
  bool nested = (a > 1 && (b > 2 || c > 3)) || ((d > 4 || !(e > 5)) && f > 6);
  if (BOTH(a, c))
    return EITHER(b, c);
  bool inner = a > 7 && chosen(b > 8 || c > 9) && d > 1;
  bool constant = a > 0 && true && (b > 0 || 1 > 2);
  return nested && inner ? (constant && c) : (d || (e && f));
}

extern "C" __global__ void kernel(int *values, int number) {
  for (int i = 0; i < number; ++i) {
#ifdef NOT_DEFINED
    values[i] = 0;
#else
    values[i] += hidden(values[i]);
#endif
    do {
      values[i] -= 1;
    } while (values[i] > 5 && i < 3);
    if (values[i] == 4)
      goto end;
    values[i] = repeated<int, 2>(values[i]) + static_cast<int>(repeated<float, 3>(i));
    values[i] += included(i) + macros(i) + shared(i);
    {
      auto lambda = [&](int j) { return j > 2 ? values[j] : 0; };
      values[i] += lambda(i);
    }
    if (decided(i, values[i], 3, 4, number, i ^ 7))
      return;
  end:;
  }
}
