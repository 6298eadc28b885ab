// Runs its own kernel and no kernel of cold.hip.

#include "check.h"

extern "C" void keep_cold();

extern "C" __global__ void hot_kernel(int *value) { ++*value; }

int main() {
  keep_cold();
  int value = 0;
  int *device = on_device(&value, 1);
  hot_kernel<<<1, 1>>>(device);
  to_host(&value, device, 1);
  return value == 1 ? 0 : 1;
}
