// A module with 10,000 counters: 100 kernels with 100 each.
#define ONE(i) if (number % (i + 2) == 0) sum += i;
#define TEN(i) ONE(i) ONE(i + 1) ONE(i + 2) ONE(i + 3) ONE(i + 4) ONE(i + 5) ONE(i + 6) ONE(i + 7) ONE(i + 8) ONE(i + 9)
#define KERNEL(name)                                                                                                   \
  extern "C" __global__ void name(unsigned *sums, unsigned count) {                                                    \
    const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;                                                     \
    unsigned sum = 0;                                                                                                  \
    TEN(0) TEN(10) TEN(20) TEN(30) TEN(40) TEN(50) TEN(60) TEN(70) TEN(80)                                             \
    ONE(90) ONE(91) ONE(92) ONE(93) ONE(94) ONE(95) ONE(96) ONE(97)                                                    \
    if (number < count)                                                                                                \
      sums[number] = sum;                                                                                              \
  }
#define KERNELS(ten)                                                                                                   \
  KERNEL(k##ten##0) KERNEL(k##ten##1) KERNEL(k##ten##2) KERNEL(k##ten##3) KERNEL(k##ten##4)                            \
  KERNEL(k##ten##5) KERNEL(k##ten##6) KERNEL(k##ten##7) KERNEL(k##ten##8) KERNEL(k##ten##9)

KERNELS(0) KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4)
KERNELS(5) KERNELS(6) KERNELS(7) KERNELS(8) KERNELS(9)
