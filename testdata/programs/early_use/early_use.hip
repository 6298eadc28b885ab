// A kernel that uses a loaded value without waiting for it: on a GPU, the register still has its old value.
#include "../hip.h"

constexpr int count = 64;

extern "C" __global__ void increments(int *memory) {
  int value;
  int *place = memory + threadIdx.x;
  asm volatile("global_load_dword %0, %1, off\n\tv_add_u32 %0, 1, %0" : "=&v"(value) : "v"(place));
  *place = value;
}

int main() {
  int *memory;
  if (hipMalloc(&memory, count * sizeof *memory) != hipSuccess) return 2;
  if (hipMemset(memory, 0, count * sizeof *memory) != hipSuccess) return 2;
  increments<<<1, count>>>(memory);
  if (hipDeviceSynchronize() != hipSuccess) return 3;
  return 0;
}
