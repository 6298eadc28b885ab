// Compiled by the tests without HIP's headers: for the GPU as HIP, for the host as C++.
#ifdef __HIP__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#else
#define __host__
#define __device__
#endif

__host__ __device__ inline int halved(int value) {
  if (value % 2 != 0) {
    return (value - 1) / 2;
  }
  return value / 2;
}

#ifdef __HIP__
extern "C" __attribute__((global)) void kernel(int *value) {
  *value = halved(*value);
}
#else
int main() {
  return halved(4) + halved(6) - 5;
}
#endif
