// Runs the kernel twice, and another Rust library in between.
#include "tally.h"
#include <cstdio>

extern "C" unsigned long long sum_below(unsigned long long count);

int main() {
  int error = run_tally(1);
  std::printf("sum: %llu\n", sum_below(5));
  error = error ? error : run_tally(1);
  std::printf("tally: %d\n", error);
  return error != 0;
}
