// Uses the GPU only in a child, which ends with _exit, like test programs that give each test a
// separate process.

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void increment(int *value) { *value += 1; }

static int child() {
  int value = 41;
  int *device = on_device(&value, 1);
  increment<<<1, 1>>>(device);
  CHECK(hipDeviceSynchronize());
  to_host(&value, device, 1);
  return value == 42 ? 0 : 1;
}

int main() {
  const pid_t process = fork();
  if (process == 0) {
    _exit(child());
  }
  int status = 0;
  const bool ended = process > 0 && waitpid(process, &status, 0) == process;
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
