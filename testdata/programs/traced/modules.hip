// Does what its arguments say, one after the other:
//
//   load FILE      loads a code object
//   launch GROUPS  launches its kernel in groups of 64
//   unload         unloads it
//   reset          sets rocov's counts to zero

#include "../hip.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

static void check(hipError_t error, const char *what) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "modules: %s: %s\n", what, hipGetErrorString(error));
    std::exit(2);
  }
}

int main(int count, char **arguments) {
  int *out = nullptr;
  check(hipMalloc(&out, sizeof *out), "hipMalloc");
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  for (int at = 1; at < count; ++at) {
    const char *step = arguments[at];
    if (std::strcmp(step, "load") == 0) {
      check(hipModuleLoad(&module, arguments[++at]), "hipModuleLoad");
      check(hipModuleGetFunction(&kernel, module, "only"), "hipModuleGetFunction");
    } else if (std::strcmp(step, "launch") == 0) {
      void *values[] = {&out};
      const int groups = std::atoi(arguments[++at]);
      check(hipModuleLaunchKernel(kernel, groups, 1, 1, 64, 1, 1, 0, nullptr, values, nullptr), "launch");
      check(hipDeviceSynchronize(), "the kernel");
    } else if (std::strcmp(step, "unload") == 0) {
      check(hipModuleUnload(module), "hipModuleUnload");
    } else if (std::strcmp(step, "reset") == 0) {
      using Reset = int();
      auto *reset = reinterpret_cast<Reset *>(dlsym(RTLD_DEFAULT, "rocov_reset"));
      if (reset == nullptr || reset() != 0) {
        std::fprintf(stderr, "modules: no reset\n");
        return 3;
      }
    }
  }
  return 0;
}
