// Each MARK names its block in the PTX, and counts its threads in memory for comparison.
__device__ unsigned long long expect[64];
#define ADD(k, n) atomicAdd(&expect[k], (unsigned long long)(n))
#define SEEN(k) asm volatile("{ .reg .b32 seen; mov.b32 seen, 0; } // MARK " #k)
#define MARK(k) do { SEEN(k); ADD(k, 1); } while (0)
extern "C" __global__ void barrier(unsigned *o, int n) {
  __shared__ unsigned s[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) { MARK(0); return; }
  MARK(1);
  s[threadIdx.x] = i * 7 + 1;
  __syncthreads();
  if (threadIdx.x % 3 == 0) { MARK(2); o[i] = s[threadIdx.x] ^ s[threadIdx.x / 2]; }
  else { MARK(3); o[i] = s[threadIdx.x]; }
}
extern "C" __global__ void collatz(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = i + 1; unsigned steps = 0;
  while (v != 1) {
    if (v & 1) { MARK(4); v = 3 * v + 1; } else { MARK(5); v /= 2; }
    if (++steps > 150) { MARK(6); o[i] = 0; return; }
  }
  MARK(7);
  o[i] = steps;
}
__device__ __noinline__ unsigned fib(unsigned n) {
  if (n < 2) { MARK(8); return n; }
  MARK(9);
  return fib(n - 1) + fib(n - 2);
}
__device__ __noinline__ unsigned mix(unsigned v, int r) {
  for (int k = 0; k < r; k++) { MARK(10); v = v * 1664525u + 1013904223u; if (v % 5 == 0) { MARK(11); return v ^ r; } }
  MARK(12);
  return v;
}
extern "C" __global__ void calls(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { MARK(13); o[i] = fib(i % 9); for (int k = 0; k < i % 4; k++) { MARK(14); o[i] += mix(i + k, i % 6); } }
}
extern "C" __global__ void cases(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = i;
  for (int k = 0; k < i % 7; k++) {
    switch ((v >> k) % 11) {
    case 0: MARK(15); v += 3; break;
    case 1: MARK(16); v ^= 0x55; break;
    case 2: MARK(17); v *= 7; break;
    case 3: MARK(18); v = v / 3 + k; break;
    case 4: MARK(19); v -= k; break;
    case 5: MARK(20); v |= 1024; break;
    case 6: MARK(21); v = ~v; break;
    case 7: MARK(22); v = __brev(v); break;
    case 8: MARK(23); v = __popc(v); break;
    default: MARK(24); v ^= v >> 5; break;
    }
  }
  o[i] = v;
}
__device__ __noinline__ void leave(unsigned *o, int i, int k) {
  if ((i + k) % 5 == 1) { MARK(25); o[i] = 77; asm volatile("exit;"); }
  MARK(26);
}
extern "C" __global__ void leaves(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int k = 0; k < 3; k++) { MARK(27); leave(o, i, k * 2); }
  MARK(28);
  o[i] = 5;
}
typedef unsigned (*step)(unsigned, int);
__device__ __noinline__ unsigned other(unsigned v, int r) { MARK(29); return v + r; }
__device__ step table[2] = {mix, other};
extern "C" __global__ void indirect(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { MARK(30); o[i] = table[i % 3 == 0](i, i % 5); MARK(31); }
}
#define TEST(b) if (v >> b & 1) { MARK(32); atomicXor(&o[i], 1u << b); }
extern "C" __global__ void bits(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = i * 2654435761u;
  TEST(0) TEST(1) TEST(2) TEST(3) TEST(4) TEST(5) TEST(6) TEST(7) TEST(8) TEST(9) TEST(10) TEST(11) TEST(12) TEST(13) TEST(14)
  TEST(15) TEST(16) TEST(17) TEST(18) TEST(19) TEST(20) TEST(21) TEST(22) TEST(23) TEST(24) TEST(25) TEST(26) TEST(27) TEST(28)
  if (v > 1u << 31) { MARK(33); o[i] ^= 3; } else { MARK(34); }
}
#define TURN(b) if (v >> b & 1) { MARK(35); o[i] ^= 1u << b; }
extern "C" __global__ void many(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (unsigned v = i * 2654435761u, k = 0; k < i % 4; k++, v = v * 5 + 1) {
    TURN(0) TURN(1) TURN(2) TURN(3) TURN(4) TURN(5) TURN(6) TURN(7) TURN(8) TURN(9) TURN(10) TURN(11) TURN(12) TURN(13) TURN(14)
    TURN(15) TURN(16) TURN(17) TURN(18) TURN(19) TURN(20) TURN(21) TURN(22) TURN(23) TURN(24) TURN(25) TURN(26) TURN(27) TURN(28)
  }
}
extern "C" __global__ void spin(unsigned *o, int n) {
  
#ifndef TURNS
#define TURNS (1u << 28)
#endif
  unsigned turns = TURNS + threadIdx.x * 16;
  for (unsigned k = 0; k < turns; k++) SEEN(36);
  ADD(36, turns);
  o[blockIdx.x * blockDim.x + threadIdx.x] = n;
}
extern "C" __global__ void votes(unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 40; k++) {
    unsigned mask = __activemask();
    if ((i * 31 + k * 17) % 37 == 5) { MARK(37); o[i] = k; return; }
    unsigned sum = __ballot_sync(mask, (i + k) % 2) & 0x3;
    if (sum % 3 == 1) { MARK(38); o[i] += 1; }
    __syncwarp();
  }
}
// A table of labels, which nvcc writes for no target here.
