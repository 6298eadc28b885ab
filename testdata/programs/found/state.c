// Prints the calling thread's state after each of HSA's functions that librocov hooks. Before each
// call, the program sets the state to values that no program has by chance.
//
//   state CODE_OBJECT
#include "count.h"

#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <xmmintrin.h>

static void set_state(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &blocked, NULL);
  signal(SIGTERM, SIG_IGN);
  signal(SIGUSR2, SIG_DFL);
  CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
  umask(027);
  fesetround(FE_UPWARD);
  feclearexcept(FE_ALL_EXCEPT);
  feraiseexcept(FE_OVERFLOW);
  errno = EXDEV;
}

static void print_state(const char *after) {
  const int error = errno;
  const unsigned sse = _mm_getcsr();
  const int rounding = fegetround(), exceptions = fetestexcept(FE_ALL_EXCEPT);
  struct sigaction term, usr2;
  unsigned long long mask = 0;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  for (int number = 1; number < 65; number++)
    mask |= (unsigned long long)(sigismember(&blocked, number) == 1) << (number - 1);
  sigaction(SIGTERM, NULL, &term);
  sigaction(SIGUSR2, NULL, &usr2);
  const mode_t creation = umask(027);
  fesetround(FE_TONEAREST);
  printf("%s: errno %d, sse %#x, rounding %#x, exceptions %#x, mask %#llx, SIGTERM ignored %d, "
         "SIGUSR2 default %d, locale %s, umask %#o, files %d\n",
         after, error, sse, rounding, exceptions, mask, term.sa_handler == SIG_IGN,
         usr2.sa_handler == SIG_DFL, setlocale(LC_ALL, NULL), (unsigned)creation, open_files());
}

#define SHOW(call)                                                                           \
  do {                                                                                       \
    set_state();                                                                             \
    hsa_status_t shown_ = (call);                                                            \
    print_state(#call);                                                                      \
    CHECK_HSA(shown_);                                                                       \
  } while (0)

static void load_launch_and_unload(const char *path) {
  static char bytes[1 << 20];
  hsa_code_object_reader_t reader;
  hsa_executable_t executable;
  hsa_queue_t *queue;
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  CHECK(size > 0 && size < sizeof bytes && fclose(file) == 0);
  CHECK_HSA(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
  CHECK_HSA(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                      NULL, &executable));
  CHECK_HSA(hsa_executable_load_agent_code_object(executable, gpus[0], reader, NULL, NULL));
  SHOW(hsa_executable_freeze(executable, NULL));
  SHOW(hsa_queue_create(gpus[0], 1024, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX,
                        &queue));
  count(queue, count_kernel(executable, 0), new_arguments(0));
  CHECK_HSA(hsa_code_object_reader_destroy(reader));
  SHOW(hsa_executable_destroy(executable));
  SHOW(hsa_queue_destroy(queue));
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  SHOW(hsa_init());
  start();
  load_launch_and_unload(argv[1]);
  load_launch_and_unload(argv[1]);
  // This releases the last of two references.
  SHOW(hsa_shut_down());
  SHOW(hsa_shut_down());
  return finish();
}
