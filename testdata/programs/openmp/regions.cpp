// Three target regions that run, and one that does not. A comment marks the lines that never run, and `once`
// the lines that run once on the host, but in each thread of a kernel as far as clang counts.
#include "regions.h"
#include <cstdio>

template <typename T> static void scale(T *values, T factor) {
#pragma omp target map(tofrom: values[0:ELEMENTS])
  { // never
    for (int i = 0; i < ELEMENTS; i++) { // never
      values[i] *= factor; // never
    } // never
  } // never
}

int main(int argc, char **) {
  int values[ELEMENTS], odd[ELEMENTS];
#pragma omp target teams distribute parallel for map(from: values)
  for (int i = 0; i < ELEMENTS; i++) // loop
    values[i] = clamped(i, 150); // loop
#pragma omp target parallel for map(to: values) map(from: odd)
  for (int i = 0; i < ELEMENTS; i++) // loop
    odd[i] = is_odd(values[i]); // loop
  long sum = 0;
#pragma omp target map(to: values) map(tofrom: sum)
  { // once
    for (int i = 1; i < ELEMENTS; i++) { // once
      sum += steps(values[i]);
    }
    if (sum < 0) { // once
      sum = 0; // never
    } // never
  } // once
  if (argc > 1)
    scale(values, argc);
  std::printf("%d %d %ld\n", values[199], odd[99], sum);
}
