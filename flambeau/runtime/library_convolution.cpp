// Convolutions, transposed convolutions and their gradients through the library; by their definition where
// it has no kernel.
#include "flambeau/library/convolution.h"

#include "flambeau/runtime/call_arguments.h"
#include "flambeau/runtime/direct_convolution.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime {
namespace {

using library::ConvolutionDesc;
using library::ConvolutionPass;

/// A tensor of the call: a result or an operand.
struct Place {
  bool is_result = false;
  int index = -1;
};

/// The call in the library's terms. A transposed convolution is the gradient by the input of a plain one,
/// and its gradient by the input is a plain one: `input` is the image on the large side.
struct Roles {
  ConvolutionPass pass;
  Place input, weight, output, bias;
};

Roles roles_of(const CallArguments& call, bool transposed) {
  const auto argument = [&](std::string_view name) { return Place{false, call.required_operand(name)}; };
  const auto image = [&] { return argument(call.find("input") ? "input" : "self"); };
  const Place result{true, 0};
  Roles r;
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

const OperandLayout& layout_of(const CallArguments& call, Place place) {
  return place.is_result ? call.result(place.index) : call.operands[place.index];
}

ConvolutionDesc::Strides strides_of(const OperandLayout& layout) {
  ConvolutionDesc::Strides strides{};
  std::ranges::copy(layout.strides, strides.begin());
  return strides;
}

/// Sizes and geometry; the strides as the tensors have them.
ConvolutionDesc describe(const CallArguments& call, const Roles& roles) {
  const OperandLayout& input = layout_of(call, roles.input);
  const OperandLayout& weight = layout_of(call, roles.weight);
  const OperandLayout& output = layout_of(call, roles.output);
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
  d.input_strides = strides_of(input);
  d.weight_strides = strides_of(weight);
  d.output_strides = strides_of(output);
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

enum class Copies { None, OddLayouts, AllAsFloat32 };

struct LibraryConvolution {
  Roles roles;
  StagedOperand input, weight, output, bias;
  StagingPlan staging;
  std::shared_ptr<const library::ConvolutionPlan> plan;

  LibraryConvolution(const CallArguments& call, const Roles& r, ConvolutionDesc d, Copies copies)
      : roles(r),
        input(layout_of(call, r.input)),
        weight(layout_of(call, r.weight)),
        output(layout_of(call, r.output)),
        bias(d.bias ? layout_of(call, r.bias) : OperandLayout{DType::Float32, {1}, {1}}) {
    for (StagedOperand* operand : {&input, &weight, &output, &bias}) {
      const OperandLayout& given = operand->layout();
      if (operand == &bias && !d.bias) continue;
      const bool taken = is_row_major(given) || (operand != &bias && is_channels_last(given));
      const DType dtype = copies == Copies::AllAsFloat32 ? DType::Float32 : given.dtype;
      if (copies == Copies::AllAsFloat32 || (copies == Copies::OddLayouts && !taken) ||
          (operand == &bias && !taken))
        operand->stage(staging, dtype, row_major(given.sizes));
    }
    d.dtype = input.layout().dtype == DType::Float32    ? library::ScalarKind::F32
              : input.layout().dtype == DType::BFloat16 ? library::ScalarKind::BF16
                                                        : library::ScalarKind::F16;
    d.input_strides = strides_of(input.layout());
    d.weight_strides = strides_of(weight.layout());
    d.output_strides = strides_of(output.layout());
    plan = library::plan_convolution(d);
  }

  void run(void* const* operands, void* const* results) const {
    char* const memory = staging.total() ? staging_memory(staging.total()) : nullptr;
    const auto ready = [&](const StagedOperand& operand, Place place) -> void* {
      if (place.index < 0) return nullptr;
      return place.is_result ? operand.target(results[place.index], memory)
                             : operand.read(operands[place.index], memory);
    };
    plan->run({ready(input, roles.input), ready(weight, roles.weight), ready(bias, roles.bias),
               ready(output, roles.output)},
              library::thread_workspace());
    for (const auto& [operand, place] :
         {std::pair(&input, roles.input), std::pair(&weight, roles.weight), std::pair(&output, roles.output)})
      if (place.is_result) operand->store(results[place.index], memory);
  }
};

PreparedCall direct_call(const CallArguments& call, const Roles& roles, const ConvolutionDesc& desc,
                         DType dtype) {
  const int64_t bias_stride = desc.bias ? layout_of(call, roles.bias).strides[0] : 0;
  auto direct = std::make_shared<const DirectConvolution>(desc, dtype, bias_stride);
  return [direct, roles](void* const* operands, void* const* results) {
    const auto address = [&](Place place) -> void* {
      if (place.index < 0) return nullptr;
      return place.is_result ? results[place.index] : operands[place.index];
    };
    direct->run({address(roles.input), address(roles.weight), address(roles.bias), address(roles.output)});
  };
}

}  // namespace

bool takes_channels_last(const graph::Graph& g, const graph::Node& call) {
  if (!library::available()) return false;
  const std::vector<Argument>& names = call.op->schema.args;
  std::optional<TensorSpec> weight;
  if (call.op->library == LibraryCall::ConvolutionWeight) weight = call.outs[0];
  std::vector<int64_t> stride;
  ConvolutionDesc d;
  for (size_t k = 0; k < call.args.size(); ++k) {
    if (names[k].name == "weight" && !weight) weight = g.spec(call.args[k].graph_ref());
    if (names[k].name == "groups")
      d.groups = call.args[k].sym_int().is_symbolic() ? 0 : call.args[k].sym_int().expect_int();
    if (names[k].name != "stride") continue;
    for (SymInt s : call.args[k].ints()) stride.push_back(s.is_symbolic() ? 0 : s.expect_int());
  }
  const DType dtype = weight->dtype;
  if (dtype != DType::Float32 && dtype != DType::BFloat16 && dtype != DType::Float16) return false;
  d.spatial = weight->dim() - 2;
  for (int i = 0; i < d.spatial; ++i) {
    const SymInt size = weight->sizes[2 + i];
    if (size.is_symbolic() || stride.empty()) return false;
    d.kernel[i] = size.expect_int();
    d.stride[i] = stride.size() == 1 ? stride[0] : stride[i];
  }
  return !d.keeps_layout();
}

PreparedCall prepare_convolution(const CallArguments& call) {
  FL_CHECK(call.results.size() == 1, NotImplementedError, "{}: convolutions have one result, got {}",
           call.op.name(), call.results.size());
  const Roles roles = roles_of(call, call.flag("transposed", false));
  const ConvolutionDesc desc = describe(call, roles);
  const DType dtype = call.result(0).dtype;
  FL_CHECK(dtype != DType::Bool, NotImplementedError, "{} of bool tensors", call.op.name());
  const bool half = dtype == DType::BFloat16 || dtype == DType::Float16;
  if (half || dtype == DType::Float32)
    for (const Copies copies : {Copies::None, Copies::OddLayouts, Copies::AllAsFloat32}) {
      if (copies == Copies::AllAsFloat32 && !half) continue;
      auto prepared = std::make_shared<const LibraryConvolution>(call, roles, desc, copies);
      if (!prepared->plan) continue;
      return [prepared](void* const* operands, void* const* results) { prepared->run(operands, results); };
    }
  return direct_call(call, roles, desc, dtype);
}

}  // namespace fl::runtime
