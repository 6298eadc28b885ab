// Runs the kernel once before a ROCTx mark, in a range, in one within that, again in the outer one, and
// after all; prints what ROCTx tells a tracer, and the levels that it answers.
#include "tally.h"
#include <cstdio>
#include <string>

extern "C" {
int roctxRangePushA(const char *message);
int roctxRangePop();
void roctxMarkA(const char *message);
// librocov does not have it.
void roctxRegisterTracerCallback(int (*callback)(unsigned domain, unsigned operation, void *data)) __attribute__((weak));
}

static int trace(unsigned, unsigned operation, void *data) {
  const char *message = *static_cast<const char **>(data);
  std::printf("operation %u %.5s\n", operation, message ? message : "-");
  return 0;
}

int main() {
  if (roctxRegisterTracerCallback)
    roctxRegisterTracerCallback(trace);
  // 130 bytes are too many for a label.
  std::string no_label(130, 'x');
  int error = run_tally(1);
  roctxMarkA("start up");
  int outer = roctxRangePushA("train");
  error |= run_tally(1);
  int inner = roctxRangePushA("step 1");
  error |= run_tally(1);
  int odd = roctxRangePushA(no_label.c_str());
  int odd_end = roctxRangePop();
  int inner_end = roctxRangePop();
  error |= run_tally(1);
  int outer_end = roctxRangePop();
  int none = roctxRangePop();
  error |= run_tally(1);
  std::printf("levels: %d %d %d %d %d %d %d\n", outer, inner, odd, odd_end, inner_end, outer_end, none);
  return error != 0;
}
