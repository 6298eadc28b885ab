// Uses a matrix instruction, which the modelled GPU does not execute.
#include "../kernels/dev.h"

typedef float Float4 __attribute__((ext_vector_type(4)));

__global__ void uses_matrix_core(float *out) {
  Float4 zero = {0, 0, 0, 0};
  Float4 sum = __builtin_amdgcn_mfma_f32_4x4x1f32(out[0], out[1], zero, 0, 0, 0);
  out[thread_x()] = sum.x;
}
