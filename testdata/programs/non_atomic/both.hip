// Both sides of a branch run in each wave. Counters without atomic operations count once for each wave, and miss one of
// the sides: the last lanes that store leave nothing of the others.
#include "../hip.h"

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
  if (hipError_t error = (call); error != hipSuccess) {                                            \
    std::fprintf(stderr, "both: %s: %s\n", #call, hipGetErrorString(error));                       \
    std::exit(1);                                                                                  \
  }

constexpr int BLOCK = 64;
constexpr int ITEMS = 1024;

__global__ void both(int *out) {
  int lane = threadIdx.x;
  int i = blockIdx.x * blockDim.x + lane;
  if (lane < 32)
    out[i] = 1;
  else
    out[i] = 2;
}

int main() {
  int *device = nullptr;
  CHECK(hipMalloc(&device, ITEMS * sizeof(int)));
  both<<<ITEMS / BLOCK, BLOCK>>>(device);
  int out[ITEMS];
  CHECK(hipMemcpy(out, device, sizeof(out), hipMemcpyDeviceToHost));
  for (int i = 0; i < ITEMS; ++i)
    if (out[i] != (i % BLOCK < 32 ? 1 : 2)) {
      std::fprintf(stderr, "both: %d at %d\n", out[i], i);
      return 1;
    }
  CHECK(hipFree(device));
  return 0;
}
