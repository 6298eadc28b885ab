#pragma once

// The mean of a value and its neighbours, of which the first and the last one have one only.
__device__ inline float mean_at(const float *values, int count, int i) {
  float sum = values[i];
  int summed = 1;
  if (i > 0) {
    sum += values[i - 1];
    ++summed;
  }
  if (i + 1 < count) {
    sum += values[i + 1];
    ++summed;
  }
  return sum / summed;
}
