// Kernels that damage the description of their own profile, like a stray store.
#include "dev.h"

__global__ void innocent(u32 *out, u32 value) {
  if (global_x() == 0) {
    out[0] = value;
  }
}
REGISTER_KERNEL(innocent);

// Writes a word of the section bounds table, which starts as words 2 and 3: the counters' bounds.
__global__ void damage_table(u32 *, u32 word) {
  u64 *table = reinterpret_cast<u64 *>(&__llvm_profile_sections);
  if (global_x() == 0) {
    table[word] = 0x1234;
  }
}
REGISTER_KERNEL(damage_table);

// Gives the data record with this number a million counters. In raw version 10 a record has 64
// bytes, with the number of counters at byte 48. In version 11 (clang 23) it has 72, with that number
// at byte 56.
#if __clang_major__ >= 23
constexpr u32 RECORD = 18, COUNTERS = 14;
#else
constexpr u32 RECORD = 16, COUNTERS = 12;
#endif
__global__ void damage_record(u32 *, u32 number) {
  // Not through the symbol: it is constant, so the compiler may drop the store.
  u64 *table = reinterpret_cast<u64 *>(&__llvm_profile_sections);
  u32 *records = reinterpret_cast<u32 *>(table[4]);
  if (global_x() == 0) {
    records[number * RECORD + COUNTERS] = 1000000;
  }
}
REGISTER_KERNEL(damage_record);
