// A library of one kernel, for Python.

#include <hip/hip_runtime.h>

__global__ void half(int *number) {
  *number /= 2;
}

extern "C" int halve() {
  int number = 42, *device;
  if (hipMalloc(reinterpret_cast<void **>(&device), sizeof number) != hipSuccess ||
      hipMemcpy(device, &number, sizeof number, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  half<<<1, 1>>>(device);
  if (hipMemcpy(&number, device, sizeof number, hipMemcpyDeviceToHost) != hipSuccess ||
      hipFree(device) != hipSuccess)
    return 1;
  return number == 21 ? 0 : 1;
}
