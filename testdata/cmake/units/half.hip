#include <hip/hip_runtime.h>

__device__ int half_of(int value) {
  return value / 2;
}
