// Runs the kernel twice.
#include "tally.h"
#include <cstdio>

int main() {
  int error = run_tally(2);
  std::printf("tally: %d\n", error);
  return error != 0;
}
