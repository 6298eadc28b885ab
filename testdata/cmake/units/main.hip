// Halves numbers on the GPU.
#include <hip/hip_runtime.h>

void run_two(int *values, int count);

int main() {
  constexpr int count = 5;
  int values[count] = {10, 20, 30, 40, 50};
  int *on_gpu = nullptr;
  int error = hipMalloc(reinterpret_cast<void **>(&on_gpu), sizeof values);
  error |= hipMemcpy(on_gpu, values, sizeof values, hipMemcpyHostToDevice);
  run_two(on_gpu, count);
  error |= hipMemcpy(values, on_gpu, sizeof values, hipMemcpyDeviceToHost);
  return error != 0 || values[0] != 5 || values[4] != 25;
}
