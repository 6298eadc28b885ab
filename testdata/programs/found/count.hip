// A kernel whose counts are the launch's geometry: of T work-items, all make `rounds` rounds and T
// / 4 take the branch. SALT makes other code objects of it.
// Needs no header, so that every clang compiles it.
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
