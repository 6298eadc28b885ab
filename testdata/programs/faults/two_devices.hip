// Launches a kernel once on the first GPU and twice on the second, prints the computed values, and
// ends with a fixed exit status.

#include "../hip.h"

#include <cstdio>
#include <cstdlib>

static void check(bool good, const char *what) {
  if (!good) {
    std::fprintf(stderr, "two_devices: %s\n", what);
    std::_Exit(1);
  }
}

// 256 calls for each launch.
extern "C" __global__ void counted(unsigned *sum) { atomicAdd(sum, 3); }

int main() {
  for (int device = 0; device < 2; device++) {
    unsigned *sum = nullptr;
    unsigned result = 0;
    check(hipSetDevice(device) == hipSuccess, "hipSetDevice");
    check(hipMalloc(&sum, sizeof *sum) == hipSuccess, "hipMalloc");
    check(hipMemset(sum, 0, sizeof *sum) == hipSuccess, "hipMemset");
    for (int launch = 0; launch <= device; launch++) {
      counted<<<4, 64>>>(sum);
    }
    check(hipMemcpy(&result, sum, sizeof result, hipMemcpyDeviceToHost) == hipSuccess, "hipMemcpy");
    std::printf("%d: %u\n", device, result);
  }
  return 7;
}
