// Runs the kernel of tally.cu, which comes to the GPU in one of these forms, and prints what it has added to memory:
//   forms runtime           code of this program
//   forms graph             code of this program, as nodes of a CUDA graph that is launched three times
//   forms link PTX...       PTX that the driver links
//   forms nvrtc FOLDER      the sources in FOLDER, which NVRTC compiles
//   forms module FILE       a file that the driver loads as a module
//   forms library FILE      a file that the driver loads as a library
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>
#include <nvrtc.h>

#include "tally.cu"

constexpr unsigned PLACES = 5, BLOCKS = 7, THREADS = 100, ITEMS = 650;

static void check(const char *call, int status) {
  if (status == 0)
    return;
  std::fprintf(stderr, "forms: %s: error %d\n", call, status);
  std::exit(1);
}
#define CHECK(call) check(#call, static_cast<int>(call))

static std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static void in_graph(unsigned *out) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int node = 0; node < 2; ++node)
    tally<<<BLOCKS, THREADS, 0, stream>>>(out, ITEMS);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  for (int launch = 0; launch < 3; ++launch)
    CHECK(cudaGraphLaunch(instance, stream));
  CHECK(cudaStreamSynchronize(stream));
}

static void launch(CUfunction kernel, unsigned *out) {
  unsigned items = ITEMS;
  void *arguments[] = {&out, &items};
  CHECK(cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(cuCtxSynchronize());
}

static void launch(CUmodule module, unsigned *out) {
  CUfunction kernel;
  CHECK(cuModuleGetFunction(&kernel, module, "tally"));
  launch(kernel, out);
}

static void launch(const void *code, unsigned *out) {
  CUmodule module;
  CHECK(cuModuleLoadData(&module, code));
  launch(module, out);
}

static void of_module(const char *path, unsigned *out) {
  CUmodule module;
  CHECK(cuModuleLoad(&module, path));
  launch(module, out);
}

static void of_library(const char *path, unsigned *out) {
  CUlibrary library;
  CUmodule module;
  CHECK(cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetModule(&module, library));
  launch(module, out);
}

static void linked(int count, char **paths, unsigned *out) {
  CUlinkState state;
  CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
  for (int path = 0; path < count; ++path) {
    std::string text = contents(paths[path]);
    CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, paths[path], 0, nullptr, nullptr));
  }
  void *cubin;
  size_t size;
  CHECK(cuLinkComplete(state, &cubin, &size));
  launch(static_cast<const void *>(cubin), out);
  CHECK(cuLinkDestroy(state));
}

static void compiled(const std::string &folder, unsigned *out) {
  std::string tally = contents(folder + "/tally.cu"), step = contents(folder + "/step.cu");
  const char *header = step.c_str(), *name = "step.cu", *option = "-lineinfo";
  nvrtcProgram program;
  CHECK(nvrtcCreateProgram(&program, tally.c_str(), "tally.cu", 1, &header, &name));
  CHECK(nvrtcCompileProgram(program, 1, &option));
  size_t size;
  CHECK(nvrtcGetPTXSize(program, &size));
  std::vector<char> text(size);
  CHECK(nvrtcGetPTX(program, text.data()));
  launch(static_cast<const void *>(text.data()), out);
}

int main(int count, char **words) {
  unsigned *out, places[PLACES];
  CHECK(cudaMalloc(&out, sizeof places));
  CHECK(cudaMemset(out, 0, sizeof places));
  std::string form = count > 1 ? words[1] : "";
  if (form == "runtime") {
    tally<<<BLOCKS, THREADS>>>(out, ITEMS);
    CHECK(cudaDeviceSynchronize());
  } else if (form == "graph") {
    in_graph(out);
  } else if (form == "link") {
    linked(count - 2, words + 2, out);
  } else if (form == "nvrtc" && count == 3) {
    compiled(words[2], out);
  } else if (form == "module" && count == 3) {
    of_module(words[2], out);
  } else if (form == "library" && count == 3) {
    of_library(words[2], out);
  } else {
    std::fprintf(stderr, "forms: expected runtime, graph, link, nvrtc, module or library\n");
    return 2;
  }
  CHECK(cudaMemcpy(places, out, sizeof places, cudaMemcpyDeviceToHost));
  for (unsigned place = 0; place < PLACES; ++place)
    std::printf("%u %u\n", place, places[place]);
  return 0;
}
