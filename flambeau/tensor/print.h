// Tensors as text, as PyTorch prints them.
#pragma once
#include <optional>
#include <string>

#include "flambeau/tensor/tensor.h"

namespace fl {

/// As torch.set_printoptions.
struct PrintOptions {
  int precision = 4;         ///< digits after the point
  int64_t threshold = 1000;  ///< more elements than this are summarised
  int64_t edge_items = 3;    ///< shown at each end of a summarised dimension
  int64_t line_width = 80;
  std::optional<bool> sci_mode = std::nullopt;  ///< nothing: decided by the values
  DType default_dtype = DType::Float32;         ///< not mentioned after the elements
  std::string prefix = "tensor";                ///< the class's name
};
std::string to_string(const Tensor& t, const PrintOptions& options = {});

/// What autograd appends: "requires_grad=True", "grad_fn=<AddBackward0>", or nothing.
using PrintSuffix = std::string (*)(const Tensor& t);
void set_print_suffix(PrintSuffix suffix);

}  // namespace fl
