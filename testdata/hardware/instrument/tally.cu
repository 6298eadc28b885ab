// Adds to memory at lines that name the place: the count of such a line is what is there.
#ifdef SPLIT
extern "C" __device__ void step(unsigned *out, unsigned value);
#else
#include "step.cu"
#endif

extern "C" __global__ void tally(unsigned *out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  atomicAdd(out + 0, 1); // out 0
  if (i % 3 == 0)
    atomicAdd(out + 1, 1); // out 1
#pragma unroll 1
  for (unsigned turn = 0; turn < i % 5; ++turn)
    atomicAdd(out + 2, 1); // out 2
  if (i & 1)
    step(out, i);
}
