#include "shapes.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// More targets than a site of a profile has room for.
constexpr int kTargets = 320;

struct Own : Shape {
  int number;
  explicit Own(int number) : number(number) {}
  int area() const override { return number; }
};

template <int N> int add(int number) { return number + N; }
template <int N> void fill(Function *functions) {
  functions[N - 1] = add<N>;
  if constexpr (N > 1)
    fill<N - 1>(functions);
}

static int half(int number) { return number / 2; }

int main(int, char **arguments) {
  int seed = std::atoi(arguments[1]), sum = 0;
  Function functions[kTargets];
  fill<kTargets>(functions);
  for (int i = 0; i < 3000; ++i)
    sum += functions[(i % 7 * i + seed * 40) % kTargets](i);
  std::vector<Shape *> shapes;
  for (int i = 0; i < 100; ++i)
    shapes.push_back(i % 4 == 0   ? square_or_line(i + seed)
                     : i % 4 == 1 ? cube_or_point(i)
                     : i % 4 == 2 ? new Own(i)
                                  : cube_or_point(seed));
  sum += total(shapes.data(), 100);
  for (Shape *shape : shapes)
    sum += shape->area();
  for (int i = 0; i < 200; ++i) {
    Function function = i % 7 == 0   ? of_first(i)
                        : i % 7 < 3  ? of_second(i)
                        : i % 7 == 4 ? half
                                     : std::toupper;
    sum += apply(function, i) + function(seed);
  }
  std::vector<char> to(4000), from(4000);
  for (int i = 0; i < 2000; ++i)
    copy(to.data(), from.data(), i * seed % 300);
  for (int i = 1; i < 900; ++i) {
    std::memcpy(to.data(), from.data(), i * seed % 1500);
    sum += std::memcmp(to.data(), from.data(), i % 33);
  }
  std::printf("%d\n", sum);
}
