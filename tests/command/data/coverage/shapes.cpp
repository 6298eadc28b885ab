// Shapes of code whose regions llvm-cov treats each in its own way.
#include "shapes.h"

int other(int value);

static int unused(int value) {
  return value;
}

static int switched(int value) {
  switch (value) {
  case 0:
    value = 7;
    break;
  case 1: value = 8; // falls through
  case 2:
    value++;
  default:
    value += 2;
  }
  return value;
}

static int looped(int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    if (i == 3) continue;
    if (i == 100) break;
    sum += i;
  }
  while (true) {
    if (sum-- < 3) break;
  }
  do sum++; while (sum < 5);
  return sum;
}

static bool decided(bool a, bool b, bool c) {
  return (a && b) || (c && !a)
#ifdef NOT_DEFINED
         || c
#endif
      ;
}

static int early(int value) {
  if (value > 1000) {
    return 1;
  } else if (value > 10) { return 2; } else { value++; }

  // A comment between statements, and empty lines.

  auto lambda = [&](int by) {
    return value * by;
  }; auto again = [](int x) { return x ? 1 : 2; };
  return lambda(2) + again(0) + (1 == 1 ? 3 : 4);
}

#define MANY(x) do { if (x) { sum += LARGER(x, 3); } else { sum--; } } while (0)

int main(int argc, char **) {
  int sum = 0;
  for (int i = 0; i < 3; i++) sum += switched(i);
  sum += looped(5) + early(argc) + early(20);
  sum += decided(true, true, false) + decided(false, true, true) + decided(true, false, true);
  MANY(argc); MANY(argc - 1);
  sum += CLAMPED(1, argc, 3) + CLAMPED(5, argc, 7);
  sum += sign(argc) + sign(-2.5) + (int)sign(0.0f) + power<2>(3) + power<3>(2);
  sum += other(argc) + halved(argc);
  try { if (sum > 3) throw sum; sum = 4; } catch (int value) { sum = value; }
  if (argc > 5) goto end;
  sum = argc == 1 && sum != 3 ? 0 : 1;
end:
  return 0;
}
