// Convolutions, transposed convolutions and their gradients through the library; by their definition where
// it has no kernel.
#include "flambeau/runtime/convolution_call.h"
#include "flambeau/runtime/direct_convolution.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime {
namespace {

using library::ConvolutionDesc;

enum class Copies { None, OddLayouts, AllAsFloat32 };

struct LibraryConvolution {
  ConvolutionRoles roles;
  StagedOperand input, weight, output, bias;
  StagingPlan staging;
  std::shared_ptr<const library::ConvolutionPlan> plan;

  LibraryConvolution(const CallArguments& call, const ConvolutionRoles& r, ConvolutionDesc d, Copies copies)
      : roles(r),
        input(layout_at(call, r.input)),
        weight(layout_at(call, r.weight)),
        output(layout_at(call, r.output)),
        bias(d.bias ? layout_at(call, r.bias) : OperandLayout{DType::Float32, {1}, {1}}) {
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
    d.input_strides = convolution_strides(input.layout());
    d.weight_strides = convolution_strides(weight.layout());
    d.output_strides = convolution_strides(output.layout());
    plan = library::plan_convolution(d);
  }

  void run(void* const* operands, void* const* results) const {
    char* const memory = staging.total() ? staging_memory(staging.total()) : nullptr;
    const auto ready = [&](const StagedOperand& operand, CallPlace place) -> void* {
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

PreparedCall direct_call(const CallArguments& call, const ConvolutionRoles& roles,
                         const ConvolutionDesc& desc, DType dtype) {
  const int64_t bias_stride = desc.bias ? layout_at(call, roles.bias).strides[0] : 0;
  auto direct = std::make_shared<const DirectConvolution>(desc, dtype, bias_stride);
  return [direct, roles](void* const* operands, void* const* results) {
    const auto address = [&](CallPlace place) -> void* {
      if (place.index < 0) return nullptr;
      return place.is_result ? results[place.index] : operands[place.index];
    };
    direct->run({address(roles.input), address(roles.weight), address(roles.bias), address(roles.output)});
  };
}

}  // namespace

bool takes_channels_last(const graph::Graph& g, const graph::Node& call) {
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
  // Kernels for tensor cores have their channels last, of 1 x 1, too.
  if (weight->device.type == DeviceType::CUDA) return true;
  if (!library::available()) return false;
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
  const ConvolutionRoles roles = convolution_roles(call, call.flag("transposed", false));
  const ConvolutionDesc desc = describe_convolution(call, roles);
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
