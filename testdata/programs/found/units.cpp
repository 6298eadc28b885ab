// Runs each linked translation unit of unit.hip once.
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define DECLARE(number) extern "C" __attribute__((weak)) int run_##number();
#define CALL(number) status += run_##number ? run_##number() : 0;

EACH(DECLARE)

int main() {
  int status = 0;
  EACH(CALL)
  return status;
}
