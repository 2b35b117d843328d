// A convolution's call in the library's terms: which tensor has which part in it, and its description.
#pragma once
#include "flambeau/library/convolution.h"

#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {

/// A tensor of the call: a result or an operand.
struct CallPlace {
  bool is_result = false;
  int index = -1;
};

/// The parts in a call. A transposed convolution is the gradient by the input of a plain one, and its
/// gradient by the input is a plain one: `input` is the image on the large side.
struct ConvolutionRoles {
  library::ConvolutionPass pass;
  CallPlace input, weight, output, bias;
};

ConvolutionRoles convolution_roles(const CallArguments& call, bool transposed);

const OperandLayout& layout_at(const CallArguments& call, CallPlace place);

/// Sizes and geometry; the strides as the tensors have them. Raises RuntimeError where they do not fit.
library::ConvolutionDesc describe_convolution(const CallArguments& call, const ConvolutionRoles& roles);

library::ConvolutionDesc::Strides convolution_strides(const OperandLayout& image_or_weight);
bool is_channels_last(const OperandLayout& image_or_weight);
bool is_row_major(const OperandLayout& operand);

}  // namespace fl::runtime
