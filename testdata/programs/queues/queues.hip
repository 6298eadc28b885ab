// Two queues run a kernel at once. With an argument, a kernel that never ends runs beside them, until SIGTERM ends the program:
// by then it has counted so many rounds.
#include "../hip.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>

constexpr unsigned ITEMS = 300;
constexpr unsigned GROUP = 64;
constexpr int LAUNCHES = 6;
constexpr unsigned ROUNDS = 200000;

static void check(hipError_t error, const char *what) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "queues: %s: %s\n", what, hipGetErrorString(error));
    std::_Exit(1);
  }
}

extern "C" __global__ void turns(unsigned *out, unsigned items) {
  unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= items) {
    return;
  }
  unsigned value = out[item] + item + 1;
  unsigned count = 0;
  while (value > 1) {
    value = value & 1 ? 3 * value + 1 : value / 2;
    ++count;
  }
  out[item] = count;
}

extern "C" __global__ void endless(volatile unsigned *rounds) {
  for (unsigned round = 1;; ++round) {
    *rounds = round;
  }
}

int main(int count, char **) {
  hipStream_t streams[2];
  unsigned *buffers[2];
  unsigned *rounds = nullptr;
  for (int queue = 0; queue < 2; ++queue) {
    check(hipStreamCreateWithFlags(&streams[queue], hipStreamNonBlocking), "hipStreamCreate");
    check(hipMalloc(&buffers[queue], ITEMS * sizeof(unsigned)), "hipMalloc");
    check(hipMemset(buffers[queue], 0, ITEMS * sizeof(unsigned)), "hipMemset");
  }
  check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  if (count > 1) {
    hipStream_t other;
    check(hipHostMalloc(reinterpret_cast<void **>(&rounds), sizeof *rounds, hipHostMallocCoherent),
          "hipHostMalloc");
    *rounds = 0;
    check(hipStreamCreateWithFlags(&other, hipStreamNonBlocking), "hipStreamCreate");
    endless<<<1, GROUP, 0, other>>>(rounds);
  }
  for (int launch = 0; launch < LAUNCHES; ++launch) {
    for (int queue = 0; queue < 2; ++queue) {
      turns<<<(ITEMS + GROUP - 1) / GROUP, GROUP, 0, streams[queue]>>>(buffers[queue], ITEMS);
    }
  }
  for (int queue = 0; queue < 2; ++queue) {
    check(hipStreamSynchronize(streams[queue]), "hipStreamSynchronize");
  }
  if (rounds != nullptr) {
    while (*static_cast<volatile unsigned *>(rounds) < ROUNDS) {
      usleep(1000);
    }
    std::raise(SIGTERM);
  }
  for (int queue = 0; queue < 2; ++queue) {
    std::vector<unsigned> found(ITEMS);
    check(hipMemcpy(found.data(), buffers[queue], ITEMS * sizeof(unsigned), hipMemcpyDeviceToHost),
          "hipMemcpy");
    unsigned sum = 0;
    for (unsigned value : found) {
      sum = sum * 31 + value;
    }
    std::printf("%u\n", sum);
  }
}
