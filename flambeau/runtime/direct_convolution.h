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
  /// Products along one spatial dimension: for j < count, first[at + j step] times second[...] belongs to
  /// position at + j step of the result.
  struct Line {
    int64_t at, step;
  };
  struct Run {
    Line result, first, second;
    int64_t count;
  };
  /// Offsets of the two factors of one product.
  struct Tap {
    int64_t first, second;
  };
  /// The same for single positions of the result: those of i are taps[begin[i]] to taps[begin[i + 1]].
  struct Dimension {
    std::vector<int64_t> begin;
    std::vector<Tap> taps;
  };

  std::vector<Run> runs_along(int i) const;
  Dimension dimension(int i) const;
  template <class T>
  void sum_all(const T* first, const T* second, const T* bias, T* result) const;
  template <class T, class Sum>
  void sum_line(const T* first, const T* second, int64_t at0, int64_t at1, Sum* sums) const;

  library::ConvolutionDesc desc_;
  DType dtype_;
  int64_t bias_stride_;
  std::array<int64_t, 3> output_;
  std::array<Dimension, 2> dimensions_;  // the outer two
  std::vector<Run> runs_;                // along the last dimension
  // The result is {rows, columns, spatial...}; each element sums over `terms` channels of a group or batch
  // entries.
  int64_t rows_, columns_, terms_;
  std::array<int64_t, 3> result_sizes_;
  std::array<int64_t, 5> result_strides_;
  int64_t first_step_, second_step_;  // from one term to the next
};

}  // namespace fl::runtime
