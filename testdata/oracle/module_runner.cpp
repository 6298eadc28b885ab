// Runs a spec's launches from a code object through the HIP runtime: what a program that loads
// modules does, with nothing in it that knows of coverage.
//
//   module_runner CODE_OBJECT SPEC OUTDIR [DEVICE]...
//
// Each DEVICE named (default 0) gets its own module and buffers; launch i of the spec runs on all
// of them. The buffers of the last device are written.
#include "spec.h"

#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace {

void check(hipError_t status, const char *what) {
  if (status != hipSuccess)
    throw std::runtime_error(std::string(what) + ": " + hipGetErrorString(status));
}
#define CHECK(call) check((call), #call)

void launch(hipModule_t module, const spec::Launch &launch, const std::vector<void *> &buffers) {
  hipFunction_t kernel;
  CHECK(hipModuleGetFunction(&kernel, module, launch.kernel.c_str()));
  std::vector<void *> arguments;
  for (const spec::Argument &argument : launch.arguments) {
    const void *value = argument.is_buffer ? static_cast<const void *>(&buffers[argument.buffer])
                                           : argument.value.data();
    arguments.push_back(const_cast<void *>(value));
  }
  CHECK(hipModuleLaunchKernel(kernel, launch.grid[0], launch.grid[1], launch.grid[2],
                              launch.block[0], launch.block[1], launch.block[2], 0, nullptr,
                              arguments.data(), nullptr));
  CHECK(hipDeviceSynchronize());
}

void run(const char *code_object, spec::Spec spec, const char *directory, int device) {
  CHECK(hipSetDevice(device));
  hipModule_t module;
  CHECK(hipModuleLoad(&module, code_object));
  std::vector<void *> buffers;
  for (const spec::Bytes &bytes : spec.buffers) {
    void *buffer;
    CHECK(hipMalloc(&buffer, bytes.size()));
    CHECK(hipMemcpy(buffer, bytes.data(), bytes.size(), hipMemcpyHostToDevice));
    buffers.push_back(buffer);
  }
  for (const spec::Launch &work : spec.launches)
    launch(module, work, buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    spec::Bytes &bytes = spec.buffers[i];
    CHECK(hipMemcpy(bytes.data(), buffers[i], bytes.size(), hipMemcpyDeviceToHost));
    CHECK(hipFree(buffers[i]));
  }
  spec::write_buffers(spec.buffers, directory);
  CHECK(hipModuleUnload(module));
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s CODE_OBJECT SPEC OUTDIR [DEVICE]...\n", argv[0]);
    return 2;
  }
  try {
    spec::Spec spec = spec::read(argv[2]);
    if (argc == 4)
      run(argv[1], spec, argv[3], 0);
    for (int i = 4; i < argc; ++i)
      run(argv[1], spec, argv[3], std::atoi(argv[i]));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
