// Launches a kernel with known counts for each launch, and requests labels, windows and dumps in
// between, in the way that its argument names.

#include "../hip.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "rocov.h"

constexpr int GROUP = 64;
constexpr int THREADS = 4;

static void check(hipError_t error, const char *what) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "requests: %s: %s\n", what, hipGetErrorString(error));
    std::_Exit(1);
  }
}

// 64 calls for each launch, 16 of them in the branch; slow if `turns` is large.
extern "C" __global__ void counted(unsigned *sum, unsigned turns) {
  for (unsigned turn = 0; turn < turns; turn++) {
    __builtin_amdgcn_s_sleep(1);
  }
  if (threadIdx.x < GROUP / 4) {
    atomicAdd(sum, 1);
  }
}

template <typename Function> static Function *rocov(const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "requests: no %s\n", name);
    std::_Exit(1);
  }
  return reinterpret_cast<Function *>(found);
}
#define ROCOV(name) rocov<decltype(name)>(#name)

static void expect(RocovStatus found, RocovStatus expected, const char *what) {
  if (found != expected) {
    std::fprintf(stderr, "requests: %s answers %d, not %d\n", what, found, expected);
    std::_Exit(1);
  }
}

static void push(const char *label) {
  expect(ROCOV(rocov_label_push)(label), ROCOV_STATUS_OK, label);
}
static void pop() { expect(ROCOV(rocov_label_pop)(), ROCOV_STATUS_OK, "rocov_label_pop"); }

static unsigned *sum_on_device() {
  static unsigned *sum = [] {
    unsigned *memory = nullptr;
    check(hipMalloc(&memory, sizeof *memory), "hipMalloc");
    return memory;
  }();
  return sum;
}

static void launch(int times, unsigned turns = 0, hipStream_t stream = nullptr) {
  for (int time = 0; time < times; time++) {
    counted<<<1, GROUP, 0, stream>>>(sum_on_device(), turns);
  }
  check(hipGetLastError(), "counted");
}

// Only rocov waits for the kernels, at the end of a label or a window.
static void labels() {
  push("before the first launch");
  launch(1, 200);
  pop();
  launch(2);
  push("suite");
  launch(3, 200);
  push("a/b");
  launch(4, 200);
  expect(ROCOV(rocov_label_push)(".."), ROCOV_STATUS_INVALID, "..");
  launch(5);
  pop();
  pop();
  launch(6, 200);
  pop();
  expect(ROCOV(rocov_label_pop)(), ROCOV_STATUS_NOTHING, "a pop too many");
  launch(7);
}

static void windows() {
  launch(1, 200);
  expect(ROCOV(rocov_start)(), ROCOV_STATUS_OK, "rocov_start");
  expect(ROCOV(rocov_start)(), ROCOV_STATUS_NOTHING, "rocov_start in a window");
  launch(2, 200);
  expect(ROCOV(rocov_stop)(), ROCOV_STATUS_OK, "rocov_stop");
  expect(ROCOV(rocov_stop)(), ROCOV_STATUS_NOTHING, "rocov_stop out of a window");
  launch(4, 200);
  expect(ROCOV(rocov_dump)("outside"), ROCOV_STATUS_NOTHING, "a dump out of a window");
  expect(ROCOV(rocov_start)(), ROCOV_STATUS_OK, "rocov_start again");
  launch(8, 200);
  expect(ROCOV(rocov_dump)(nullptr), ROCOV_STATUS_OK, "a dump");
  expect(ROCOV(rocov_dump)("nothing"), ROCOV_STATUS_NOTHING, "a dump of nothing");
  launch(16, 200);
}

// Two threads, one after the other at each step, whose labels overlap.
static void threads() {
  std::atomic<int> step = 0;
  const auto at = [&step](int number, auto work) {
    while (step != number) {
      std::this_thread::yield();
    }
    work();
    step++;
  };
  const auto one = [&at] {
    at(0, [] { push("one"); launch(1); });
    at(2, [] { launch(4); });
    at(4, [] { pop(); launch(16); });
  };
  const auto other = [&at] {
    at(1, [] { push("the/other"); launch(2); });
    at(3, [] { launch(8); });
    at(5, [] { launch(32); pop(); });
  };
  std::thread first(one), second(other);
  first.join();
  second.join();
  // The end of a thread closes its open labels.
  std::thread([] { push("left open"); launch(128); }).join();
  launch(64);
}

