// Kernels that use shared memory wrongly: "race" or "unwritten" names the one that runs. The program aborts then if
// there is another word. Without "volatile", the compiler may read first.
#include "../hip.h"

#include <cstdlib>
#include <cstring>

constexpr int count = 128;

// The second wave reads what the first one writes, without a barrier between.
extern "C" __global__ void races(int *out) {
  __shared__ volatile int tile[count];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[count - 1 - threadIdx.x];
}

// The last item of shared memory is never written. One wave needs no barrier.
extern "C" __global__ void reads_unwritten(int *out) {
  __shared__ volatile int tile[65];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[threadIdx.x + 1];
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int *memory;
  if (hipMalloc(&memory, count * sizeof *memory) != hipSuccess) return 2;
  if (hipMemset(memory, 0, count * sizeof *memory) != hipSuccess) return 2;
  if (!std::strcmp(what, "race")) races<<<1, count>>>(memory);
  if (!std::strcmp(what, "unwritten")) reads_unwritten<<<1, 64>>>(memory);
  if (hipDeviceSynchronize() != hipSuccess) return 3;
  if (argc > 2) std::abort();
  return 0;
}
