// Asks the driver to retry page faults, and prints its answer.
#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(void) {
  struct kfd_ioctl_set_xnack_mode_args on = {.xnack_enabled = 1}, ask = {.xnack_enabled = -1};
  int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  int refused = ioctl(kfd, AMDKFD_IOC_SET_XNACK_MODE, &on);
  const char *answer = refused ? strerror(errno) : "yes";
  ioctl(kfd, AMDKFD_IOC_SET_XNACK_MODE, &ask);
  printf("%s, then %d\n", answer, ask.xnack_enabled);
}
