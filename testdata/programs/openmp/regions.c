// The regions of regions.cpp that C can have, one of them in another file.
#include "regions.h"
#include <stdio.h>

int main(void) {
  int values[ELEMENTS], odd[ELEMENTS];
#pragma omp target teams distribute parallel for map(from: values)
  for (int i = 0; i < ELEMENTS; i++) // loop
    values[i] = clamped(i, 150); // loop
#pragma omp target parallel for map(to: values) map(from: odd)
  for (int i = 0; i < ELEMENTS; i++) // loop
    odd[i] = is_odd(values[i]); // loop
  printf("%d %d %ld\n", values[199], odd[99], total(values));
}
