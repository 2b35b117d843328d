// Sizes and index maps of convolutions.
#pragma once
#include <vector>

#include "flambeau/op/op.h"

namespace fl {

/// Along each spatial dimension, a point y of the small image and an offset k of the kernel meet the point
/// y * stride - padding + k * dilation of the large one.
struct ConvolutionWindow {
  Sizes stride, padding, dilation;

  int spatial() const { return static_cast<int>(stride.size()); }
  /// floor((large + 2 padding - dilation (kernel - 1) - 1) / stride) + 1
  SymInt small_size(int d, SymInt large, SymInt kernel) const;
  /// (small - 1) stride - 2 padding + dilation (kernel - 1) + 1 + more
  SymInt large_size(int d, SymInt small, SymInt kernel, SymInt more) const;
};

/// Lists of one entry stand for all dimensions. Raises RuntimeError on lists that do not fit and on entries
/// without meaning.
ConvolutionWindow convolution_window(const Value& stride, const Value& padding, const Value& dilation,
                                     int spatial);
Sizes spatial_list(const Value& list, int spatial, const char* what);

/// Whether images of this layout, or weights, ask for channels-last results.
bool is_channels_last(const TensorSpec& s);
/// Strides of an image's sizes, channels last if either operand is so.
Sizes image_strides(IntList sizes, const TensorSpec& a, const TensorSpec& b);

/// The point of the large image that a point of the small one and an offset of the kernel meet, and whether
/// it lies inside; `inside` stays unset where it always does.
Index large_point(ScalarOps& s, const ConvolutionWindow& w, std::span<const Expr> small,
                  std::span<const Expr> kernel, std::span<const Expr> large_sizes, Val* inside);
/// The point of the small image that meets a point of the large one under an offset of the kernel, if any.
Index small_point(ScalarOps& s, const ConvolutionWindow& w, std::span<const Expr> large,
                  std::span<const Expr> kernel, std::span<const Expr> small_sizes, Val* inside);

}  // namespace fl
