// Translation unit number UNIT of a program, with its own kernel, in which UNIT + 1 work-items take
// the branch. With SHARED it calls unit 0's function, which only -fgpu-rdc can link.
#include "../hip.h"

#define PASTE(name, number) name##number
#define NAME(name, number) PASTE(name, number)

#ifdef SHARED
#if UNIT == 0
__device__ int limit(int unit) { return unit > 0 ? unit + 1 : 1; }
#else
__device__ int limit(int unit);
#endif
#else
static __device__ int limit(int unit) { return unit > 0 ? unit + 1 : 1; }
#endif

extern "C" __global__ void NAME(unit_, UNIT)(unsigned *out) {
  int i = threadIdx.x;
  if (i < limit(UNIT)) {
    out[i] = i;
  }
}

extern "C" int NAME(run_, UNIT)() {
  unsigned *out;
  if (hipMalloc(&out, 64 * sizeof *out) != hipSuccess)
    return 1;
  NAME(unit_, UNIT)<<<1, 64>>>(out);
  return hipDeviceSynchronize() != hipSuccess;
}
