#pragma once

// The sum of the numbers from 0, computed on the GPU.
extern "C" int sum_of(int count);

// The count of these numbers in one of 16 bins; the first starts at `low`, and each is 1 wide.
extern "C" int bin_of_all(int count, int low, int bin);
