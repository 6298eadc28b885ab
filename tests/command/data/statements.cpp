// A function whose hash in a profile is a digest: more than 10 statements and operators.
extern "C" int atoi(const char *);

int steps(int number, int limit) {
  int sum = 0;
  for (int i = 0; i < number; ++i) {
    switch (i % 4) {
    case 0:
      sum += limit;
      break;
    case 1:
      continue;
    default:
      if ((number > limit && i > 3) || limit < 2)
        sum -= i;
    }
  }
  do {
    if (sum > 100)
      break;
    sum += 7;
  } while (sum < 50);
  return sum ? sum : number;
}

int main(int count, char **) { return steps(100 * count, 5) == 1; }
