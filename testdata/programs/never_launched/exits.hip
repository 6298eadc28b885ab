// `exits STEP LIBRARY...`: opens the libraries, and returns from main. With the step `add` it launches a kernel
// before. With `none` it launches nothing, and reads the driver's description of a GPU: the modelled GPU starts then,
// and not in the exit. Prints the monotonic clock in nanoseconds at the end.

#include "kernels.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fstream>

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
  if (std::strcmp(argv[1], "none") == 0) {
    std::ifstream gpu("/sys/devices/virtual/kfd/kfd/topology/nodes/1/properties");
    if (!gpu.is_open()) {
      return 1;
    }
  }
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
  std::fflush(stdout);
}
