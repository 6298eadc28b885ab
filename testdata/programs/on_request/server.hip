// A server that never ends by itself: each line on standard input is a request, and has an answer.
//
//   launch N   launches the kernel N times; answers with the number of launches so far
//   endless    launches a kernel that runs until the process is gone
//   fork       answers with the process id of a child that waits to be killed, and serves nobody
//   exec       becomes `sleep`
//   take FD    closes a descriptor that it has not opened, and puts a socket at that number
//   taken      answers with the number of bytes to read at each of these sockets and at its other end
//   quit       returns from main
//
// Its argument says what SIGTERM does: "default", "ignore", or "handler", which answers "handler"
// with the sender's process id and ends the program with status 7 by _exit.

#include "../hip.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

constexpr int GROUPS = 4;
constexpr int GROUP = 64;

static void check(hipError_t error, const char *what) {
  if (error != hipSuccess) {
    std::fprintf(stderr, "server: %s: %s\n", what, hipGetErrorString(error));
    std::_Exit(1);
  }
}

// 256 calls for each launch, 64 of them in the branch.
extern "C" __global__ void counted(unsigned *sum) {
  if (threadIdx.x < GROUP / 4) {
    atomicAdd(sum, 1);
  }
}

extern "C" __global__ void endless(volatile unsigned *stop) {
  while (*stop == 0) {
  }
}

static void on_term(int, siginfo_t *info, void *context) {
  char text[64];
  const int has_context = context != nullptr;
  const int length =
      std::snprintf(text, sizeof text, "handler %d %d\n", info->si_pid, has_context);
  const ssize_t written = write(STDOUT_FILENO, text, length);
  _exit(written == length ? 7 : 1);
}

static void dispose(const std::string &term) {
  struct sigaction action = {};
  if (term == "ignore") {
    action.sa_handler = SIG_IGN;
  } else if (term == "handler") {
    action.sa_sigaction = on_term;
    action.sa_flags = SA_SIGINFO;
  } else {
    action.sa_handler = SIG_DFL;
  }
  sigaction(SIGTERM, &action, nullptr);
}

// Numbers of sockets and of the other ends.
static std::vector<int> taken;

static void take(int number) {
  int ends[2];
  const bool good = socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
                    write(ends[1], "0123456789abcdef", 16) == 16 && dup2(ends[0], number) == number &&
                    close(ends[0]) == 0;
  taken.insert(taken.end(), {number, ends[1]});
  std::printf(good ? "taken\n" : "not taken\n");
}

static void print_taken() {
  for (int number : taken) {
    int bytes = -1;
    ioctl(number, FIONREAD, &bytes);
    std::printf("%d ", bytes);
  }
  std::printf("\n");
}

int main(int, char **arguments) {
  dispose(arguments[1]);
  unsigned *memory = nullptr;
  check(hipMalloc(&memory, 2 * sizeof *memory), "hipMalloc");
  check(hipMemset(memory, 0, 2 * sizeof *memory), "hipMemset");
  int launches = 0;
  std::string request;
  while (std::cin >> request && request != "quit") {
    if (request == "launch") {
      int more = 0;
      std::cin >> more;
      for (; more > 0; more--, launches++) {
        counted<<<GROUPS, GROUP>>>(memory);
      }
      check(hipDeviceSynchronize(), "counted");
      unsigned sum = 0;
      check(hipMemcpy(&sum, memory, sizeof sum, hipMemcpyDeviceToHost), "hipMemcpy");
      if (sum != static_cast<unsigned>(launches * GROUPS * GROUP / 4)) {
        return 1;
      }
      std::printf("%d\n", launches);
    } else if (request == "endless") {
      endless<<<1, 1>>>(memory + 1);
      check(hipGetLastError(), "endless");
      std::printf("endless\n");
    } else if (request == "fork") {
      std::fflush(nullptr);
      const pid_t child = fork();
      while (child == 0) {
        pause();
      }
      std::printf("%d\n", child);
    } else if (request == "exec") {
      execlp("sleep", "sleep", "60", nullptr);
    } else if (request == "take") {
      int number = -1;
      std::cin >> number;
      take(number);
    } else if (request == "taken") {
      print_taken();
    }
    std::fflush(nullptr);
  }
  return 0;
}