// Dumps while threads launch, until this many dumps have found counts: on a busy machine, many find
// none. Prints the number of launches.
static void load(int dumps) {
  std::atomic<bool> stopped = false;
  std::vector<std::thread> launching;
  std::atomic<long> launches = 0;
  for (int thread = 0; thread < THREADS; thread++) {
    launching.emplace_back([&] {
      hipStream_t stream;
      check(hipStreamCreate(&stream), "hipStreamCreate");
      while (!stopped) {
        launch(1, 0, stream);
        launches++;
        check(hipStreamSynchronize(stream), "hipStreamSynchronize");
      }
      check(hipStreamDestroy(stream), "hipStreamDestroy");
    });
  }
  while (launches < THREADS) {
    std::this_thread::yield();
  }
  const auto dump = ROCOV(rocov_dump);
  for (int number = 0; number < dumps;) {
    const RocovStatus status = dump(nullptr);
    if (status == ROCOV_STATUS_NOTHING) {
      std::this_thread::yield();
      continue;
    }
    expect(status, ROCOV_STATUS_OK, "a dump under load");
    number++;
  }
  stopped = true;
  for (std::thread &thread : launching) {
    thread.join();
  }
  std::printf("%ld launches\n", launches.load());
}

// Repeats `work` while another thread starts HIP and launches once.
template <typename Work> static void while_hip_starts(Work work) {
  std::atomic<bool> started = false;
  std::thread starting([&started] {
    launch(1);
    check(hipDeviceSynchronize(), "the first launch");
    started = true;
  });
  while (!started) {
    work();
  }
  starting.join();
}

static void starting() {
  while_hip_starts([] {
    push("starting");
    const RocovStatus status = ROCOV(rocov_drain)();
    if (status != ROCOV_STATUS_NOTHING) {
      expect(status, ROCOV_STATUS_OK, "a drain while HIP starts");
    }
    pop();
  });
}

// The child calls only async-signal-safe functions, `work`, and _exit with the result of `work`.
template <typename Work> static void fork_and_wait(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(work());
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "requests: the child %d ends with %#x\n", child, status);
    std::_Exit(1);
  }
}

static void forks() {
  while_hip_starts([] { fork_and_wait([] { return 0; }); });
}

// Children make every kind of request while a thread of the parent drains.
static void orphans(int children) {
  const auto start = ROCOV(rocov_start), stop = ROCOV(rocov_stop), drain = ROCOV(rocov_drain),
             reset = ROCOV(rocov_reset), pop = ROCOV(rocov_label_pop);
  const auto dump = ROCOV(rocov_dump), push = ROCOV(rocov_label_push), set = ROCOV(rocov_set_file);
  launch(1);
  std::atomic<bool> stopped = false;
  std::thread draining([&] {
    while (!stopped) {
      drain();
    }
  });
  for (int child = 0; child < children; child++) {
    fork_and_wait([&] {
      const RocovStatus answers[] = {start(),     dump("orphan"), push("orphan"), pop(),
                                     stop(),      drain(),        reset(),        set("orphan"),
                                     dump(nullptr)};
      int others = 0;
      for (const RocovStatus answer : answers) {
        others += answer != ROCOV_STATUS_NOTHING;
      }
      return others;
    });
  }
  stopped = true;
  draining.join();
}

int main(int count, char **arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "labels") {
    labels();
  } else if (what == "windows") {
    windows();
  } else if (what == "threads") {
    threads();
  } else if (what == "load" && count > 2) {
    load(std::atoi(arguments[2]));
  } else if (what == "starting") {
    starting();
  } else if (what == "forks") {
    forks();
  } else if (what == "orphans" && count > 2) {
    orphans(std::atoi(arguments[2]));
  } else {
    std::fprintf(stderr, "requests: labels, windows, threads, load DUMPS, starting, forks or "
                         "orphans CHILDREN\n");
    return 1;
  }
  check(hipDeviceSynchronize(), "the last launches");
  return 0;
}
