// Counts by itself, too: its own counter has 8 bytes, and lanes add to it with a load and a store.
//
// It is compiled without HIP's headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

__device__ unsigned long long own;

__device__ __attribute__((noinline)) int halves(int number) {
  int steps = 0;
  while (number > 1 && (number % 3 != 0 || steps < 4)) {
    number /= 2;
    ++steps;
  }
  return steps;
}

__global__ void both(int *out, unsigned long long *theirs) {
  int i = __builtin_amdgcn_workitem_id_x();
  own += 1;
  theirs[i] += 2;
  if (i < 32)
    out[i] = 1;
  else
    out[i] = halves(i);
}
