// Counts in copies of the counters, written by hand: the part of rocov's compiler plugin.
//
// Only `tally` has counters: its calls, and those below the limit. The other kernels do its work and add to its
// counters in copies, one for each of four workgroups in turn. On the host they call it.
#include "dev.h"

#define BY_HAND __attribute__((no_profile_instrument_function))

__global__ void tally(u32 *sums, u32 limit) {
  u32 i = global_x();
  if (i < limit)
    sums[i] += 1;
}
REGISTER_KERNEL(tally);

#ifdef __AMDGCN__

constexpr u32 COPIES = 4;
constexpr u32 COUNTERS = 2;
// Words from one copy to the next: 128 bytes.
constexpr u32 STRIDE = 16;

#ifndef DISTANCE
#define DISTANCE 8
#endif

extern "C" {
// Other memory of the program, in bytes, between the counters and the copies.
__attribute__((device, used, visibility("protected"))) char others[DISTANCE];

extern __attribute__((device, weak, visibility("hidden"))) const char __start___rocov_copies[];
extern __attribute__((device, weak, visibility("hidden"))) const char __stop___rocov_copies[];
__attribute__((device, visibility("protected"))) u64 first_area[COPIES * STRIDE];
// There is no room for a fifth copy at its end.
__attribute__((device, visibility("protected"))) u64 second_area[COPIES * STRIDE + STRIDE / 2];
}

template <int RANGES> struct Table {
  char magic[8];
  u32 version;
  u32 size;
  const void *start, *stop;
  const void *ranges[2 * RANGES];
};

#define TABLE __attribute__((device, used, section("__rocov_copies"), visibility("protected")))
#define COUNTER(number) (__start___llvm_prf_cnts + 8 * (number))
#define MAGIC {'r', 'o', 'c', 'o', 'v', 'c', 'p', 's'}

extern "C" {
// A copy has both counters.
TABLE Table<1> first_table = {
    MAGIC, 1, sizeof(Table<1>), first_area, first_area + COPIES * STRIDE, {COUNTER(0), COUNTER(COUNTERS)}};
// A copy has the second counter and then the first, with an empty range between them.
TABLE Table<3> second_table = {
    MAGIC,
    1,
    sizeof(Table<3>),
    second_area,
    second_area + COPIES * STRIDE + STRIDE / 2,
    {COUNTER(1), COUNTER(2), COUNTER(1), COUNTER(1), COUNTER(0), COUNTER(1)}};
// Another unit has the first area, too.
TABLE Table<1> third_table = {
    MAGIC, 1, sizeof(Table<1>), first_area, first_area + COPIES * STRIDE, {COUNTER(0), COUNTER(COUNTERS)}};

__attribute__((device, used, weak, visibility("protected"))) const void *__rocov_copies_bounds[2] = {
    __start___rocov_copies, __stop___rocov_copies};
}

static inline HELPER void add(u64 *counter) {
  __atomic_fetch_add((__attribute__((address_space(1))) u64 *)counter, 1, __ATOMIC_RELAXED);
}

__global__ BY_HAND void tally_in_copies(u32 *sums, u32 limit) {
  u64 *copy = first_area + block_x() % COPIES * STRIDE;
  u32 i = global_x();
  add(copy);
  if (i < limit) {
    add(copy + 1);
    sums[i] += 1;
  }
}

__global__ BY_HAND void tally_in_other_copies(u32 *sums, u32 limit) {
  u64 *copy = second_area + block_x() % COPIES * STRIDE;
  u32 i = global_x();
  add(copy + 1);
  if (i < limit) {
    add(copy);
    sums[i] += 1;
  }
}

#else

__global__ BY_HAND void tally_in_copies(u32 *sums, u32 limit) { tally(sums, limit); }
__global__ BY_HAND void tally_in_other_copies(u32 *sums, u32 limit) { tally(sums, limit); }

#endif
REGISTER_KERNEL(tally_in_copies);
REGISTER_KERNEL(tally_in_other_copies);
