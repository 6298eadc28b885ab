// A code object without counters: NUMBER makes two of them, of one size.

extern "C" __attribute__((global)) void only(int *out) { *out = NUMBER; }
