// Measures the kernels of a CUDA program that knows nothing of it: a library to be preloaded. It stands before
// cudaLaunchKernel of a shared runtime, and writes to the file $KERNEL_TIMES at the end, a line for each kernel:
//
//   NAME LAUNCHES MILLISECONDS LATE REGISTERS BLOCKS
//
// MILLISECONDS is the GPU's time between an event before and one after each launch, summed up. The stream waits until
// all three are queued, so that it has no time of the host in it. LATE launches were not queued when it stopped waiting.
// BLOCKS are those that fit on a multiprocessor, in the first launch.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>

namespace {

struct Kernel {
  const char *name = "unknown";
  int launches = 0, late = 0, registers = 0, blocks = 0;
  double milliseconds = 0;
};

class Kernels {
public:
  Kernel &of(const void *function, int threads, std::size_t shared) {
    const auto [place, is_new] = all.try_emplace(function);
    if (is_new)
      describe(place->second, function, threads, shared);
    return place->second;
  }

  ~Kernels() {
    const char *path = std::getenv("KERNEL_TIMES");
    std::FILE *file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr)
      return;
    for (const auto &[function, kernel] : all)
      std::fprintf(file, "%s %d %.6f %d %d %d\n", kernel.name, kernel.launches, kernel.milliseconds, kernel.late,
                   kernel.registers, kernel.blocks);
    std::fclose(file);
  }

private:
  static void describe(Kernel &kernel, const void *function, int threads, std::size_t shared) {
    cudaFuncAttributes attributes;
    if (cudaFuncGetName(&kernel.name, function) != cudaSuccess)
      kernel.name = "unknown";
    if (cudaFuncGetAttributes(&attributes, function) == cudaSuccess)
      kernel.registers = attributes.numRegs;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&kernel.blocks, function, threads, shared);
  }

  std::map<const void *, Kernel> all;
};

Kernels kernels;
std::atomic<bool> is_queued, is_late;

// Runs in the stream, before the first event. A launch may need the stream, so there is a limit.
void CUDART_CB wait_for_launch(void *) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (!is_queued)
    if (std::chrono::steady_clock::now() > limit) {
      is_late = true;
      return;
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) cudaError_t
cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, std::size_t shared,
                 cudaStream_t stream) {
  static const auto launch = reinterpret_cast<decltype(&cudaLaunchKernel)>(dlsym(RTLD_NEXT, "cudaLaunchKernel"));
  static cudaEvent_t begin, end;
  if (begin == nullptr) {
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
  }
  Kernel &kernel = kernels.of(function, static_cast<int>(block.x * block.y * block.z), shared);
  is_queued = is_late = false;
  cudaLaunchHostFunc(stream, wait_for_launch, nullptr);
  cudaEventRecord(begin, stream);
  const cudaError_t status = launch(function, grid, block, arguments, shared, stream);
  cudaEventRecord(end, stream);
  is_queued = true;
  float milliseconds = 0;
  if (cudaEventSynchronize(end) == cudaSuccess && cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess) {
    kernel.milliseconds += milliseconds;
    ++kernel.launches;
    kernel.late += is_late;
  }
  return status;
}
