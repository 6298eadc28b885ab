// Instances of kernels that leave early. Each line with `ran` adds the threads that run it to a sum in memory, and the
// program prints these sums.
#include <hip/hip_runtime.h>

#include <cstdio>

constexpr int lines = 128;

__device__ void ran(int *times, int line) { atomicAdd(&times[line], 1); }

template <int N> __global__ void early(int *times) {
  if constexpr (N == 1) {
    ran(times, __LINE__);
    return;
  }
  ran(times, __LINE__);
  ran(times, __LINE__);
}

template <int N> __global__ void chosen(int *times) {
  if constexpr (N == 1) {
    ran(times, __LINE__);
  } else if constexpr (N == 2) {
    return;
  } else {
    ran(times, __LINE__);
    return;
  }
  ran(times, __LINE__);
  ran(times, __LINE__);
}

template <int N> __global__ void sometimes(int *times) {
  if constexpr (N > 0) {
    if (threadIdx.x % 4 == 0) {
      ran(times, __LINE__);
      return;
    }
    if constexpr (N == 2) {
      ran(times, __LINE__);
      return;
    }
    ran(times, __LINE__);
  }
  ran(times, __LINE__);
  ran(times, __LINE__);
}

template <int N> __global__ void loop(int *times) {
  for (int i = 0; i < 3; ++i) {
    if constexpr (N == 1) {
      ran(times, __LINE__);
      continue;
    } else if constexpr (N == 2) {
      ran(times, __LINE__);
      break;
    }
    ran(times, __LINE__);
    ran(times, __LINE__);
  }
}

template <int N> __global__ void never(int *times) {
  if constexpr (N == 1) {
    return;
  }
  ran(times, __LINE__);
  ran(times, __LINE__);
}

int main(int argc, char **) {
  int *device = nullptr, host[lines] = {};
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
  for (int line = 0; line < lines; ++line)
    std::printf("%d\n", host[line]);
}
