// The kernel of endings.hip, for a program that loads it as a module. Needs no HIP header.

extern "C" __attribute__((global)) void counted(unsigned *sum) {
  if (__builtin_amdgcn_workitem_id_x() < 16) {
    __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
  }
}
