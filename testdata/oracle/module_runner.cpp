// Runs a spec's launches from a code object through the HIP runtime, like a program that loads
// modules. Nothing in it refers to coverage.
//
//   module_runner [--keep-loaded] CODE_OBJECT SPEC OUTDIR [TIMES]...
//
// Each TIMES (default: one, 1) stands for a GPU, in HIP's order: it loads the code object once, and
// does the spec's launches that many times, on fresh buffers each time. The buffers of the last
// time on the last GPU are written. With --keep-loaded the code object is never unloaded.
#include "spec.h"

#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// Returns the buffers' contents after the last launch.
std::vector<spec::Bytes> run(hipModule_t module, const spec::Spec &spec) {
  std::vector<void *> buffers;
  for (const spec::Bytes &bytes : spec.buffers) {
    void *buffer;
    CHECK(hipMalloc(&buffer, bytes.size()));
    CHECK(hipMemcpy(buffer, bytes.data(), bytes.size(), hipMemcpyHostToDevice));
    buffers.push_back(buffer);
  }
  for (const spec::Launch &work : spec.launches)
    launch(module, work, buffers);
  std::vector<spec::Bytes> results = spec.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    spec::Bytes &bytes = results[i];
    CHECK(hipMemcpy(bytes.data(), buffers[i], bytes.size(), hipMemcpyDeviceToHost));
    CHECK(hipFree(buffers[i]));
  }
  return results;
}

void run_on(int device, int times, const char *code_object, const spec::Spec &spec,
            const char *directory, bool keep_loaded) {
  CHECK(hipSetDevice(device));
  hipModule_t module;
  CHECK(hipModuleLoad(&module, code_object));
  std::vector<spec::Bytes> results;
  for (int i = 0; i < times; ++i)
    results = run(module, spec);
  spec::write_buffers(results, directory);
  if (!keep_loaded)
    CHECK(hipModuleUnload(module));
}

} // namespace

int main(int argc, char **argv) {
  bool keep_loaded = argc > 1 && !std::strcmp(argv[1], "--keep-loaded");
  if (keep_loaded) {
    ++argv;
    --argc;
  }
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: module_runner [--keep-loaded] CODE_OBJECT SPEC OUTDIR [TIMES]...\n");
    return 2;
  }
  try {
    spec::Spec spec = spec::read(argv[2]);
    if (argc == 4)
      run_on(0, 1, argv[1], spec, argv[3], keep_loaded);
    for (int i = 4; i < argc; ++i)
      run_on(i - 4, std::atoi(argv[i]), argv[1], spec, argv[3], keep_loaded);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "module_runner: %s\n", error.what());
    return 1;
  }
}
