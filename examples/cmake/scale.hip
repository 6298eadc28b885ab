// Doubles numbers on the GPU, as many as the argument says, and checks them.
#include <cstdio>
#include <cstdlib>
#include <hip/hip_runtime.h>
#include <vector>

constexpr int BLOCK = 64;

__global__ void scale(float *values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) {
    return; // only if the last block is not full
  }
  values[i] *= 2.0f;
}

void check(hipError_t error) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "scale: %s\n", hipGetErrorString(error));
    std::exit(1);
  }
}

int main(int argc, char **argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : BLOCK;
  std::vector<float> values(count, 1.5f);
  size_t bytes = count * sizeof(float);
  float *device = nullptr;
  check(hipMalloc(&device, bytes));
  check(hipMemcpy(device, values.data(), bytes, hipMemcpyHostToDevice));
  scale<<<(count + BLOCK - 1) / BLOCK, BLOCK>>>(device, count);
  check(hipGetLastError());
  check(hipMemcpy(values.data(), device, bytes, hipMemcpyDeviceToHost));
  check(hipFree(device));
  for (float value : values) {
    if (value != 3.0f) {
      std::fprintf(stderr, "scale: %g instead of 3\n", value);
      return 1;
    }
  }
  std::printf("scale: %d numbers\n", count);
}
