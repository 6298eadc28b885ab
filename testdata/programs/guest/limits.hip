// Counts a launch, and has it drained where what a drain does would end the program or a thread of it, as its
// argument names: by SIGPIPE or by waiting for ever, of a line on standard error; by SIGXFSZ, of a profile
// above the limit for files; by unwinding, of a thread that is cancelled.

#include "../hip.h"

#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

static void check(bool good, const char *what) {
  if (!good) {
    std::printf("limits: %s\n", what);
    std::fflush(stdout);
    std::_Exit(1);
  }
}

// 256 calls for each launch.
extern "C" __global__ void counted(unsigned *sum) { atomicAdd(sum, 1); }

static void run_counted() {
  static unsigned *sum = nullptr;
  check(sum || hipMalloc(&sum, sizeof *sum) == hipSuccess, "hipMalloc");
  counted<<<4, 64>>>(sum);
  check(hipDeviceSynchronize() == hipSuccess, "the kernel");
}

// Returns -1 without librocov.
static int ask(const char *function, const char *argument = nullptr) {
  auto found = reinterpret_cast<int (*)(const char *)>(dlsym(RTLD_DEFAULT, function));
  return found ? found(argument) : -1;
}

// Standard error is a pipe from here on, with or without a reader.
static void say_to_a_pipe(bool has_reader) {
  int ends[2];
  check(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO, "a pipe");
  if (!has_reader) {
    close(ends[0]);
    return;
  }
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  while (write(ends[1], "full", 1) == 1) {
  }
  fcntl(ends[1], F_SETFL, 0);
}

static bool is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

static void *cancelled(void *) {
  pthread_cancel(pthread_self());
  check(ask("rocov_label_push", "of_a_thread") == 0, "rocov_label_push");
  run_counted();
  check(ask("rocov_label_pop") == 0, "rocov_label_pop");
  check(ask("rocov_drain") == 0, "rocov_drain");
  int state = PTHREAD_CANCEL_DISABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  check(state == PTHREAD_CANCEL_ENABLE, "the thread cannot be cancelled any more");
  pthread_setcancelstate(state, nullptr);
  pthread_testcancel();
  return nullptr;
}

int main(int argc, char **argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  run_counted();
  if (what == "unread") {
    say_to_a_pipe(false);
    check(ask("rocov_drain") == 0, "rocov_drain");
    check(!is_pending(SIGPIPE), "SIGPIPE is pending");
  } else if (what == "pending") {
    // The program's own signal, which it checks later.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    raise(SIGPIPE);
    say_to_a_pipe(false);
    check(ask("rocov_drain") == 0, "rocov_drain");
    check(is_pending(SIGPIPE), "SIGPIPE is not pending any more");
  } else if (what == "full") {
    say_to_a_pipe(true);
    check(ask("rocov_drain") == 0, "rocov_drain");
  } else if (what == "large") {
    const rlimit limit = {100, 100};
    check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    check(ask("rocov_drain") > 0, "rocov_drain");
    check(!is_pending(SIGXFSZ), "SIGXFSZ is pending");
  } else if (what == "cancel") {
    pthread_t thread;
    void *result = nullptr;
    check(pthread_create(&thread, nullptr, cancelled, nullptr) == 0, "the thread");
    pthread_join(thread, &result);
    check(result == PTHREAD_CANCELED, "the thread was not cancelled");
  } else {
    check(false, "unread, pending, full, large or cancel");
  }
  run_counted();
  std::puts("to its end");
  return 3;
}
