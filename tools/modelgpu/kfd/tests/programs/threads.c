// Threads open the driver's files while others fork, and children open them before exec.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 50 };

static int failures;

static void fail(const char *what) {
  printf("%s\n", what);
  __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static int touch_everything(void) {
  DIR *directory = opendir("/proc/self/fd");
  FILE *file = fopen("/proc/modules", "r");
  int device = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  int fine = directory && file && device >= 0;
  if (directory) closedir(directory);
  if (file) fclose(file);
  close(device);
  return fine;
}

static void *work(void *unused) {
  for (int round = 0; round < ROUNDS; round++) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
      if (!touch_everything()) _exit(2);
      execlp("true", "true", (char *)NULL);
      _exit(3);
    }
    if (!touch_everything()) fail("the parent cannot open a file");
    waitpid(child, &status, 0);
    if (status != 0) fail("the child failed");
  }
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("finished, failures: %d\n", failures);
  return failures != 0;
}
