// Images and weights of a convolution: sizes, strides, and the layouts that they fit.
#pragma once
#include <initializer_list>

#include "flambeau/library/convolution.h"

namespace fl::library {

/// An image or a weight.
struct ConvolutionOperand {
  std::array<int64_t, 5> sizes{1, 1, 1, 1, 1};
  ConvolutionDesc::Strides strides{};
  int rank = 0;

  /// Whether the strides are the layout's, whatever they are over dimensions of size 1.
  bool fits(ConvolutionDesc::Layout layout) const;
  ConvolutionDesc::Strides strides_of(ConvolutionDesc::Layout layout) const;
  int64_t count() const;
};

ConvolutionOperand input_of(const ConvolutionDesc& desc);
ConvolutionOperand weight_of(const ConvolutionDesc& desc);
ConvolutionOperand output_of(const ConvolutionDesc& desc);

/// Makes the strides those of the first layout that they fit, even where a size of 1 lets them be anything;
/// false where they fit none.
bool settle(const ConvolutionOperand& operand, std::initializer_list<ConvolutionDesc::Layout> order,
            ConvolutionDesc::Strides& strides);

}  // namespace fl::library
