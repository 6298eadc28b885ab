// Two kernels. One has a jump whose destination nobody knows before it runs, and which is not taken.
#include "../hip.h"

extern "C" __global__ void plain(int *sum) {
  if (threadIdx.x < 3) atomicAdd(sum, 1);
}

extern "C" __global__ void jumps(int *sum) {
  asm volatile(
      "s_cmp_eq_u32 s90, s90\n"
      "s_cbranch_scc1 1f\n"
      "s_setpc_b64 s[90:91]\n"
      "1:" ::: "s90", "s91", "scc");
  atomicAdd(sum, 1);
}

int main() {
  int *sum;
  if (hipMalloc(&sum, sizeof *sum) != hipSuccess) return 2;
  plain<<<1, 64>>>(sum);
  jumps<<<1, 64>>>(sum);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 3;
}
