// Runs the kernel twice and shuts HSA down below HIP. The argument `again` starts HSA once more;
// `exec` then replaces the process's program instead of ending it. HIP does not survive this, so
// the program skips HIP's destructors.
#include "tally.h"
#include <cstdio>
#include <cstring>
#include <hsa/hsa.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int error = run_tally(2);
  std::printf("tally: %d\n", error);
  std::printf("shut down: %#x\n", hsa_shut_down());
  std::printf("shut down without a start: %#x\n", hsa_shut_down());
  if (argc > 1 && std::strcmp(argv[1], "again") == 0) {
    std::printf("started: %#x\n", hsa_init());
    std::printf("shut down: %#x\n", hsa_shut_down());
  }
  std::fflush(stdout);
  if (argc > 1 && std::strcmp(argv[1], "return") == 0) {
    return error != 0;
  }
  _exit(error != 0);
}
