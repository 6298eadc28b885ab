#include <hip/hip_runtime.h>
#include "mean.h"
#include "smooth.h"

#include <stdexcept>

constexpr int BLOCK = 256;

__global__ void smooth(const float *from, float *to, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) {
    return; // beyond the last value
  }
  if (count < 3) {
    to[i] = from[i]; // too few to have neighbours
    return;
  }
  to[i] = mean_at(from, count, i);
}

static void check(hipError_t error) {
  if (error != hipSuccess) {
    throw std::runtime_error(hipGetErrorString(error));
  }
}

bool smooth_on_amd(std::vector<float> &values) {
  int devices = 0;
  if (hipGetDeviceCount(&devices) != hipSuccess || devices == 0) {
    return false;
  }
  int count = static_cast<int>(values.size());
  size_t bytes = count * sizeof(float);
  float *from = nullptr;
  float *to = nullptr;
  check(hipMalloc(&from, bytes));
  check(hipMalloc(&to, bytes));
  check(hipMemcpy(from, values.data(), bytes, hipMemcpyHostToDevice));
  smooth<<<(count + BLOCK - 1) / BLOCK, BLOCK>>>(from, to, count);
  check(hipGetLastError());
  check(hipMemcpy(values.data(), to, bytes, hipMemcpyDeviceToHost));
  check(hipFree(from));
  check(hipFree(to));
  return true;
}
