/* Preloaded into a process that drains: makes a call of the C library on files below one directory
 * fail. The process selects the call with the functions at the end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum {
  OPEN, WRITE, READ, PWRITE, PREAD, SEEK, RENAME, LINK, MKDIR, UNLINK, LOCK, FLOCK, OPENDIR, READDIR,
  STAT, CLOSE, COUNT
};

static const char *const names[COUNT] = {
    "open",   "write", "read",  "pwrite",  "pread",   "seek", "rename", "link", "mkdir",
    "unlink", "lock",  "flock", "opendir", "readdir", "stat", "close"};
static long calls[COUNT];
static char directory[PATH_MAX];
static int is_paused;
static int only_links; /* As on NFS: no renaming that replaces nothing. */

static struct {
  int function; /* -1: none */
  long number;
  int error;
  int is_late; /* The call is made, and called a failure. */
} fault = {.function = -1};

static int is_below(const char *path) {
  return path && *directory && strncmp(path, directory, strlen(directory)) == 0;
}

static int is_of(int file) {
  char link[64], path[PATH_MAX];
  if (!*directory) {
    return 0;
  }
  /* A reader of a directory distinguishes its end from a failure by errno. */
  const int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length < 0) {
    return 0;
  }
  path[length] = 0;
  return is_below(path);
}

/* Returns whether this call fails. */
static int happens(int function) {
  return !is_paused && calls[function]++ == fault.number && function == fault.function;
}

static int fails(void) {
  errno = fault.error;
  return -1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define CALL(function, is_ours, call)                                                              \
  do {                                                                                             \
    if ((is_ours) && happens(function)) {                                                          \
      if (fault.is_late) {                                                                         \
        (void)!(call);                                                                             \
      }                                                                                            \
      return fails();                                                                              \
    }                                                                                              \
    return call;                                                                                   \
  } while (0)

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN_LIKE(name)                                                                            \
  int name(const char *path, int flags, ...) {                                                     \
    va_list arguments;                                                                             \
    va_start(arguments, flags);                                                                    \
    const mode_t mode = mode_of(flags, arguments);                                                 \
    va_end(arguments);                                                                             \
    CALL(OPEN, is_below(path), NEXT(name)(path, flags, mode));                                     \
  }
OPEN_LIKE(open)
OPEN_LIKE(open64)

ssize_t write(int file, const void *bytes, size_t length) {
  CALL(WRITE, is_of(file), NEXT(write)(file, bytes, length));
}

ssize_t read(int file, void *bytes, size_t length) {
  CALL(READ, is_of(file), NEXT(read)(file, bytes, length));
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t place) {
  CALL(PWRITE, is_of(file), NEXT(pwrite64)(file, bytes, length, place));
}

ssize_t pread64(int file, void *bytes, size_t length, off64_t place) {
  CALL(PREAD, is_of(file), NEXT(pread64)(file, bytes, length, place));
}

off64_t lseek64(int file, off64_t place, int from) {
  CALL(SEEK, is_of(file), NEXT(lseek64)(file, place, from));
}

int rename(const char *from, const char *to) { CALL(RENAME, is_below(to), NEXT(rename)(from, to)); }

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
  if (only_links && flags) {
    errno = EINVAL;
    return -1;
  }
  CALL(RENAME, is_below(to), NEXT(renameat2)(from_at, from, to_at, to, flags));
}

int link(const char *from, const char *to) { CALL(LINK, is_below(to), NEXT(link)(from, to)); }

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
  CALL(LINK, is_below(to), NEXT(linkat)(from_at, from, to_at, to, flags));
}

int mkdir(const char *path, mode_t mode) { CALL(MKDIR, is_below(path), NEXT(mkdir)(path, mode)); }

int unlink(const char *path) { CALL(UNLINK, is_below(path), NEXT(unlink)(path)); }

#define FCNTL_LIKE(name)                                                                           \
  int name(int file, int command, ...) {                                                           \
    va_list arguments;                                                                             \
    va_start(arguments, command);                                                                  \
    void *argument = va_arg(arguments, void *);                                                    \
    va_end(arguments);                                                                             \
    CALL(LOCK, command == F_SETLK && is_of(file), NEXT(name)(file, command, argument));            \
  }
FCNTL_LIKE(fcntl)
FCNTL_LIKE(fcntl64)

int flock(int file, int how) { CALL(FLOCK, is_of(file), NEXT(flock)(file, how)); }

/* Both return a null pointer on failure. */
DIR *opendir(const char *path) {
  if (is_below(path) && happens(OPENDIR)) {
    fails();
    return NULL;
  }
  return NEXT(opendir)(path);
}

struct dirent64 *readdir64(DIR *entries) {
  if (is_of(dirfd(entries)) && happens(READDIR)) {
    fails();
    return NULL;
  }
  return NEXT(readdir64)(entries);
}

int stat64(const char *path, struct stat64 *into) { CALL(STAT, is_below(path), NEXT(stat64)(path, into)); }

int fstat64(int file, struct stat64 *into) { CALL(STAT, is_of(file), NEXT(fstat64)(file, into)); }

/* Rust's library calls it without a path to check that it exists, which the header forbids. */
int any_statx(int file, const char *path, int flags, unsigned mask, void *into) __asm__("statx");
int any_statx(int file, const char *path, int flags, unsigned mask, void *into) {
  int (*next)(int, const char *, int, unsigned, void *) = dlsym(RTLD_NEXT, "statx");
  CALL(STAT, path && (*path ? is_below(path) : is_of(file)), next(file, path, flags, mask, into));
}

/* Closes the file in any case, like Linux. */
int close(int file) {
  const int is_ours = is_of(file);
  const int status = NEXT(close)(file);
  return is_ours && happens(CLOSE) ? fails() : status;
}

/* From now on, the call with this number, counted from 0, on files below `path` fails. */
void faults_arm(const char *path, const char *function, long number, int error, int is_late) {
  memset(calls, 0, sizeof calls);
  snprintf(directory, sizeof directory, "%s", path);
  fault.function = -1;
  for (int index = 0; index < COUNT; index++) {
    if (strcmp(function, names[index]) == 0) {
      fault.function = index;
    }
  }
  fault.number = number;
  fault.error = error;
  fault.is_late = is_late;
}

/* Sets whether files get new names only by links. */
void faults_only_links(int is_so) { only_links = is_so; }

/* Calls during the pause are not the drain's. */
void faults_pause(int pauses) { is_paused = pauses; }

/* Ends the faults; returns the number of calls of a function since `faults_arm`. */
long faults_disarm(const char *function) {
  fault.function = -1;
  for (int index = 0; index < COUNT; index++) {
    if (strcmp(function, names[index]) == 0) {
      return calls[index];
    }
  }
  return -1;
}
