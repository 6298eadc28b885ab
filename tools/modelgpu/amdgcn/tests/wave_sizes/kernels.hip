// Kernels whose lanes know of each other, for waves of 32 and 64 work-items of RDNA. Each work-item i reads
// in[i] and writes out[i].
#define DEVICE __attribute__((device))
#define GLOBAL extern "C" __attribute__((global))

typedef unsigned u32;
typedef unsigned long long u64;

static inline DEVICE u32 item() {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
         __builtin_amdgcn_workitem_id_x();
}

static inline DEVICE u32 lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

static inline DEVICE u64 ballot(bool predicate) {
#ifdef WAVE64
  return __builtin_amdgcn_ballot_w64(predicate);
#else
  return __builtin_amdgcn_ballot_w32(predicate);
#endif
}

// The lanes that are odd, and of these the ones in a branch.
GLOBAL void ballots(const u64 *in, u64 *out) {
  u32 i = item();
  u64 odd = ballot(in[i] & 1);
  if (in[i] & 2)
    odd ^= ballot(in[i] & 4);
  out[i] = odd;
}

// The wave's size and the lane.
GLOBAL void sizes(const u64 *, u64 *out) {
  out[item()] = static_cast<u64>(__builtin_amdgcn_wavefrontsize()) << 32 | lane();
}

// The first active lane's value, and the value of a lane that the first one chooses among those that
// every wave has.
GLOBAL void broadcasts(const u64 *in, u64 *out) {
  u32 i = item();
  u32 value = static_cast<u32>(in[i]);
  u32 from = __builtin_amdgcn_readfirstlane(value);
  u32 chosen = __builtin_amdgcn_readlane(value, from % 21);
  u32 first = 0;
  if (value & 2)
    first = __builtin_amdgcn_readfirstlane(value);
  out[i] = static_cast<u64>(chosen) << 32 | first;
}

// Sums over a row of 16 lanes by data-parallel primitives, and over 32 by the other row's last lane.
template <int Control> static inline DEVICE u32 shifted(u32 value) {
  return value + static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), Control,
                                                              0xf, 0xf, false));
}

GLOBAL void prefix_sums(const u64 *in, u64 *out) {
  const int row_shr = 0x110;
  u32 i = item();
  u32 sum = static_cast<u32>(in[i]);
  sum = shifted<row_shr | 1>(sum);
  sum = shifted<row_shr | 2>(sum);
  sum = shifted<row_shr | 4>(sum);
  sum = shifted<row_shr | 8>(sum);
  u32 below = __builtin_amdgcn_permlanex16(0, sum, ~0u, ~0u, true, false);
  out[i] = lane() & 16 ? sum + below : sum;
}

// Additions and products of floats that compilers put into dual instructions, some of which read what the
// other half writes.
GLOBAL void products(const u64 *in, u64 *out) {
  u32 i = item();
  float a = static_cast<float>(in[i] & 0xff), b = static_cast<float>(in[i] >> 8 & 0xff);
  float c = static_cast<float>(in[i] >> 16 & 0xff), d = static_cast<float>(in[i] >> 24 & 0xff);
  for (u32 round = 0; round < 3; ++round) {
    float x = a + b, y = c - d, z = a * 0.5f, w = b * 0.25f;
    a = y;
    b = x;
    c = z + w;
    d = z - w;
  }
  out[i] = static_cast<u64>(static_cast<u32>(static_cast<int>(64 * (a + c)))) << 32 |
           static_cast<u32>(static_cast<int>(64 * (b - d)));
}

// Loops that lanes leave one by one.
GLOBAL void divergent_loops(const u64 *in, u64 *out) {
  u32 i = item();
  u64 value = in[i] % 97 + 1;
  u64 rounds = 0;
  while (value != 1) {
    value = value & 1 ? 3 * value + 1 : value / 2;
    ++rounds;
  }
  out[i] = rounds;
}

// Carries from word to word, whose bits lie in a register of the wave's size.
GLOBAL void wide_sums(const u64 *in, u64 *out) {
  u32 i = item();
  __uint128_t sum = static_cast<__uint128_t>(in[i]) * 0x123456789abcdefull;
  for (u32 k = 0; k < 4; ++k)
    sum += sum << 7 | in[i];
  out[i] = static_cast<u64>(sum >> 64) ^ static_cast<u64>(sum);
}
