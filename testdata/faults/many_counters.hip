// A kernel with so many counters that they do not fit into little remaining memory: 4,096 cases,
// each with its own counter.

#define CASE(n) case n: result += n * 7u; break;
#define CASES_8(n) \
  CASE(n) CASE(n + 1) CASE(n + 2) CASE(n + 3) CASE(n + 4) CASE(n + 5) CASE(n + 6) CASE(n + 7)
#define CASES_64(n) \
  CASES_8(n) CASES_8(n + 8) CASES_8(n + 16) CASES_8(n + 24) \
  CASES_8(n + 32) CASES_8(n + 40) CASES_8(n + 48) CASES_8(n + 56)
#define CASES_512(n) \
  CASES_64(n) CASES_64(n + 64) CASES_64(n + 128) CASES_64(n + 192) \
  CASES_64(n + 256) CASES_64(n + 320) CASES_64(n + 384) CASES_64(n + 448)

extern "C" __attribute__((global)) void many_counters(unsigned *data) {
  unsigned result = 0;
  switch (*data) {
    CASES_512(0) CASES_512(512) CASES_512(1024) CASES_512(1536)
    CASES_512(2048) CASES_512(2560) CASES_512(3072) CASES_512(3584)
  }
  *data = result;
}
