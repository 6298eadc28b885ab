// The launch of a kernel, between the two halves of the PyTorch extension.
#pragma once

void launch_histogram(const float *values, unsigned count, unsigned *bins, void *stream);
