// A kernel whose counters count one block in 8, as LLVM's own device code does from clang 23 on. The functions
// below stand for those of LLVM's runtime; compile without rocov's.
#include "../hip.h"

#include <cstdio>

#ifdef __HIP_DEVICE_COMPILE__
#define NOT_COUNTED __device__ __attribute__((used, no_profile_instrument_function))
extern "C" {
__device__ __attribute__((used)) int __llvm_profile_runtime = 0;
__device__ __attribute__((used)) unsigned long long raw_version __asm__("\001__llvm_profile_raw_version") = 11;

NOT_COUNTED void __llvm_profile_instrument_gpu(unsigned long long *counter, unsigned long long *uniform,
                                               unsigned long long step) {
  __scoped_atomic_fetch_add(counter, step, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  if (uniform)
    __scoped_atomic_fetch_add(uniform, step, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

NOT_COUNTED int __llvm_profile_sampling_gpu(int bits) {
  return __builtin_amdgcn_workgroup_id_x() % (1u << bits) == 0;
}
}
#endif

__global__ void sum_kernel(int *sum) {
  int own = threadIdx.x;
  if (own % 2)
    own = -own;         // of 32 in 64
  atomicAdd(sum, own);
}

int main() {
  int *sum = nullptr;
  int result = 0;
  if (hipMalloc(reinterpret_cast<void **>(&sum), sizeof *sum) != hipSuccess)
    return 1;
  (void)hipMemset(sum, 0, sizeof *sum);
  sum_kernel<<<64, 64>>>(sum);
  (void)hipMemcpy(&result, sum, sizeof result, hipMemcpyDeviceToHost);
  std::printf("%d\n", result);
  return 0;
}
