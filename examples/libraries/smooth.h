#pragma once
#include <vector>

// Each value becomes the mean of itself and its neighbours. Returns false if there is no such GPU, and throws if
// one fails.
bool smooth_on_amd(std::vector<float> &values);
bool smooth_on_nvidia(std::vector<float> &values);
