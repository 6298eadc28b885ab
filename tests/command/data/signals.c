/* Says when it can be sent signals, then one word for each that comes; SIGTERM ends it with
 * status 7. The words are written by the handlers: a shell's traps run later, and would make one
 * of two signals. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void say(const char *word) {
  if (write(1, word, strlen(word)) < 0)
    _exit(1);
}

static void handle(int number) {
  switch (number) {
  case SIGUSR1:
    say("usr1\n");
    break;
  case SIGINT:
    say("int\n");
    break;
  case SIGCONT:
    say("cont\n");
    break;
  default:
    say("term\n");
    _exit(7);
  }
}

int main(void) {
  signal(SIGUSR1, handle);
  signal(SIGINT, handle);
  signal(SIGCONT, handle);
  signal(SIGTERM, handle);
  say("ready\n");
  for (;;)
    pause();
}
