// A program whose target region does not run.
#include <cstdio>

int main(int argc, char **) {
  if (argc > 1) {
#pragma omp target map(tofrom: argc)
    { // never
      argc *= 2; // never
    } // never
  }
  std::printf("%d\n", argc);
}
