// 64 work-items: half take the branch and none takes the early return. `classify collect` requests
// a drain after they are done, before the program exits.

#include "check.h"
#include "collect.h"

#include <cstring>

__global__ void classify(int *even, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  if (i % 2 == 0) {
    even[i] = 1;
  } else {
    even[i] = 0;
  }
}

int main(int count, char **arguments) {
  constexpr int COUNT = 64;
  int even[COUNT] = {};
  int *device = on_device(even, COUNT);
  classify<<<1, COUNT>>>(device, COUNT);
  CHECK(hipDeviceSynchronize());
  if (count > 1 && std::strcmp(arguments[1], "collect") == 0) {
    if (collect() != 0) {
      return 2;
    }
  }
  to_host(even, device, COUNT);
  int sum = 0;
  for (int value : even) {
    sum += value;
  }
  return sum == COUNT / 2 ? 0 : 1;
}
