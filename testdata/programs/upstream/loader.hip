// Loads a code object by its file name, runs its kernel once and unloads it.

#include "check.h"

int main(int, char **arguments) {
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  CHECK(hipModuleLoad(&module, arguments[1]));
  CHECK(hipModuleGetFunction(&kernel, module, "module_kernel"));
  CHECK(hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CHECK(hipDeviceSynchronize());
  CHECK(hipModuleUnload(module));
  return 0;
}
