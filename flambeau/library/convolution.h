// Convolutions of one to three spatial dimensions and their gradients, in contiguous and channels-last
// layouts.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "flambeau/library/library.h"

namespace fl::library {

/// What is computed: output from input and weight; input's gradient from output's and weight (which is also
/// the transposed convolution: its input is our output); weight's and bias's gradients from input and
/// output's.
enum class ConvolutionPass : uint8_t { Forward, BackwardData, BackwardWeights };

struct ConvolutionDesc {
  /// {batch, channel, spatial...} of an image, {output channel, input channel of a group, spatial...} of a
  /// weight.
  using Strides = std::array<int64_t, 5>;

  ScalarKind dtype = ScalarKind::F32;
  ConvolutionPass pass = ConvolutionPass::Forward;
  int spatial = 2;  // the first `spatial` entries of the arrays below count
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::array<int64_t, 3> input{1, 1, 1};  // spatial sizes
  std::array<int64_t, 3> kernel{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> dilation{1, 1, 1};
  std::array<int64_t, 3> padding_begin{0, 0, 0}, padding_end{0, 0, 0};
  /// Each operand dense, contiguous or channels-last; images in two layouts cost a reorder more.
  Strides input_strides{}, weight_strides{}, output_strides{};
  /// Forward: added by output channel. BackwardData: added by input channel (a transposed convolution's
  /// bias). BackwardWeights: its gradient is computed, too.
  bool bias = false;
  /// The result is added to beta * what is there; 0: not read. Not for a bias's gradient.
  float beta = 0;
  /// On the result of Forward; nan stays nan.
  bool relu = false;

  bool operator==(const ConvolutionDesc&) const = default;
  uint64_t hash() const;
  std::string text() const;

  /// floor((input + padding - dilation * (kernel - 1) - 1) / stride) + 1. Raises RuntimeError where the
  /// padded input is smaller than the kernel, ValueError on sizes that make no sense.
  std::array<int64_t, 3> output() const;

  enum class Layout : uint8_t { Contiguous, ChannelsLast };
  /// True for 1 x 1 without strides and groups: a matrix product in either layout, computed in the one that
  /// the images have. Any other convolution works in a layout that does not depend on the images'.
  bool keeps_layout() const;
  static Strides strides(Layout layout, int64_t second, int spatial, const std::array<int64_t, 3>& sizes);
  /// Sets all three operands' strides.
  void set_layout(Layout images, Layout weight);
};

/// Operands by role in the forward direction; the pass decides which are written.
struct ConvolutionData {
  const void* input = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  const void* output = nullptr;
};

/// A resolved call; as MatmulPlan.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual int64_t scratch_bytes() const = 0;
  /// Writes through data.output in Forward, data.input in BackwardData, data.weight (and data.bias) in
  /// BackwardWeights; these point to writable memory that overlaps no other operand.
  virtual void run(const ConvolutionData& data, void* scratch) const = 0;
  void run(const ConvolutionData& data, Workspace& workspace) const {
    run(data, scratch_bytes() ? workspace.bytes(scratch_bytes()) : nullptr);
  }
  virtual std::string implementation() const = 0;
};

/// The plan for usable_threads(), cached; null where the library has no fast kernel for the description.
std::shared_ptr<const ConvolutionPlan> plan_convolution(const ConvolutionDesc& desc);

bool convolution_supported(const ConvolutionDesc& desc);

/// One call through the cache; raises NotImplementedError where convolution_supported() is false.
void convolution(const ConvolutionDesc& desc, const ConvolutionData& data);

}  // namespace fl::library
