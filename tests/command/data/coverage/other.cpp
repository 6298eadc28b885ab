// A second object, which shares the header's functions.
#include "shapes.h"

int other(int value) {
  return used_by_one(value - 5) + LARGER(value, 2) + halved(4) + sign(value - 3);
}
