// Functions of target regions, in C and C++. Compiled without OpenMP they run on the host, and count there
// as often.
#ifndef REGIONS_H
#define REGIONS_H

enum { ELEMENTS = 200 };

#ifndef __cplusplus
long total(const int *values);
#endif

#pragma omp begin declare target

static inline int clamped(int value, int limit) {
  if (value > limit) {
    return limit;
  }
  if (value < 0) {
    return 0; // never
  }
  return value;
}

static inline int steps(int value) {
  int count = 0;
  while (value > 1) {
    value = value % 2 ? 3 * value + 1 : value / 2;
    count++;
  }
  return count;
}

static inline int is_odd(int value) {
  switch (value % 2) {
  case 0:
    return 0;
  case 1:
    return 1;
  default:
    return -1; // never
  }
}

#pragma omp end declare target
#endif
