// Faults on a GPU, one per argument.
#include <hip/hip_runtime.h>

#include <cstring>
#include <unistd.h>

#include "check.h"

__global__ void write_far(int *values, size_t index) { values[index] = 1; }

__global__ void abort_itself(int *values) {
  if (values) __builtin_trap();
}

__global__ void halt(int *values) {
  asm volatile("s_sethalt 0");
  *values = 1;
}

// Asks for LDS of `count` values, but reads one more.
__global__ void read_beyond(int *values, int count) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = 7;
  values[threadIdx.x] = shared[threadIdx.x + count];
}

__global__ void spin(volatile int *flag) {
  while (*flag == 0) {
  }
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int *values;
  CHECK_HIP(hipMalloc(&values, 4096));
  CHECK_HIP(hipMemset(values, 0, 4096));
  CHECK_HIP(hipDeviceSynchronize());
  if (!std::strcmp(what, "out-of-bounds")) write_far<<<1, 1>>>(values, size_t(1) << 40);
  if (!std::strcmp(what, "of-the-host")) write_far<<<1, 1>>>(new int, 0);
  if (!std::strcmp(what, "trap")) abort_itself<<<1, 1>>>(values);
  if (!std::strcmp(what, "unmodelled")) halt<<<1, 1>>>(values);
  if (!std::strcmp(what, "beyond-lds")) {
    // 512 bytes are one unit of LDS; after 500 bytes, 12 more are allotted but not requested.
    for (size_t bytes : {512, 512, 500}) {
      CHECK_HIP(hipMemset(values, 1, 4096));
      read_beyond<<<1, 64, bytes>>>(values, 128);
      int read[64];
      CHECK_HIP(hipMemcpy(read, values, sizeof read, hipMemcpyDeviceToHost));
      for (int value : read) CHECK(value == 0);
    }
  }
  if (!std::strcmp(what, "exit-while-running")) {
    spin<<<1, 1>>>(values);
    std::puts("leaving");
    std::fflush(stdout);
    _exit(7);
  }
  if (!std::strcmp(what, "host-read")) {
    std::printf("host reads %d\n", *static_cast<volatile int *>(values));
    return finish();
  }
  hipError_t error = hipDeviceSynchronize();
  std::printf("synchronised: %s\n", hipGetErrorString(error));
  return finish();
}
