// A code object for loader.hip. Needs no HIP header.

extern "C" __attribute__((global)) void module_kernel() {}
