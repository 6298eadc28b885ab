// Functions whose counters have names of all kinds: of the unit alone, shared with other units, and global.

static __device__ __attribute__((noinline)) int of_unit(int x) { return x > 3 ? x * 2 : x + 1; }

namespace {
__device__ __attribute__((noinline)) int unnamed(int x) { return x & 1 ? x * 3 : x; }
} // namespace

template <int N> __device__ __attribute__((noinline)) int shared(int x) { return x > N ? x - N : x; }

__device__ __attribute__((noinline)) int global(int x) { return x < 0 ? -x : x; }

__global__ void kernel(int *p) { p[0] = of_unit(p[1]) + unnamed(p[2]) + shared<5>(p[3]) + global(p[4]); }
