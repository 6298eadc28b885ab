// Instances of kernels that leave early. Each line with `ran` adds the threads that run it to a sum in memory. The sums
// are numbered in the order of the lines, and the program prints them.
#include "../hip.h"

#include <cstdio>

constexpr int places = 32;

__device__ void ran(int *times, int place) { atomicAdd(&times[place], 1); }

template <int N> __global__ void early(int *times) {
  if constexpr (N == 1) {
    ran(times, 0);
    return;
  }
  ran(times, 1);
  ran(times, 2);
}

template <int N> __global__ void chosen(int *times) {
  if constexpr (N == 1) {
    ran(times, 3);
  } else if constexpr (N == 2) {
    return;
  } else {
    ran(times, 4);
    return;
  }
  ran(times, 5);
  ran(times, 6);
}

template <int N> __global__ void sometimes(int *times) {
  if constexpr (N > 0) {
    if (threadIdx.x % 4 == 0) {
      ran(times, 7);
      return;
    }
    if constexpr (N == 2) {
      ran(times, 8);
      return;
    }
    ran(times, 9);
  }
  ran(times, 10);
  ran(times, 11);
}

template <int N> __global__ void loop(int *times) {
  for (int i = 0; i < 3; ++i) {
    if constexpr (N == 1) {
      ran(times, 12);
      continue;
    } else if constexpr (N == 2) {
      ran(times, 13);
      break;
    }
    ran(times, 14);
    ran(times, 15);
  }
}

template <int N> __global__ void never(int *times) {
  if constexpr (N == 1) {
    return;
  }
  ran(times, 16);
  ran(times, 17);
}

int main(int argc, char **) {
  int *device = nullptr, host[places] = {};
  if (hipMalloc(reinterpret_cast<void **>(&device), sizeof host) != hipSuccess)
    return 1;
  (void)hipMemset(device, 0, sizeof host);
  early<0><<<1, 64>>>(device);
  early<1><<<2, 64>>>(device);
  chosen<0><<<1, 64>>>(device);
  chosen<1><<<2, 64>>>(device);
  chosen<2><<<4, 64>>>(device);
  sometimes<0><<<1, 64>>>(device);
  sometimes<1><<<2, 64>>>(device);
  sometimes<2><<<4, 64>>>(device);
  loop<0><<<1, 64>>>(device);
  loop<1><<<2, 64>>>(device);
  loop<2><<<4, 64>>>(device);
  never<1><<<1, 64>>>(device);
  if (argc > 9)
    never<0><<<1, 64>>>(device);
  (void)hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost);
  for (int place = 0; place < places; ++place)
    std::printf("%d\n", host[place]);
}
