// Launches the kernel `count` of count.hip with HSA only, and lists the process's open files.
#pragma once

#include "hsa_check.h"

#include <dirent.h>

enum { GRID = 128, GROUP = 64 };

struct count_arguments {
  void *out;
  unsigned rounds;
};

// Arguments of one round on a GPU.
static inline struct count_arguments *new_arguments(int gpu) {
  struct count_arguments *arguments = allocate_arguments(sizeof *arguments);
  *arguments = (struct count_arguments){allocate_device(gpu, GRID * sizeof(unsigned)), 1};
  return arguments;
}

static inline void free_arguments(struct count_arguments *arguments) {
  CHECK_HSA(hsa_amd_memory_pool_free(arguments->out));
  CHECK_HSA(hsa_amd_memory_pool_free(arguments));
}

static inline uint64_t count_kernel(hsa_executable_t executable, int gpu) {
  return address_of(executable, "_Z5countPjj.kd", gpus[gpu]);
}

// Launches the kernel once and waits for its end.
static inline void count(hsa_queue_t *queue, uint64_t kernel, struct count_arguments *arguments) {
  hsa_signal_t done = new_signal(1);
  launch(queue, kernel, arguments, GRID, GROUP, done);
  wait_done(done);
  CHECK_HSA(hsa_signal_destroy(done));
}

static inline int open_files(void) {
  int files = 0;
  DIR *directory = opendir("/proc/self/fd");
  CHECK(directory != NULL);
  while (directory && readdir(directory))
    files++;
  closedir(directory);
  return files;
}
