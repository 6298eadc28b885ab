// A kernel whose counts follow from the launch's geometry: all of its T work-items make `rounds`
// loop turns, and T / 4 take the branch. Each value of SALT gives another code object. The source
// needs no header, so that every clang compiles it.
#define __global__ __attribute__((global))

#ifndef SALT
#define SALT 0
#endif

__global__ void count(unsigned *out, unsigned rounds) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
               __builtin_amdgcn_workitem_id_x();
  for (unsigned round = 0; round < rounds; ++round) {
    out[i] += SALT;
  }
  if (i % 4 == 3) {
    out[i] = i;
  }
}
