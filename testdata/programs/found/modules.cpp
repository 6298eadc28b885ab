// Does what it is told with code objects through HIP's module functions:
//
//   modules CODE_OBJECT STEP...
//
// The steps, of which each works on the module that was loaded last:
//   device:N  use GPU N        load  hipModuleLoad of the file    data  hipModuleLoadData of its bytes
//   launch    kernel `count`   sync  hipDeviceSynchronize         unload
//   where     print the kernel's address
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr unsigned GROUPS = 2, GROUP = 64;

void check(hipError_t status, const char *what) {
  if (status != hipSuccess)
    throw std::runtime_error(std::string(what) + ": " + hipGetErrorString(status));
}
#define CHECK(call) check((call), #call)

struct Program {
  const char *path;
  std::vector<hipModule_t> modules = {};
  std::vector<char> bytes = {};
  void *buffer = nullptr;

  hipFunction_t kernel() {
    hipFunction_t kernel;
    CHECK(hipModuleGetFunction(&kernel, modules.back(), "_Z5countPj"));
    return kernel;
  }

  void launch() {
    if (!buffer)
      CHECK(hipMalloc(&buffer, GROUPS * GROUP * sizeof(unsigned)));
    void *arguments[] = {&buffer};
    CHECK(hipModuleLaunchKernel(kernel(), GROUPS, 1, 1, GROUP, 1, 1, 0, nullptr, arguments,
                                nullptr));
  }

  void load_data() {
    // Freed with the program, or overwritten by the next: HIP wants its argument no longer.
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    CHECK(hipModuleLoadData(&modules.emplace_back(), bytes.data()));
  }

  void step(const std::string &what) {
    if (what == "load")
      CHECK(hipModuleLoad(&modules.emplace_back(), path));
    else if (what == "data")
      load_data();
    else if (what == "launch")
      launch();
    else if (what == "sync")
      CHECK(hipDeviceSynchronize());
    else if (what == "unload") {
      CHECK(hipModuleUnload(modules.back()));
      modules.pop_back();
    } else if (what == "where") {
      hipDeviceptr_t address;
      std::size_t size;
      CHECK(hipModuleGetGlobal(&address, &size, modules.back(), "__llvm_profile_sections"));
      std::printf("%p\n", address);
    } else if (what.rfind("device:", 0) == 0) {
      CHECK(hipSetDevice(std::atoi(what.c_str() + 7)));
      buffer = nullptr;
    } else
      throw std::runtime_error("no such step: " + what);
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: modules CODE_OBJECT STEP...\n");
    return 2;
  }
  try {
    Program program{argv[1]};
    for (int i = 2; i < argc; ++i)
      program.step(argv[i]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "modules: %s\n", error.what());
    return 1;
  }
}
