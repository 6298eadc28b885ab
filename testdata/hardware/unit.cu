// Another unit of runtime.cu.
#undef WEIGHT_ELSEWHERE
#define ONLY_WEIGHT
#include "other.h"
