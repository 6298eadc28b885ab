// Forks before and after the start of HSA, and starts another program from a child.
#include <sys/wait.h>
#include <unistd.h>

#include "hsa_check.h"

static int child_status(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Uses the GPU and ends with the number of failures.
static void use_gpu(void) {
  uint32_t back = 0;
  start();
  CHECK(gpu_count == 1);
  if (gpu_count) {
    void *device = allocate_device(0, 4096);
    CHECK_HSA(hsa_amd_memory_fill(device, 77, 1024));
    CHECK_HSA(hsa_memory_copy(&back, device, 4));
    CHECK(back == 77);
  }
}

int main(int argc, char **argv) {
  (void)argc;
  pid_t child = fork();
  if (child == 0) {
    use_gpu();
    CHECK_HSA(hsa_shut_down());
    fflush(stdout);
    _exit(failures);
  }
  CHECK(child_status(child) == 0);
  if (getenv("FORK_TEST_INNER")) return finish();

  use_gpu();
  // The child of a program that uses the GPU may end without using it.
  child = fork();
  if (child == 0) _exit(5);
  CHECK(child_status(child) == 5);
  // It may also become another program that starts HSA itself.
  child = fork();
  if (child == 0) {
    setenv("FORK_TEST_INNER", "1", 1);
    execv(argv[0], argv);
    _exit(9);
  }
  CHECK(child_status(child) == 0);
  // The parent's GPU still works.
  void *device = allocate_device(0, 4096);
  uint32_t back = 0;
  CHECK_HSA(hsa_amd_memory_fill(device, 78, 1024));
  CHECK_HSA(hsa_memory_copy(&back, device, 4));
  CHECK(back == 78);
  CHECK_HSA(hsa_shut_down());
  return finish();
}
