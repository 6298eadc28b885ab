// A header of two libraries: what one of them does not use is described there as unused.
#pragma once
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define BETWEEN(low, x, high) ((low) <= (x) && (x) < (high))
#define CLAMPED(low, x, high) (BETWEEN(low, x, high) ? (x) : LARGER(low, 0))

inline int halved(int value) {
  if (value % 2 == 0) {
    return value / 2;
  }
  return 0;
}

static inline int used_by_one(int value) { return value > 0 ? value : -value; }

template <class T> T sign(T value) {
  if (value < 0)
    return -1;
  return value > 0;
}

template <int N> int power(int base) {
  if constexpr (N > 2) {
    int part = 1;
    for (int i = 0; i < N; i++) part *= base;
    return part;
  }
  return base * base;
}
