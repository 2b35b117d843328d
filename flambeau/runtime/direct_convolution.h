// Convolutions by their definition: any dtype and strides, for what the library has no kernel for.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "flambeau/library/convolution.h"
#include "flambeau/tensor/dtype.h"

namespace fl::runtime {

class DirectConvolution {
 public:
  /// desc.dtype, beta and relu are ignored; strides are any. A bias (Forward and BackwardData) has the
  /// stride `bias_stride`.
  DirectConvolution(const library::ConvolutionDesc& desc, DType dtype, int64_t bias_stride);
  /// Writes the operand that the pass says. Sums in the order of channels (or batch), then of taps; 16-bit
  /// floats and float32 in float64.
  void run(const library::ConvolutionData& data) const;

 private:
  /// Offsets of two factors whose product belongs to one element of the result.
  struct Tap {
    int64_t first, second;
  };
  /// Along one spatial dimension: the taps of position i are taps[begin[i]] to taps[begin[i + 1]].
  struct Dimension {
    std::vector<int64_t> begin;
    std::vector<Tap> taps;
  };

  Dimension dimension(int i) const;
  template <class T>
  void sum(const T* first, const T* second, const T* bias, T* result) const;
  template <class T, class Sum>
  Sum element(const T* first, const T* second, const std::array<int64_t, 3>& at) const;

  library::ConvolutionDesc desc_;
  DType dtype_;
  int64_t bias_stride_;
  std::array<int64_t, 3> output_;
  std::array<Dimension, 3> dimensions_;
  // The result is {rows, columns, spatial...}; each element sums over `terms` channels of a group or batch
  // entries.
  int64_t rows_, columns_, terms_;
  std::array<int64_t, 3> result_sizes_;
  std::array<int64_t, 5> result_strides_;
  int64_t first_step_, second_step_;  // from one term to the next
};

}  // namespace fl::runtime
