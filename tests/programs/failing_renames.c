/* Preloaded into a program: the first files that get a name with .profraw do not get it. FAILING_RENAMES has their number and the
 * number of the error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(const char *to) {
  static int left = -1, error;
  if (left < 0) {
    const char *setting = getenv("FAILING_RENAMES");
    if (!setting || sscanf(setting, "%d %d", &left, &error) != 2) {
      left = 0;
    }
  }
  if (!strstr(to, ".profraw") || left == 0) {
    return 0;
  }
  left--;
  errno = error;
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int rename(const char *from, const char *to) { return fails(to) ? -1 : NEXT(rename)(from, to); }

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
  return fails(to) ? -1 : NEXT(linkat)(from_at, from, to_at, to, flags);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
  return fails(to) ? -1 : NEXT(renameat2)(from_at, from, to_at, to, flags);
}
