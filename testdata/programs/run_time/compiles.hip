// Compiles a kernel at run time with the given options, and launches one block of it. The kernel
// counts its threads and those that take the branch. With `--header FILE` first, hipRTC gets the text of
// FILE as a header.
#include <cstdio>
#include <cstring>
#include <fstream>
#include "../hip.h"
#include <hip/hiprtc.h>
#include <iterator>
#include <string>
#include <vector>

namespace {
constexpr int THREADS = 64;
constexpr int SCALED = 40;

const char *SOURCE = R"(extern "C" __global__ void scale(float *values, int count) {
  int i = threadIdx.x;
  if (i < count)
    values[i] *= 2;
}
)";

bool launch(const std::vector<char> &code) {
  hipModule_t module;
  hipFunction_t kernel;
  float host[THREADS], *values;
  for (int i = 0; i < THREADS; ++i)
    host[i] = float(i);
  if (hipModuleLoadData(&module, code.data()) != hipSuccess ||
      hipModuleGetFunction(&kernel, module, "scale") != hipSuccess ||
      hipMalloc(&values, sizeof(host)) != hipSuccess ||
      hipMemcpy(values, host, sizeof(host), hipMemcpyHostToDevice) != hipSuccess)
    return false;
  int count = SCALED;
  void *arguments[] = {&values, &count};
  if (hipModuleLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, nullptr, arguments, nullptr) !=
          hipSuccess ||
      hipMemcpy(host, values, sizeof(host), hipMemcpyDeviceToHost) != hipSuccess)
    return false;
  for (int i = 0; i < THREADS; ++i)
    if (host[i] != float(i < SCALED ? 2 * i : i))
      return false;
  return true;
}
} // namespace

int main(int argc, char **argv) {
  const bool has_header = argc > 2 && std::strcmp(argv[1], "--header") == 0;
  std::vector<const char *> options(argv + (has_header ? 3 : 1), argv + argc);
  std::string text;
  if (has_header) {
    std::ifstream file(argv[2]);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const char *header = text.c_str(), *name = "rocov_device.h";
  hiprtcProgram program;
  if (hiprtcCreateProgram(&program, SOURCE, "scale.hip", has_header, &header, &name) != HIPRTC_SUCCESS)
    return 2;
  auto compiled = hiprtcCompileProgram(program, int(options.size()), options.data());
  size_t size = 0;
  if (compiled != HIPRTC_SUCCESS) {
    (void)hiprtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    (void)hiprtcGetProgramLog(program, log.data());
    std::fprintf(stderr, "%s\n", log.c_str());
    return 3;
  }
  (void)hiprtcGetCodeSize(program, &size);
  std::vector<char> code(size);
  (void)hiprtcGetCode(program, code.data());
  return launch(code) ? 0 : 4;
}
