#include "shapes.h"

#include <cstring>

struct Square : Shape {
  int side;
  explicit Square(int side) : side(side) {}
  int area() const override { return side * side; }
};

struct Line : Shape {
  int area() const override { return 0; }
};

int successor(int number) { return number + 1; }
int twice(int number) { return number * 2; }
int clipped(int number) { return number > 4 ? number : -number; }

extern "C" Shape *square_or_line(int number) {
  if (number % 3)
    return new Square(number);
  return new Line;
}

extern "C" Function of_first(int number) {
  Function functions[] = {successor, twice, clipped};
  return functions[number % 3];
}

extern "C" int apply(Function function, int number) { return function(number); }

extern "C" void copy(char *to, const char *from, unsigned long size) {
  memcpy(to, from, size);
  if (size > 40)
    memset(to, 1, size / 3);
}
