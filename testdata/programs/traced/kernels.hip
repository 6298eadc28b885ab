// Kernels whose executed instructions follow from the source. Instructions that the compiler does not touch mark places:
// an s_nop with a number of its own.

#include "../hip.h"

#include <cstdio>
#include <cstdlib>

static void check(hipError_t error) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "%s\n", hipGetErrorString(error));
    std::exit(2);
  }
}

// No branch: each wave executes each instruction once.
__global__ void straight(int *out) {
  const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
  out[item] = static_cast<int>(item) * 7;
}

// 16 lanes of each wave.
__global__ void branch(int *out) {
  const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 64 < 16) {
    asm volatile("s_nop 1");
    out[item] = 1;
  }
  asm volatile("s_nop 2");
}

// Each lane of a wave takes as many turns as its number in the wave, at most.
__global__ void turns(int *out, int most) {
  const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int turn = 0; turn < most && turn < static_cast<int>(threadIdx.x % 64); ++turn) {
    asm volatile("s_nop 3" : "+v"(sum));
    sum += turn;
  }
  out[item] = sum;
}

// A function with a symbol of its own, which half of the lanes call.
__device__ __attribute__((noinline)) int called(int value) {
  asm volatile("s_nop 4" : "+v"(value));
  return value * 3;
}

__global__ void calls(int *out) {
  const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item % 2 == 0) {
    out[item] = called(out[item]);
  }
}

__global__ void never_launched(int *out) { out[0] = 1; }

int main(int argc, char **argv) {
  const int launches = argc > 1 ? std::atoi(argv[1]) : 1;
  int *out = nullptr;
  check(hipMalloc(&out, 8192 * sizeof(int)));
  check(hipMemset(out, 0, 8192 * sizeof(int)));
  for (int launch = 0; launch < launches; ++launch) {
    // The last wave of each workgroup has 36 lanes.
    straight<<<10, 100>>>(out);
    branch<<<8, 128>>>(out);
    turns<<<4, 64>>>(out, 20);
    calls<<<2, 256>>>(out);
  }
  check(hipDeviceSynchronize());
  check(hipFree(out));
  return 0;
}
