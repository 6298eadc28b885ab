// Another module of driver.cpp.
#include "other.h"
