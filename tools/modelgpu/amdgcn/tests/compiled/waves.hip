// Kernels whose lanes, waves and workgroups know of each other: the operations that instrumentation uses
// to count. Each work-item i reads in[i] and writes out[i]. tests/compiled/main.rs computes the expected
// values.
#define DEVICE __attribute__((device))
#define GLOBAL extern "C" __attribute__((global))
#define NOINLINE __attribute__((device, noinline))

typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;

static inline DEVICE u32 item() {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
         __builtin_amdgcn_workitem_id_x();
}

static inline DEVICE u32 lanes_below(u64 mask) {
  return __builtin_amdgcn_mbcnt_hi(static_cast<u32>(mask >> 32),
                                   __builtin_amdgcn_mbcnt_lo(static_cast<u32>(mask), 0));
}

// The XCC, on a GPU that has several.
static inline DEVICE u32 xcc_id() {
#if defined(__gfx942__) || defined(__gfx950__)
  return __builtin_amdgcn_s_getreg(20 | 31 << 11);
#else
  return 0;
#endif
}

// In each branch: the number of its lanes, and the lane's place among them.
GLOBAL void ballots(const u64 *in, u64 *out) {
  u32 i = item();
  u64 odd = __builtin_amdgcn_ballot_w64(in[i] & 1);
  if (in[i] & 1) {
    u64 here = __builtin_amdgcn_ballot_w64(true);
    out[i] = static_cast<u64>(__builtin_popcountll(here)) << 32 | lanes_below(here);
  } else {
    u64 here = __builtin_amdgcn_ballot_w64(true);
    out[i] = (here ^ ~odd) << 40 | lanes_below(odd);
  }
}

// The first active lane's value, and the value of a lane that the first one chooses.
GLOBAL void broadcasts(const u64 *in, u64 *out) {
  u32 i = item();
  u32 value = static_cast<u32>(in[i]);
  u32 lane = __builtin_amdgcn_readfirstlane(value) & 63;
  u32 chosen = __builtin_amdgcn_readlane(value, lane);
  u32 first = 0;
  if (value & 2)
    first = __builtin_amdgcn_readfirstlane(value);
  out[i] = static_cast<u64>(chosen) << 32 | first;
}

// HW_ID, and XCC_ID in the high half.
GLOBAL void hardware_ids(const u64 *, u64 *out) {
  u32 hw_id = __builtin_amdgcn_s_getreg(4 | 31 << 11);
  out[item()] = static_cast<u64>(xcc_id()) << 32 | hw_id;
}

// The compute unit as an index into 256 copies: XCC, engine and unit, 4 bits each at most.
GLOBAL void copies(const u64 *in, u64 *out) {
  u32 unit = __builtin_amdgcn_s_getreg(4 | 8 << 6 | 3 << 11);
  u32 engine = __builtin_amdgcn_s_getreg(4 | 13 << 6 | 2 << 11);
  u32 copy = (xcc_id() << 6 ^ engine << 4 ^ unit) & 255;
  u32 i = item();
  __hip_atomic_fetch_add(&out[copy], in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Shifts by a different amount in each lane.
GLOBAL void shifts(const u64 *in, u64 *out) {
  u32 i = item();
  u64 value = in[i];
  u32 amount = i & 63;
  out[i] = (value << amount) ^ (value >> (63 - amount)) ^
           static_cast<u64>(static_cast<i64>(value) >> amount);
}

// The inclusive sum over the wave, by data-parallel primitives.
template <int Control, int Rows> static inline DEVICE u32 shifted(u32 value) {
  return value + static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), Control,
                                                              Rows, 0xf, false));
}

GLOBAL void prefix_sums(const u64 *in, u64 *out) {
  const int row_shr = 0x110, row_bcast_15 = 0x142, row_bcast_31 = 0x143;
  u32 i = item();
  u32 sum = static_cast<u32>(in[i]);
  sum = shifted<row_shr | 1, 0xf>(sum);
  sum = shifted<row_shr | 2, 0xf>(sum);
  sum = shifted<row_shr | 4, 0xf>(sum);
  sum = shifted<row_shr | 8, 0xf>(sum);
  sum = shifted<row_bcast_15, 0xa>(sum);
  sum = shifted<row_bcast_31, 0xc>(sum);
  u32 total = __builtin_amdgcn_readlane(sum, 63);
  out[i] = static_cast<u64>(total) << 32 | sum;
}

// Some lanes add to an address of their own, without the old value.
GLOBAL void adds(const u64 *in, u64 *out) {
  u32 i = item();
  if (in[i] % 3 == 0)
    __hip_atomic_fetch_add(&out[i ^ 1], in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Some lanes add twice to an address of their own, and store the old value.
GLOBAL void adds_with_results(const u64 *in, u64 *out) {
  u32 i = item();
  if (in[i] % 3 != 0)
    return;
  __hip_atomic_fetch_add(&out[i], in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  u64 old = __hip_atomic_fetch_add(&out[i], 5, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  out[i] = old * 2;
}

// All lanes of a branch add different values to one address. The compiler may make one atomic of it.
GLOBAL void adds_to_one(const u64 *in, u64 *out) {
  u32 i = item();
  if (in[i] & 1)
    __hip_atomic_fetch_add(&out[0], in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  else
    __hip_atomic_fetch_add(&out[1], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// One atomic for each wave, by its first active lane: the number of lanes in the branch.
GLOBAL void adds_for_waves(const u64 *in, u64 *out) {
  u32 i = item();
  if (in[i] % 5 < 2) {
    u64 here = __builtin_amdgcn_ballot_w64(true);
    if (lanes_below(here) == 0)
      __hip_atomic_fetch_add(&out[0], static_cast<u64>(__builtin_popcountll(here)),
                             __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
}

// Lanes leave the loop after different numbers of rounds; a counter in a register and one in memory.
GLOBAL void divergent_loops(const u64 *in, u64 *out) {
  u32 i = item();
  u64 rounds = 0;
  for (u64 value = in[i] % 97 + 1; value != 1; value = value & 1 ? 3 * value + 1 : value / 2) {
    rounds++;
    if (rounds % 4 == 0)
      __hip_atomic_fetch_add(&out[i], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
  out[i] = out[i] << 32 | rounds;
}

// Waves with an odd number end in the middle.
GLOBAL void ends(const u64 *in, u64 *out) {
  u32 i = item();
  out[i] = in[i];
  if (__builtin_amdgcn_readfirstlane(i / 64) & 1)
    __builtin_amdgcn_endpgm();
  out[i] = in[i] + 1;
}

static NOINLINE u64 fibonacci(u32 n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

GLOBAL void recursion(const u64 *in, u64 *out) {
  u32 i = item();
  out[i] = fibonacci(in[i] % 11);
}

static NOINLINE u64 plus_one(u64 value) { return value + 1; }
static NOINLINE u64 times_three(u64 value) { return value * 3; }
static NOINLINE u64 inverted(u64 value) { return ~value; }
// Calls in turn: another pointer, and itself.
static NOINLINE u64 fibonacci_of(u64 value) { return fibonacci(value % 9); }

typedef u64 (*function)(u64);
static __attribute__((device)) function const FUNCTIONS[4] = {plus_one, times_three, inverted,
                                                              fibonacci_of};

GLOBAL void indirect_calls(const u64 *in, u64 *out) {
  u32 i = item();
  u64 value = in[i];
  for (int round = 0; round < 3; round++)
    value = FUNCTIONS[(value ^ static_cast<u64>(round)) & 3](value);
  out[i] = value;
}
