// The half of the PyTorch extension that binds the kernel: `torch.ops.load_library` loads it.
#include "extension.h"

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

namespace {

void histogram(const at::Tensor &values, const at::Tensor &bins) {
  launch_histogram(values.const_data_ptr<float>(), static_cast<unsigned>(values.numel()),
                   reinterpret_cast<unsigned *>(bins.data_ptr<int>()), c10::cuda::getCurrentCUDAStream().stream());
}

} // namespace

TORCH_LIBRARY(rocov_doses, library) { library.def("histogram(Tensor values, Tensor bins) -> ()", &histogram); }
