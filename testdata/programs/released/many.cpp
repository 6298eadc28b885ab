// `many CODE_OBJECT KERNEL NUMBER`: loads as many modules, each with bytes of its own, launches the
// kernel of each once, and returns from main. Prints the processor time of the process in nanoseconds at that time.
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

constexpr size_t RESULT = 4 << 20;

static void check(hipError_t status, const char *what) {
  if (status != hipSuccess) {
    std::fprintf(stderr, "many: %s: %s\n", what, hipGetErrorString(status));
    std::exit(1);
  }
}
#define CHECK(call) check((call), #call)

// Gives a code object an identity: a number instead of the hash that clang gives each compilation.
// The hash is part of symbol names that no code looks up.
static void number(std::string &image, int number) {
  constexpr char MARK[] = "__hip_cuid_";
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016x", number);
  for (size_t at = 0; (at = image.find(MARK, at)) != std::string::npos; at += sizeof MARK) {
    std::memcpy(&image[at + sizeof MARK - 1], digits, 16);
  }
}

int main(int count, char **arguments) {
  if (count != 4) {
    return 2;
  }
  std::ifstream file(arguments[1], std::ios::binary);
  const std::string image(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> images(std::atoi(arguments[3]), image);
  for (size_t i = 0; i < images.size(); i++) {
    number(images[i], i);
    hipModule_t module = nullptr;
    hipFunction_t kernel = nullptr;
    CHECK(hipModuleLoadData(&module, images[i].data()));
    CHECK(hipModuleGetFunction(&kernel, module, arguments[2]));
    // The kernel reads and writes this number of elements: none.
    int *none = nullptr;
    int bound = 1;
    unsigned elements = 0;
    void *parameters[] = {&none, &none, &bound, &elements};
    CHECK(hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  }
  CHECK(hipDeviceSynchronize());
  // Most programs copy their results from the GPU: ROCr then has its queue for copies.
  std::vector<char> result(RESULT);
  void *device = nullptr;
  CHECK(hipMalloc(&device, RESULT));
  CHECK(hipMemcpy(result.data(), device, RESULT, hipMemcpyDeviceToHost));
  CHECK(hipFree(device));
  if (auto mark = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "hsa_calls_mark"))) {
    mark();
  }
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  std::printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
  std::fflush(stdout);
}
