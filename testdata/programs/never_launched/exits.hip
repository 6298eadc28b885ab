// `exits STEP LIBRARY...`: opens the libraries, and returns from main. With the step `add` it launches a kernel
// before, with `none` nothing. Prints the monotonic clock in nanoseconds at the end.

#include "kernels.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>

__global__ void add(float *values, float summand) {
  values[threadIdx.x] += summand;
}

int main(int argc, char **argv) {
  for (int i = 2; i < argc; i++) {
    if (dlopen(argv[i], RTLD_NOW) == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  if (std::strcmp(argv[1], "add") == 0) {
    on_values([](float *values) { add<<<1, COUNT>>>(values, 1.0F); });
  }
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
  std::fflush(stdout);
}
