// Runs a kernel, then checks the effect of a drain on its host program, as its argument names. The
// drain comes from rocov_drain or from the end of the program.

#include "../hip.h"

#include <cerrno>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void check(bool good, const char *what) {
  if (!good) {
    std::fprintf(stderr, "guest: %s\n", what);
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

// The longest name that librocov demangles at the load, of a kind that needs much stack: 64 bytes.
// And a name just below the limit, for which libstdc++ needs 96 KiB.
template <int STARS> struct Stars {
  using Of = typename Stars<STARS - 1>::Of *;
};
template <> struct Stars<0> {
  using Of = unsigned;
};
__global__ void deep(Stars<56>::Of) {}
template <int... NUMBERS> __global__ void wide() {}
#define TEN(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7, x##8, x##9
#define FIFTY(x, a, b, c, d, e) TEN(x##a), TEN(x##b), TEN(x##c), TEN(x##d), TEN(x##e)
#define HUNDRED(x) FIFTY(x, 0, 1, 2, 3, 4), FIFTY(x, 5, 6, 7, 8, 9)
template __global__ void wide<HUNDRED(1), TEN(20), TEN(21), TEN(22), TEN(23)>();

static int drain() {
  auto drain = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "rocov_drain"));
  return drain ? drain() : -1;
}

static int dump(const char *label) {
  auto dump = reinterpret_cast<int (*)(const char *)>(dlsym(RTLD_DEFAULT, "rocov_dump"));
  return dump ? dump(label) : -1;
}

static std::string open_files() {
  std::string files;
  DIR *directory = opendir("/proc/self/fd");
  check(directory, "/proc/self/fd");
  while (const dirent *entry = readdir(directory)) {
    files += std::string(entry->d_name) + " ";
  }
  closedir(directory);
  return files;
}

// The thread's state in the C library and the CPU, set to values that no program has by chance.
static int state() {
  run_counted();
  sigset_t blocked, found;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  struct sigaction handler, left;
  std::memset(&handler, 0, sizeof handler);
  handler.sa_handler = SIG_IGN;
  sigaction(SIGTERM, &handler, nullptr);
  check(std::setlocale(LC_ALL, "C.UTF-8"), "setlocale");
  check(hipSetDevice(1) == hipSuccess, "hipSetDevice");
  const std::string files = open_files();
  std::fesetround(FE_UPWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_OVERFLOW);
  errno = EXDEV;
  const int status = drain();
  const int error = errno;
  const int exceptions = std::fetestexcept(FE_ALL_EXCEPT);
  check(status == 0, "rocov_drain");
  check(error == EXDEV, "errno has changed");
  check(std::fegetround() == FE_UPWARD, "the rounding mode has changed");
  check(exceptions == FE_OVERFLOW, "the floating-point exceptions have changed");
  pthread_sigmask(SIG_SETMASK, nullptr, &found);
  for (int signal = 1; signal < 65; signal++) {
    check(sigismember(&found, signal) == sigismember(&blocked, signal), "the signal mask has changed");
  }
  sigaction(SIGTERM, nullptr, &left);
  check(left.sa_handler == SIG_IGN, "a signal's disposition has changed");
  check(!std::strcmp(std::setlocale(LC_ALL, nullptr), "C.UTF-8"), "the locale has changed");
  int device = 0;
  check(hipGetDevice(&device) == hipSuccess && device == 1, "HIP's device has changed");
  check(open_files() == files, "open files have changed");
  return 0;
}

// Eleven launches, each written at once: six without a label, five with one label.
static int requests() {
  run_counted();
  check(drain() == 0, "rocov_drain");
  const std::string files = open_files();
  for (int round = 0; round < 5; round++) {
    run_counted();
    check(drain() == 0, "rocov_drain");
    run_counted();
    check(dump("asked") == 0, "rocov_dump");
    check(open_files() == files, "open files have changed");
  }
  return 0;
}

static void *load_on_thread(void *status) {
  run_counted();
  *static_cast<int *>(status) = 0;
  return nullptr;
}

static void *drain_on_thread(void *status) {
  *static_cast<int *>(status) = drain();
  return nullptr;
}

static int on_a_thread(size_t kib, void *(*work)(void *)) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  check(pthread_attr_setstacksize(&small, kib << 10) == 0, "the stack's size");
  pthread_t thread;
  int status = -1;
  check(pthread_create(&thread, &small, work, &status) == 0, "the thread");
  pthread_join(thread, nullptr);
  return status;
}

// From here on each of these system calls ends the program: a sandbox does not need them.
static int sandbox() {
  run_counted();
  constexpr int FORBIDDEN[] = {
      SYS_socket, SYS_connect,  SYS_bind,    SYS_execve,   SYS_execveat, SYS_fork,   SYS_vfork,
      SYS_ptrace, SYS_chown,    SYS_fchown,  SYS_fchownat, SYS_chmod,    SYS_fchmod, SYS_fchmodat,
      SYS_mount,  SYS_symlink,  SYS_link,    SYS_setuid,   SYS_setgid,   SYS_chdir,  SYS_fchdir,
      SYS_umask,  SYS_setrlimit, SYS_chroot, SYS_setsid,   SYS_personality, SYS_rt_sigaction,
  };
  constexpr unsigned COUNT = sizeof FORBIDDEN / sizeof *FORBIDDEN;
  sock_filter filter[COUNT + 3];
  filter[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (unsigned i = 0; i < COUNT; i++) {
    const unsigned to_kill = COUNT - i;
    filter[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(FORBIDDEN[i]),
                             static_cast<unsigned char>(to_kill), 0);
  }
  filter[COUNT + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[COUNT + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const sock_fprog program = {COUNT + 3, filter};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
  return 0;
}

int main(int argc, char **argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "state") {
    return state();
  }
  if (what == "stack") {
    run_counted();
    // The smallest stack of a useful thread.
    return on_a_thread(64, drain_on_thread);
  }
  if (what == "load") {
    // HIP itself needs up to 104 KiB, that of release 6.4.3 most.
    return on_a_thread(112, load_on_thread);
  }
  if (what == "requests") {
    return requests();
  }
  if (what == "sandbox") {
    return sandbox();
  }
  if (what == "forbidden") {
    sandbox();
    return chdir("/");
  }
  check(what == "run", "state, stack, load, requests, sandbox, forbidden or run");
  run_counted();
  return 0;
}
