// Kernels of all kinds that code objects distinguish, for any clang and without HIP's headers: from
// a header, with C linkage, local to the file, not instrumented, with scratch and spills, large.
#include "inlined.h"

#define GLOBAL __attribute__((global))

template GLOBAL void from_header<float>(float *, int);
template GLOBAL void from_header<double>(double *, int);

extern "C" GLOBAL void i(int *values) { values[0] = values[1] > 3 ? 1 : 2; }

namespace {
GLOBAL void local(int *values) { values[__builtin_amdgcn_workitem_id_x()] = 7; }
} // namespace
// A use of its address keeps it.
__attribute__((device, used)) void (*address_of_local)(int *) = local;

__attribute__((global, no_profile_instrument_function)) void uncounted(int *values) { *values = 3; }

GLOBAL void scratch(int *values, int index) {
  volatile int stack[24] = {};
  stack[index] = values[0];
  values[1] = stack[values[2]];
}

GLOBAL __attribute__((amdgpu_flat_work_group_size(1, 1024), amdgpu_num_vgpr(24))) void
spilling(double *values) {
  double kept[40];
#pragma unroll
  for (int at = 0; at < 40; ++at)
    kept[at] = values[at];
  __builtin_amdgcn_s_barrier();
#pragma unroll
  for (int at = 0; at < 40; ++at)
    values[39 - at] = kept[at] * kept[(at + 7) % 40];
}

IN_A_MACRO(in_a_macro)

// Accumulation registers: eight, by number.
GLOBAL void accumulating(int *values) {
  asm volatile("" ::: "a7");
  values[0] = 6;
}
