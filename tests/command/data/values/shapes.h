// A program and two libraries whose calls cross each other.
#pragma once

struct Shape {
  virtual int area() const = 0;
  virtual ~Shape() {}
};

using Function = int (*)(int);

extern "C" {
Shape *square_or_line(int);
Shape *cube_or_point(int);
int total(Shape **, int);
Function of_first(int);
Function of_second(int);
int apply(Function, int);
void copy(char *, const char *, unsigned long);
}
