// A function of tally.cu, which may be linked from a file of its own.
extern "C" __device__ __noinline__ void step(unsigned *out, unsigned value) {
  atomicAdd(out + 3, 1); // out 3
  if (value & 2)
    atomicAdd(out + 4, 1); // out 4
}
