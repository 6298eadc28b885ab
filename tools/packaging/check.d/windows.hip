// Counts in a window, by the functions of rocov.h.

#include <cstdio>

#include <hip/hip_runtime.h>
#include <rocov.h>

__global__ void twice(int *numbers) {
  if (numbers[threadIdx.x] > 1000)
    numbers[threadIdx.x] = 0;
  numbers[threadIdx.x] *= 2;
}

int main() {
  constexpr int count = 64;
  int numbers[count], *device;
  for (int i = 0; i < count; ++i)
    numbers[i] = i;
  if (hipMalloc(reinterpret_cast<void **>(&device), sizeof numbers) != hipSuccess)
    return 1;
  const auto up = hipMemcpy(device, numbers, sizeof numbers, hipMemcpyHostToDevice);
  twice<<<1, count>>>(device); // before the first window: left out
  RocovStatus status[4];
  status[0] = rocov_start();
  status[1] = rocov_label_push("windows");
  twice<<<1, count>>>(device);
  twice<<<1, count>>>(device);
  status[2] = rocov_label_pop();
  status[3] = rocov_stop();
  const auto down = hipMemcpy(numbers, device, sizeof numbers, hipMemcpyDeviceToHost);
  std::printf("librocov %s: %d %d %d %d; 8 * 3 is %d\n", rocov_version(), status[0], status[1], status[2], status[3],
              numbers[3]);
  return up == hipSuccess && down == hipSuccess && numbers[3] == 24 ? 0 : 1;
}
