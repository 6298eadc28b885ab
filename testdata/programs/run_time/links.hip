// Compiles two units at run time with the given options, links them and launches one block. The units have an inline
// function in common. With `--file FILE` first, the second unit goes through FILE; with `--one-name`, the units have one
// name.
#include <cstdio>
#include <cstring>
#include <fstream>
#include "../hip.h"
#include <hip/hiprtc.h>
#include <string>
#include <vector>

namespace {
const char *KERNEL = R"(inline __device__ int one(int x) { return x ? x : 1; }
__device__ int twice(int x);
extern "C" __global__ void kern(int *out) {
  int i = threadIdx.x;
  if (i < 40)
    out[i] = twice(i);
  else
    out[i] = -one(0);
}
)";

const char *TWICE = R"(inline __device__ int one(int x) { return x ? x : 1; }
__device__ int twice(int x) {
  if (x & 1)
    return 2 * x + one(1);
  return 2 * x;
}
)";

bool compile(const char *text, const char *name, const std::vector<const char *> &options, std::vector<char> &code) {
  hiprtcProgram program;
  if (hiprtcCreateProgram(&program, text, name, 0, nullptr, nullptr) != HIPRTC_SUCCESS)
    return false;
  size_t size = 0;
  if (hiprtcCompileProgram(program, int(options.size()), const_cast<const char **>(options.data())) != HIPRTC_SUCCESS) {
    (void)hiprtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    (void)hiprtcGetProgramLog(program, log.data());
    std::fprintf(stderr, "%s\n", log.c_str());
    return false;
  }
  if (hiprtcGetBitcodeSize(program, &size) != HIPRTC_SUCCESS)
    return false;
  code.resize(size);
  return hiprtcGetBitcode(program, code.data()) == HIPRTC_SUCCESS;
}
} // namespace

int main(int argc, char **argv) {
  int first = 1;
  const char *file = nullptr, *name = "twice.hip";
  if (argc > 2 && std::strcmp(argv[1], "--file") == 0) {
    file = argv[2];
    first = 3;
  } else if (argc > 1 && std::strcmp(argv[1], "--one-name") == 0) {
    name = "kern.hip";
    first = 2;
  }
  std::vector<const char *> options{"-fgpu-rdc"};
  options.insert(options.end(), argv + first, argv + argc);
  std::vector<char> kernel, twice;
  if (!compile(KERNEL, "kern.hip", options, kernel) || !compile(TWICE, name, options, twice))
    return 2;
  hiprtcLinkState link;
  const auto kind = HIPRTC_JIT_INPUT_LLVM_BITCODE;
  if (hiprtcLinkCreate(0, nullptr, nullptr, &link) != HIPRTC_SUCCESS ||
      hiprtcLinkAddData(link, kind, kernel.data(), kernel.size(), "kern", 0, nullptr, nullptr) != HIPRTC_SUCCESS)
    return 3;
  if (file) {
    std::ofstream(file, std::ios::binary).write(twice.data(), std::streamsize(twice.size()));
    if (hiprtcLinkAddFile(link, kind, file, 0, nullptr, nullptr) != HIPRTC_SUCCESS)
      return 4;
  } else if (hiprtcLinkAddData(link, kind, twice.data(), twice.size(), "twice", 0, nullptr, nullptr) != HIPRTC_SUCCESS) {
    return 4;
  }
  void *code;
  size_t size;
  if (hiprtcLinkComplete(link, &code, &size) != HIPRTC_SUCCESS)
    return 5;
  hipModule_t module;
  hipFunction_t function;
  int host[64], *device, sum = 0;
  if (hipModuleLoadData(&module, code) != hipSuccess || hipModuleGetFunction(&function, module, "kern") != hipSuccess ||
      hipMalloc(&device, sizeof(host)) != hipSuccess)
    return 6;
  void *arguments[] = {&device};
  if (hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr) != hipSuccess ||
      hipMemcpy(host, device, sizeof(host), hipMemcpyDeviceToHost) != hipSuccess)
    return 7;
  for (int value : host)
    sum += value;
  std::printf("sum %d\n", sum);
  (void)hipModuleUnload(module);
  (void)hiprtcLinkDestroy(link);
}
