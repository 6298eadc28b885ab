// Asks the driver to retry page faults, and prints its answer.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

// Of linux/kfd_ioctl.h, which needs headers that not every machine has.
#define AMDKFD_IOC_SET_XNACK_MODE _IOWR('K', 0x21, int32_t)

int main(void) {
  int32_t mode = 1;
  int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  int refused = ioctl(kfd, AMDKFD_IOC_SET_XNACK_MODE, &mode);
  const char *answer = refused ? strerror(errno) : "yes";
  mode = -1;
  ioctl(kfd, AMDKFD_IOC_SET_XNACK_MODE, &mode);
  printf("%s, then %d\n", answer, mode);
}
