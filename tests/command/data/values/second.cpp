#include "shapes.h"

struct Cube : Shape {
  int side;
  explicit Cube(int side) : side(side) {}
  int area() const override { return 6 * side * side; }
};

struct Point : Shape {
  int area() const override { return 1; }
};

static int before(int number) { return number - 3; }
static int other(int number) { return number ^ 3; }

extern "C" Shape *cube_or_point(int number) {
  if (number & 1)
    return new Cube(number);
  return new Point;
}

extern "C" int total(Shape **shapes, int number) {
  int sum = 0;
  for (int i = 0; i < number; ++i)
    sum += shapes[i]->area();
  return sum;
}

extern "C" Function of_second(int number) { return number % 5 ? before : other; }
