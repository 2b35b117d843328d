#include "flambeau/runtime/convolution_call.h"

#include <algorithm>

#include "flambeau/runtime/staging.h"

namespace fl::runtime {

using library::ConvolutionDesc;
using library::ConvolutionPass;

ConvolutionRoles convolution_roles(const CallArguments& call, bool transposed) {
  const auto argument = [&](std::string_view name) { return CallPlace{false, call.required_operand(name)}; };
  const auto image = [&] { return argument(call.find("input") ? "input" : "self"); };
  const CallPlace result{true, 0};
  ConvolutionRoles r;
  switch (call.op.library) {
    case LibraryCall::Convolution:
      r = {ConvolutionPass::Forward, image(), argument("weight"), result, {false, call.operand("bias")}};
      if (transposed) r.pass = ConvolutionPass::BackwardData;
      break;
    case LibraryCall::ConvolutionInput:
      r = {ConvolutionPass::BackwardData, result, argument("weight"), argument("grad_output"), {}};
      if (transposed) r.pass = ConvolutionPass::Forward;
      break;
    default:
      r = {ConvolutionPass::BackwardWeights, image(), result, argument("grad_output"), {}};
  }
  if (transposed) std::swap(r.input, r.output);
  return r;
}

const OperandLayout& layout_at(const CallArguments& call, CallPlace place) {
  return place.is_result ? call.result(place.index) : call.operands[place.index];
}

ConvolutionDesc::Strides convolution_strides(const OperandLayout& layout) {
  ConvolutionDesc::Strides strides{};
  std::ranges::copy(layout.strides, strides.begin());
  return strides;
}

ConvolutionDesc describe_convolution(const CallArguments& call, const ConvolutionRoles& roles) {
  const OperandLayout& input = layout_at(call, roles.input);
  const OperandLayout& weight = layout_at(call, roles.weight);
  const OperandLayout& output = layout_at(call, roles.output);
  const int rank = static_cast<int>(input.sizes.size());
  const bool ranks = rank >= 3 && rank <= 5 && weight.sizes.size() == input.sizes.size() &&
                     output.sizes.size() == input.sizes.size();
  FL_CHECK(ranks, RuntimeError,
           "{} expects images and weight of 3 to 5 dimensions each, got [{}], weight [{}], [{}]",
           call.op.name(), fmt::join(input.sizes, ", "), fmt::join(weight.sizes, ", "),
           fmt::join(output.sizes, ", "));
  FL_CHECK(input.dtype == weight.dtype && input.dtype == output.dtype, RuntimeError,
           "{} expects operands of one dtype, got {}, weight {}, {}", call.op.name(), name(input.dtype),
           name(weight.dtype), name(output.dtype));
  ConvolutionDesc d;
  d.pass = roles.pass;
  d.spatial = rank - 2;
  d.batch = input.sizes[0];
  d.in_channels = input.sizes[1];
  d.out_channels = output.sizes[1];
  d.groups = call.integer("groups", 1);
  d.bias = roles.bias.index >= 0;
  const std::vector<int64_t> stride = call.integers("stride", d.spatial, 1);
  const std::vector<int64_t> padding = call.integers("padding", d.spatial, 0);
  const std::vector<int64_t> dilation = call.integers("dilation", d.spatial, 1);
  for (int i = 0; i < d.spatial; ++i) {
    d.input[i] = input.sizes[2 + i];
    d.kernel[i] = weight.sizes[2 + i];
    d.stride[i] = stride[i];
    d.dilation[i] = dilation[i];
    d.padding_begin[i] = d.padding_end[i] = padding[i];
    // Output padding of a transposed convolution may exceed the stride: what is left over at the end of
    // the large image is then padded less.
    const int64_t reach = dilation[i] * (d.kernel[i] - 1) + 1;
    const int64_t covered = (output.sizes[2 + i] - 1) * stride[i] + reach;
    const int64_t left_over = d.input[i] + 2 * padding[i] - covered;
    if (left_over >= stride[i]) d.padding_end[i] = padding[i] - left_over;
  }
  d.input_strides = convolution_strides(input);
  d.weight_strides = convolution_strides(weight);
  d.output_strides = convolution_strides(output);
  const std::array<int64_t, 3> made = d.output();
  bool fits = output.sizes[0] == d.batch && d.groups > 0 && weight.sizes[0] == d.out_channels &&
              weight.sizes[1] * d.groups == d.in_channels && d.out_channels % d.groups == 0;
  for (int i = 0; i < d.spatial; ++i) fits = fits && output.sizes[2 + i] == made[i];
  FL_CHECK(fits, RuntimeError,
           "{}: sizes do not fit: large image [{}], weight [{}], small image [{}], groups {}", call.op.name(),
           fmt::join(input.sizes, ", "), fmt::join(weight.sizes, ", "), fmt::join(output.sizes, ", "),
           d.groups);
  return d;
}

bool is_channels_last(const OperandLayout& image) {
  const int spatial = static_cast<int>(image.sizes.size()) - 2;
  std::array<int64_t, 3> space{1, 1, 1};
  std::copy(image.sizes.begin() + 2, image.sizes.end(), space.begin());
  const auto wanted =
      ConvolutionDesc::strides(ConvolutionDesc::Layout::ChannelsLast, image.sizes[1], spatial, space);
  for (size_t i = 0; i < image.sizes.size(); ++i)
    if (image.sizes[i] != 1 && image.strides[i] != wanted[i]) return false;
  return true;
}

bool is_row_major(const OperandLayout& image) {
  const std::vector<int64_t> wanted = row_major(image.sizes);
  for (size_t i = 0; i < image.sizes.size(); ++i)
    if (image.sizes[i] != 1 && image.strides[i] != wanted[i]) return false;
  return true;
}

}  // namespace fl::runtime
