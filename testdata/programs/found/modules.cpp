// Runs steps on code objects with HIP's module functions:
//
//   modules CODE_OBJECT [STEP...]
//
// The steps; each works on the module that was loaded last:
//   device:N  uses GPU N
//   load[:FILE]  hipModuleLoad of CODE_OBJECT or the file
//   data[:FILE]  hipModuleLoadData of its bytes
//   launch[:KERNEL[:NUMBER]]   launches the kernel (default `count`) on 128 work-items, with a buffer
//                              and the number (default 1)
//   sync  hipDeviceSynchronize
//   unload
//   collect  the drain that LLVM's runtime or librocov offers
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// LLVM's is in the program itself, if at all, and hidden.
extern "C" int __llvm_profile_hip_collect_device_data() __attribute__((weak));

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

  void launch(const std::string &name, unsigned number) {
    hipFunction_t kernel;
    CHECK(hipModuleGetFunction(&kernel, modules.back(), name.c_str()));
    if (!buffer)
      CHECK(hipMalloc(&buffer, GROUPS * GROUP * sizeof(unsigned)));
    void *arguments[] = {&buffer, &number};
    CHECK(hipModuleLaunchKernel(kernel, GROUPS, 1, 1, GROUP, 1, 1, 0, nullptr, arguments, nullptr));
  }

  void launch(const std::string &what) {
    std::istringstream words(what);
    std::string word, name = "_Z5countPjj", number = "1";
    std::getline(words, word, ':');
    std::getline(words, name, ':');
    std::getline(words, number, ':');
    launch(name.empty() ? "_Z5countPjj" : name, std::stoul(number.empty() ? "1" : number));
  }

  void load_data(const char *file_path) {
    // Freed with the program, or overwritten by the next load: HIP no longer needs its argument.
    std::ifstream file(file_path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    CHECK(hipModuleLoadData(&modules.emplace_back(), bytes.data()));
  }

  static void collect() {
    auto drain = __llvm_profile_hip_collect_device_data;
    if (void *found = dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data"); found && !drain)
      drain = reinterpret_cast<int (*)()>(found);
    if (!drain)
      throw std::runtime_error("no drain is here");
    // LLVM's returns an error as long as a module from memory is loaded.
    std::printf("collect: %d\n", drain());
  }

  void step(const std::string &what) {
    const char *file = what.size() > 5 && what[4] == ':' ? what.c_str() + 5 : path;
    if (what.rfind("load", 0) == 0)
      CHECK(hipModuleLoad(&modules.emplace_back(), file));
    else if (what.rfind("data", 0) == 0)
      load_data(file);
    else if (what == "collect")
      collect();
    else if (what.rfind("launch", 0) == 0)
      launch(what);
    else if (what == "sync")
      CHECK(hipDeviceSynchronize());
    else if (what == "unload") {
      CHECK(hipModuleUnload(modules.back()));
      modules.pop_back();
    } else if (what.rfind("device:", 0) == 0) {
      CHECK(hipSetDevice(std::atoi(what.c_str() + 7)));
      buffer = nullptr;
    } else
      throw std::runtime_error("no such step: " + what);
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: modules CODE_OBJECT [STEP...]\n");
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
