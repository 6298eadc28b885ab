// A program of two translation units, and a library that it opens. Each argument is a step:
//
//   add        launches the kernel here
//   scale      launches the one in scale.hip
//   devices    asks HIP how many GPUs there are, which starts HSA
//   none       does nothing
//   open FILE  opens a library, and leaves it open
//   close FILE opens a library and closes it
//   drop FILE  opens a library, removes its file, and closes it

#include "kernels.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

__global__ void add(float *values, float summand) {
  values[threadIdx.x] += summand;
}

static void *opened(const char *library) {
  void *handle = dlopen(library, RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return handle;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (std::strcmp(argv[i], "add") == 0) {
      on_values([](float *values) { add<<<1, COUNT>>>(values, 1.0F); });
    } else if (std::strcmp(argv[i], "scale") == 0) {
      launch_scale();
    } else if (std::strcmp(argv[i], "devices") == 0) {
      int count = 0;
      check(hipGetDeviceCount(&count));
    } else if (std::strcmp(argv[i], "open") == 0) {
      opened(argv[++i]);
    } else if (std::strcmp(argv[i], "close") == 0) {
      dlclose(opened(argv[++i]));
    } else if (std::strcmp(argv[i], "drop") == 0) {
      void *handle = opened(argv[++i]);
      unlink(argv[i]);
      dlclose(handle);
    } else if (std::strcmp(argv[i], "none") != 0) {
      return 2;
    }
  }
  return 0;
}
