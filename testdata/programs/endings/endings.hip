// Runs a kernel with known counts for each launch, then ends in the way that its argument names. If
// the program can choose its exit status, it is STATUS.

#include "../hip.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

constexpr int STATUS = 42;
constexpr int GROUPS = 4;
constexpr int GROUP = 64;

static void check(hipError_t error, const char *what) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "endings: %s: %s\n", what, hipGetErrorString(error));
    std::_Exit(1);
  }
}

// 256 calls for each launch, 64 of them in the branch.
extern "C" __global__ void counted(unsigned *sum) {
  if (threadIdx.x < GROUP / 4) {
    atomicAdd(sum, 1);
  }
}

// A copy of it, for launches while the program ends.
extern "C" __global__ void late(unsigned *sum) {
  if (threadIdx.x < GROUP / 4) {
    atomicAdd(sum, 1);
  }
}

static unsigned *sum_on_device() {
  static unsigned *sum = [] {
    unsigned *memory = nullptr;
    check(hipMalloc(&memory, sizeof *memory), "hipMalloc");
    return memory;
  }();
  return sum;
}

static void run_counted() {
  counted<<<GROUPS, GROUP>>>(sum_on_device());
  check(hipDeviceSynchronize(), "counted");
}

// Returns false if the runtime rejects the launch.
static bool run_late() {
  late<<<GROUPS, GROUP>>>(sum_on_device());
  return hipGetLastError() == hipSuccess && hipDeviceSynchronize() == hipSuccess;
}

// Runs `work` in a forked child and returns the end as a shell's status: the exit status, or 128
// plus the signal.
template <typename Work> static int in_child(Work work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::exit(STATUS);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static std::atomic<bool> stopped = false;
static std::atomic<int> late_launches = 0;
static std::vector<std::thread> threads;

static void launch_until_stopped() {
  while (!stopped && run_late()) {
    late_launches++;
  }
}

static void stop_threads() {
  stopped = true;
  for (std::thread &thread : threads) {
    thread.join();
  }
  std::printf("%d late launches\n", late_launches.load());
}

struct LaunchesWhenDestroyed {
  ~LaunchesWhenDestroyed() { std::printf("%d late launches\n", run_late()); }
};

static void exit_in_callback(hipStream_t, hipError_t, void *) { std::exit(STATUS); }

// Runs before the first load of a code object: exit handlers registered here run after those of a
// library that registers at that load.
// Set by a completion callback that takes its time.
static std::atomic<bool> has_called_back = false;

// Has ROCr call back on its own thread, as HIP does when a batch of kernels is complete.
static void call_back_slowly() {
  using Create = int(int64_t, uint32_t, const void *, uint64_t *);
  using Register = int(uint64_t, int, int64_t, bool (*)(int64_t, void *), void *);
  auto *create = reinterpret_cast<Create *>(dlsym(RTLD_DEFAULT, "hsa_signal_create"));
  auto *registers = reinterpret_cast<Register *>(dlsym(RTLD_DEFAULT, "hsa_amd_signal_async_handler"));
  const auto slow = [](int64_t, void *) {
    usleep(100'000);
    has_called_back = true;
    return false;
  };
  constexpr int EQUAL = 0;
  uint64_t signal = 0;
  if (create(0, 0, nullptr, &signal) != 0 || registers(signal, EQUAL, 0, slow, nullptr) != 0) {
    std::_Exit(1);
  }
}

static void begin(const std::string &ending) {
  if (ending == "completion") {
    // Runs after the exit handlers of code that is loaded later.
    std::atexit([] { std::printf("the callback has %s\n", has_called_back ? "ended" : "not ended"); });
  }
  if (ending == "destructor") {
    static LaunchesWhenDestroyed destroyed_at_exit;
  }
  if (ending == "threads") {
    std::atexit(stop_threads);
  }
}

static int end(const std::string &ending, char **arguments) {
  if (ending == "return") {
    return STATUS;
  }
  if (ending == "exit") {
    std::exit(STATUS);
  }
  if (ending == "quick_exit") {
    std::quick_exit(STATUS);
  }
  if (ending == "_exit") {
    _exit(STATUS);
  }
  if (ending == "_Exit") {
    std::_Exit(STATUS);
  }
  if (ending == "exception") {
    throw std::runtime_error("nobody catches this");
  }
  if (ending == "abort") {
    std::abort();
  }
  if (ending == "crash") {
    *static_cast<volatile int *>(nullptr) = 1;
  }
  if (ending == "pthread_exit") {
    std::thread([main = pthread_self()] {
      pthread_join(main, nullptr);
      run_counted();
      std::exit(STATUS);
    }).detach();
    pthread_exit(nullptr);
  }
  if (ending == "threads" || ending == "endless threads") {
    for (int thread = 0; thread < 2; thread++) {
      threads.emplace_back(launch_until_stopped);
    }
    if (ending == "endless threads") {
      for (std::thread &thread : threads) {
        thread.detach();
      }
    }
    while (late_launches == 0) {
      std::this_thread::yield();
    }
    std::exit(STATUS);
  }
  if (ending == "capture") {
    hipStream_t stream = nullptr;
    check(hipStreamCreate(&stream), "hipStreamCreate");
    check(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), "hipStreamBeginCapture");
    return STATUS;
  }
  if (ending == "SIGTERM") {
    std::raise(SIGTERM);
  }
  if (ending == "callback") {
    check(hipStreamAddCallback(nullptr, exit_in_callback, nullptr, 0), "hipStreamAddCallback");
    for (;;) {
      pause();
    }
  }
  if (ending == "completion") {
    call_back_slowly();
    return STATUS;
  }
  if (ending == "destructor") {
    return STATUS;
  }
  if (ending == "drain, abort" || ending == "drain, return") {
    if (auto drain = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "rocov_drain"))) {
      drain();
    }
    run_counted();
    if (ending == "drain, abort") {
      std::abort();
    }
    return STATUS;
  }
  if (ending == "handler") {
    std::signal(SIGSEGV, [](int) { _exit(STATUS); });
    std::raise(SIGSEGV);
  }
  if (ending == "fork after") {
    // The child of a program that has used the GPU cannot use it, and cannot run its exit handlers.
    const int child = in_child([] { _exit(STATUS); });
    run_counted();
    return child;
  }
  if (ending == "exec") {
    execlp("sh", "sh", "-c", "exit 42", nullptr);
  }
  if (ending == "exec itself") {
    char *next[] = {arguments[0], const_cast<char *>("return"), nullptr};
    execv("/proc/self/exe", next);
  }
  std::fprintf(stderr, "endings: no such ending: %s\n", ending.c_str());
  return 2;
}

int main(int, char **arguments) {
  const std::string ending = arguments[1];
  begin(ending);
  if (ending == "fork before") {
    const int child = in_child(run_counted);
    run_counted();
    return child;
  }
  if (ending == "fork between") {
    // HSA runs, and no code object is loaded yet.
    int devices = 0;
    if (hipGetDeviceCount(&devices) != hipSuccess || devices != 1) {
      return 2;
    }
    const int child = in_child([] {});
    std::fprintf(stderr, "the child has ended\n");
    run_counted();
    return child;
  }
  if (ending == "fork, child only") {
    return in_child([] {
      run_counted();
      _exit(STATUS);
    });
  }
  run_counted();
  return end(ending, arguments);
}
