// Convolutions, transposed convolutions and their gradients through cuDNN, with copies where it does not take
// the operands' layouts.
#include "flambeau/library/cuda/convolution.h"

#include <algorithm>

#include "flambeau/library/cuda/precision.h"
#include "flambeau/runtime/convolution_call.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/graph.h"
#include "flambeau/runtime/cuda/library_routines.h"
#include "flambeau/runtime/cuda/library_staging.h"
#include "flambeau/runtime/cuda/strided_copy.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime::cuda {
namespace {

using library::ConvolutionDesc;
using library::ConvolutionPass;
using library::ScalarKind;
using library::cuda::DeviceConvolution;
using library::cuda::Tf32;
using Layout = ConvolutionDesc::Layout;

bool fits(const OperandLayout& o, Layout layout) {
  return layout == Layout::ChannelsLast ? is_channels_last(o) : is_row_major(o);
}

std::vector<int64_t> strides_in(Layout layout, const std::vector<int64_t>& sizes) {
  const int spatial = static_cast<int>(sizes.size()) - 2;
  std::array<int64_t, 3> space{1, 1, 1};
  std::copy(sizes.begin() + 2, sizes.end(), space.begin());
  const ConvolutionDesc::Strides strides = ConvolutionDesc::strides(layout, sizes[1], spatial, space);
  return {strides.begin(), strides.begin() + 2 + spatial};
}

struct Convolution {
  int device;
  ConvolutionRoles roles;
  DeviceOperand input, weight, output;
  std::optional<OperandLayout> bias;
  int64_t staged_bytes = 0;
  ConvolutionDesc desc;
  std::shared_ptr<const DeviceConvolution> plan;
  bool bias_first = false;  // the result is filled with the bias, and the products are added
  bool tf32 = false;        // what the plan was made for

  /// All operands in one layout, with copies of those that are not.
  Convolution(const CallArguments& call, int device, const ConvolutionRoles& r, const ConvolutionDesc& d,
              Layout layout)
      : device(device),
        roles(r),
        input(device, layout_at(call, r.input)),
        weight(device, layout_at(call, r.weight)),
        output(device, layout_at(call, r.output)),
        desc(d) {
    for (DeviceOperand* operand : {&input, &weight, &output})
      if (const OperandLayout& given = operand->layout(); !fits(given, layout))
        operand->stage(strides_in(layout, given.sizes), staged_bytes);
    if (d.bias) bias = layout_at(call, r.bias);
    desc.input_strides = convolution_strides(input.layout());
    desc.weight_strides = convolution_strides(weight.layout());
    desc.output_strides = convolution_strides(output.layout());
  }

  /// False where the library has no engine.
  bool make_plan() {
    tf32 = wants_tf32();
    if (!bias || is_row_major(*bias)) plan = library::cuda::plan_convolution(desc, device, {.tf32 = tf32});
    if (plan || !bias) return plan != nullptr;
    bias_first = true;
    desc.bias = false;
    desc.beta = 1;
    plan = library::cuda::plan_convolution(desc, device, {.tf32 = tf32});
    return plan != nullptr;
  }

  bool wants_tf32() const {
    return desc.dtype == ScalarKind::F32 && library::cuda::tf32_allowed(Tf32::Convolution);
  }

  void run(void* const* operands, void* const* results) const {
    std::shared_ptr<const DeviceConvolution> other;
    if (wants_tf32() != tf32) [[unlikely]]
      other = library::cuda::plan_convolution(desc, device, {.tf32 = !tf32});
    if (Graph* graph = recording()) graph->keep(other ? other : plan);
    const StagingMemory memory(device, staged_bytes);
    StreamWorkspace workspace(device);
    const auto ready = [&](const DeviceOperand& operand, CallPlace place) {
      return place.is_result ? operand.target(results[place.index], memory)
                             : operand.read(operands[place.index], memory);
    };
    const void* const bias_data = bias ? operands[roles.bias.index] : nullptr;
    const library::ConvolutionData data{ready(input, roles.input), ready(weight, roles.weight),
                                        desc.bias ? bias_data : nullptr, ready(output, roles.output)};
    if (bias_first) fill_with_bias(bias_data, data);
    (other ? *other : *plan).run(data, current_stream(device).handle, workspace);
    for (const auto& [operand, place] :
         {std::pair(&input, roles.input), std::pair(&weight, roles.weight), std::pair(&output, roles.output)})
      if (place.is_result) operand->store(results[place.index], memory);
  }

  void fill_with_bias(const void* bias_data, const library::ConvolutionData& data) const {
    const bool forward = desc.pass == ConvolutionPass::Forward;
    const OperandLayout& image = forward ? output.layout() : input.layout();
    OperandLayout channels{bias->dtype, image.sizes, std::vector<int64_t>(image.sizes.size(), 0)};
    channels.strides[1] = bias->strides[0];
    copy_strided({DeviceType::CUDA, static_cast<int8_t>(device)}, image,
                 const_cast<void*>(forward ? data.output : data.input), channels, bias_data);
  }
};

}  // namespace

PreparedCall prepare_cuda_convolution(const CallArguments& call, int device) {
  FL_CHECK(call.results.size() == 1, NotImplementedError, "{}: convolutions have one result, got {}",
           call.op.name(), call.results.size());
  const ConvolutionRoles roles = convolution_roles(call, call.flag("transposed", false));
  ConvolutionDesc desc = describe_convolution(call, roles);
  const std::optional<ScalarKind> dtype = library_kind(call.result(0).dtype);
  if (!dtype) return {};
  desc.dtype = *dtype;
  activate(device);
  std::vector<std::shared_ptr<Convolution>> candidates;
  for (const Layout layout : {Layout::ChannelsLast, Layout::Contiguous})
    candidates.push_back(std::make_shared<Convolution>(call, device, roles, desc, layout));
  // The fewest copies; where both cost the same, the layout of the kernels for tensor cores.
  std::ranges::stable_sort(candidates, {}, [](const auto& c) { return c->staged_bytes; });
  for (const std::shared_ptr<Convolution>& candidate : candidates)
    if (candidate->make_plan())
      return [c = std::shared_ptr<const Convolution>(candidate)](
                 void* const* operands, void* const* results) { c->run(operands, results); };
  return {};
}

}  // namespace fl::runtime::cuda
