// Loads a code object and launches its kernel `count` in a sandbox (seccomp) that allows no new threads.
//
//   threadless CODE_OBJECT
#include "count.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// New threads fail from here on.
static void forbid_threads(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void copy(void *to, hsa_agent_t its, const void *from, hsa_agent_t other) {
  hsa_signal_t done = new_signal(1);
  CHECK_HSA(hsa_amd_memory_async_copy(to, its, from, other, sizeof(unsigned), 0, NULL, done));
  wait_done(done);
  CHECK_HSA(hsa_signal_destroy(done));
}

static void *nothing(void *unused) { return unused; }

int main(int argc, char **argv) {
  pthread_t thread;
  if (argc != 2)
    return 2;
  start();
  hsa_queue_t *queue = new_queue(gpus[0]);
  struct count_arguments *arguments = new_arguments(0);
  // ROCr creates its own queues for copies, and the model a thread for each, at their first use.
  unsigned *host = allocate_host(sizeof *host);
  copy(host, cpu, arguments->out, gpus[0]);
  copy(arguments->out, gpus[0], host, cpu);
  const int files = open_files();
  forbid_threads();
  CHECK(pthread_create(&thread, NULL, nothing, NULL) == EPERM);
  hsa_executable_t executable = load(argv[1], gpus[0]);
  CHECK(open_files() == files);
  count(queue, count_kernel(executable, 0), arguments);
  CHECK_HSA(hsa_executable_destroy(executable));
  CHECK_HSA(hsa_queue_destroy(queue));
  CHECK(open_files() == files);
  CHECK_HSA(hsa_shut_down());
  return finish();
}
