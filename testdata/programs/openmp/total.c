#include "regions.h"

long total(const int *values) {
  long sum = 0;
#pragma omp target map(to: values[0:ELEMENTS]) map(tofrom: sum)
  { // once
    for (int i = 1; i < ELEMENTS; i++) { // once
      sum += steps(values[i]);
    }
    if (sum < 0) { // once
      sum = 0; // never
    } // never
  } // once
  return sum;
}
