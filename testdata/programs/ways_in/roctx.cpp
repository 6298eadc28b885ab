// A substitute for libroctx64.so: prints its calls, and returns its own levels.
#include <cstdio>

static int level = 10;

extern "C" void roctxMarkA(const char *message) { std::printf("mark %s\n", message); }

extern "C" int roctxRangePushA(const char *message) {
  std::printf("push %.5s\n", message);
  return level++;
}

extern "C" int roctxRangePop() {
  std::printf("pop\n");
  return --level;
}
