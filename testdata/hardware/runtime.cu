// A program with the CUDA runtime. It does what its arguments say, one after the other:
//
//   h:N c:N w:N      launches histogram, collatz or weigh N times, in the default stream
//   hold:MS          keeps the default stream busy for so long; counts nothing
//   sync             waits for the device
//   streams:N        makes N streams, and launches histogram in each
//   threads:N        N threads launch histogram and collatz once each, in streams of their own
//   graph:N          captures histogram and collatz, and launches the graph N times
//   push:NAME pop start stop dump:NAME drain zero     call functions of rocov.h
//   reset            resets the device
//   fork             a child, which starts CUDA by itself, launches histogram once
//   fork-idle        a child ends at once
//   ready            says so, and waits for a line of standard input
//   open:FILE close  opens a library, has it launch histogram once and collatz once, and closes it
//   exit:N           ends with this status
//   _exit:N kill     end in other ways
//
// With LIBRARY, the file is a library with the function `dose` alone.
#include "doses.h"
#ifdef WITH_OTHER
#include "other.h"
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    const cudaError_t error = (call);                                                                                  \
    if (error != cudaSuccess) {                                                                                        \
      std::printf("%s: %s\n", #call, cudaGetErrorString(error));                                                       \
      std::fflush(stdout);                                                                                             \
      _exit(99);                                                                                                       \
    }                                                                                                                  \
  } while (0)

namespace {

struct Memory {
  float *values = nullptr;
  unsigned *bins = nullptr, *numbers = nullptr;

  void allocate() {
    if (values != nullptr)
      return;
    float host[VALUES];
    for (unsigned i = 0; i < VALUES; ++i)
      host[i] = (float)(i % 13) - 1.5f;
    CHECK(cudaMalloc(&values, sizeof host));
    CHECK(cudaMalloc(&bins, BINS * sizeof *bins));
    CHECK(cudaMalloc(&numbers, VALUES * sizeof *numbers));
    CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(bins, 0, BINS * sizeof *bins));
  }
} memory;

void launch_histogram(cudaStream_t stream = nullptr) {
  memory.allocate();
  histogram<<<BLOCKS, THREADS, 0, stream>>>(memory.values, VALUES, memory.bins);
  CHECK(cudaGetLastError());
}

void launch_collatz(cudaStream_t stream = nullptr) {
  memory.allocate();
  collatz<<<BLOCKS, THREADS, 0, stream>>>(memory.numbers, VALUES);
  CHECK(cudaGetLastError());
}

} // namespace

extern "C" void dose(int histograms, int collatzes) {
  for (int i = 0; i < histograms; ++i)
    launch_histogram();
  for (int i = 0; i < collatzes; ++i)
    launch_collatz();
}

#ifndef LIBRARY

__global__ __attribute__((no_profile_instrument_function)) void hold(long long nanoseconds) {
  long long from, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - from < nanoseconds);
}

namespace {

void *opened;

void in_a_thread() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  launch_histogram(stream);
  launch_collatz(stream);
}

void launch_graph(int times) {
  memory.allocate();
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch_histogram(stream);
  launch_collatz(stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < times; ++i)
    CHECK(cudaGraphLaunch(executable, stream));
}

// Calls a function of rocov.h, if librocov is there.
void call(const char *name, const char *argument = nullptr) {
  void *const found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr)
    return;
  const int status = argument != nullptr ? reinterpret_cast<int (*)(const char *)>(found)(argument)
                                         : reinterpret_cast<int (*)()>(found)();
  std::printf("%s: %d\n", name, status);
}

void in_a_child(bool is_idle) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (!is_idle) {
      launch_histogram();
      CHECK(cudaDeviceSynchronize());
    }
    std::exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::printf("the child ended with %d\n", status);
    _exit(99);
  }
}

} // namespace

int main(int count, char **steps) {
  for (int at = 1; at < count; ++at) {
    char *step = steps[at], *text = std::strchr(step, ':');
    if (text != nullptr)
      *text++ = '\0';
    const int number = text != nullptr ? std::atoi(text) : 0;
    const auto is = [step](const char *name) { return std::strcmp(step, name) == 0; };
    if (is("h")) {
      dose(number, 0);
    } else if (is("c")) {
      dose(0, number);
#ifdef WITH_OTHER
    } else if (is("w")) {
      memory.allocate();
      for (int i = 0; i < number; ++i)
        weigh<<<BLOCKS, THREADS>>>(memory.numbers, VALUES);
      CHECK(cudaGetLastError());
#endif
    } else if (is("hold")) {
      hold<<<1, 1>>>(1000000LL * number);
      CHECK(cudaGetLastError());
    } else if (is("sync")) {
      CHECK(cudaDeviceSynchronize());
    } else if (is("streams")) {
      memory.allocate();
      for (int i = 0; i < number; ++i) {
        cudaStream_t stream;
        CHECK(cudaStreamCreateWithFlags(&stream, i % 2 == 0 ? cudaStreamDefault : cudaStreamNonBlocking));
        hold<<<1, 1, 0, stream>>>(200000000LL);
        launch_histogram(stream);
      }
    } else if (is("threads")) {
      memory.allocate();
      std::vector<std::thread> threads;
      for (int i = 0; i < number; ++i)
        threads.emplace_back(in_a_thread);
      for (std::thread &thread : threads)
        thread.join();
    } else if (is("graph")) {
      launch_graph(number);
    } else if (is("push")) {
      call("rocov_label_push", text);
    } else if (is("pop")) {
      call("rocov_label_pop");
    } else if (is("start")) {
      call("rocov_start");
    } else if (is("stop")) {
      call("rocov_stop");
    } else if (is("dump")) {
      call("rocov_dump", text);
    } else if (is("drain")) {
      call("rocov_drain");
    } else if (is("zero")) {
      call("rocov_reset");
    } else if (is("reset")) {
      CHECK(cudaDeviceSynchronize());
      CHECK(cudaDeviceReset());
      memory = {};
    } else if (is("fork")) {
      in_a_child(false);
    } else if (is("fork-idle")) {
      in_a_child(true);
    } else if (is("ready")) {
      char line[80];
      std::printf("ready\n");
      std::fflush(stdout);
      if (std::fgets(line, sizeof line, stdin) == nullptr)
        std::printf("standard input ended\n");
    } else if (is("open")) {
      opened = dlopen(text, RTLD_NOW);
      if (opened == nullptr) {
        std::printf("%s\n", dlerror());
        return 99;
      }
      reinterpret_cast<void (*)(int, int)>(dlsym(opened, "dose"))(1, 1);
    } else if (is("close")) {
      CHECK(cudaDeviceSynchronize());
      dlclose(opened);
    } else if (is("exit")) {
      std::printf("done\n");
      return number;
    } else if (is("_exit")) {
      std::printf("done\n");
      std::fflush(stdout);
      _exit(number);
    } else {
      std::printf("unknown step %s\n", step);
      return 99;
    }
  }
  std::printf("done\n");
}

#endif
