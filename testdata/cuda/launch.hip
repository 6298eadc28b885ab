// Launches a kernel of kernels.cu on an AMD GPU.
#include <hip/hip_runtime.h>

#include "kernels.cu"

int main() {
  constexpr int count = 1000;
  float values[count];
  for (int i = 0; i < count; ++i)
    values[i] = static_cast<float>(i % 20 - 5);
  float *on_gpu = nullptr;
  unsigned *bins = nullptr;
  int error = hipMalloc(reinterpret_cast<void **>(&on_gpu), sizeof values);
  error |= hipMalloc(reinterpret_cast<void **>(&bins), 10 * sizeof *bins);
  error |= hipMemset(bins, 0, 10 * sizeof *bins);
  error |= hipMemcpy(on_gpu, values, sizeof values, hipMemcpyHostToDevice);
  histogram<<<4, 256>>>(on_gpu, count, bins);
  return error | hipDeviceSynchronize();
}
