// Uses the GPU's driver, and launches nothing.

#include "check.h"

__global__ void unused(int *value) { *value += 1; }

int main() {
  int devices = 0;
  CHECK(hipGetDeviceCount(&devices));
  return devices > 0 ? 0 : 1;
}
