// Functions of a header: one is used, one is not.
__device__ inline int shared(int value) { return value > 3 || value < -3 ? value : 0; }

__device__ inline int unused(int value) {
  if (value)
    return 1;
  return 2;
}
