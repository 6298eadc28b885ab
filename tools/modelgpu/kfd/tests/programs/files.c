// Results of the file functions for the driver's files and for others, with every function name.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void show_stat(const char *how, int result, const struct stat *status) {
  if (result)
    printf("%s: %s\n", how, strerror(errno));
  else if (S_ISCHR(status->st_mode))
    printf("%s: character device minor %u\n", how, minor(status->st_rdev));
  else
    printf("%s: %s\n", how, S_ISDIR(status->st_mode) ? "directory" : "file");
}

static void show(const char *path) {
  struct stat status;
  struct statx extended;
  char resolved[PATH_MAX];
  printf("%s\n", path);
  show_stat("  stat", stat(path, &status), &status);
  show_stat("  lstat", lstat(path, &status), &status);
  show_stat("  fstatat", fstatat(AT_FDCWD, path, &status, 0), &status);
  int result = statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &extended);
  printf("  statx: %s\n", result ? strerror(errno) : S_ISCHR(extended.stx_mode) ? "device" : "other");
  printf("  access: %s\n", access(path, R_OK) ? strerror(errno) : "yes");
  printf("  faccessat: %s\n", faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) ? strerror(errno) : "yes");
  printf("  realpath: %s\n", realpath(path, resolved) ? "found" : strerror(errno));
  FILE *file = fopen(path, "r");
  printf("  fopen: %s\n", file ? "yes" : strerror(errno));
  if (file) fclose(file);
  int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  printf("  openat: %s\n", fd < 0 ? strerror(errno) : "yes");
  if (fd >= 0) {
    show_stat("  fstat", fstat(fd, &status), &status);
    // An ioctl of a terminal, which none of these files is.
    struct winsize size;
    int is_terminal = ioctl(fd, TIOCGWINSZ, &size) == 0;
    printf("  terminal: %s\n", is_terminal ? "yes" : strerror(errno));
    close(fd);
  }
  DIR *directory = opendir(path);
  printf("  opendir: %s\n", directory ? "yes" : strerror(errno));
  if (directory) closedir(directory);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) show(argv[i]);
  // A null path and a bad descriptor are errors, not crashes.
  errno = 0;
  const char *volatile none = NULL;
  printf("null: %d %s\n", open(none, O_RDONLY), strerror(errno));
  struct stat status;
  printf("closed: %d %s\n", fstat(999, &status), strerror(errno));
  // The program chooses the mode of a new file.
  char name[] = "/tmp/modelgpu-files-XXXXXX";
  int fd = mkstemp(name);
  close(fd);
  unlink(name);
  umask(0);
  fd = open(name, O_CREAT | O_WRONLY, 0640);
  fstat(fd, &status);
  printf("mode: %o\n", status.st_mode & 0777);
  unlink(name);
  return 0;
}
