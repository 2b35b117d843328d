// Attention and its gradients through cuDNN, with copies where it does not take the operands' layouts.
#include "flambeau/library/cuda/attention.h"

#include <algorithm>

#include "flambeau/op/infer.h"
#include "flambeau/runtime/by_definition.h"
#include "flambeau/runtime/convolution_call.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/library_routines.h"
#include "flambeau/runtime/cuda/library_staging.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime::cuda {
namespace {

using library::cuda::AttentionData;
using library::cuda::AttentionDesc;
using library::cuda::AttentionPass;
using library::cuda::DeviceAttention;
using Address = void* AttentionData::*;

/// The library reads memory in pieces of so many bytes.
constexpr uintptr_t kAlignment = 16;

/// Of sizes {batch, head, token, element}: tokens before heads in memory.
std::vector<int64_t> tokens_first(const std::vector<int64_t>& sizes) {
  return {sizes[2] * sizes[1] * sizes[3], sizes[3], sizes[1] * sizes[3], 1};
}

class Attention {
 public:
  Attention(const CallArguments& call, int device, library::ScalarKind dtype, bool copies)
      : device_(device), copies_(copies), definition_(prepare_by_definition(call, place())) {
    const bool backward = call.find("grad_output") != nullptr;
    desc_.pass = backward ? AttentionPass::Backward : AttentionPass::ForwardWithStats;
    desc_.dtype = dtype;
    desc_.causal = call.flag("is_causal", false);
    desc_.scale = static_cast<float>(call.find("scale")->to_double());
    desc_.dropout = call.find("dropout_p")->to_double();
    desc_.query_strides = add(call, operand(call, "query"), &AttentionData::query);
    desc_.key_strides = add(call, operand(call, "key"), &AttentionData::key);
    desc_.value_strides = add(call, operand(call, "value"), &AttentionData::value);
    set_sizes(call);
    if (call.operand("mask") >= 0) add_mask(call);
    if (desc_.dropout != 0) add_rows(call, operand(call, "seed"), &AttentionData::seed);
    const CallPlace output = backward ? operand(call, "output") : CallPlace{true, 0};
    desc_.output_strides = add(call, output, &AttentionData::output);
    add_rows(call, backward ? operand(call, "logsumexp") : CallPlace{true, 1}, &AttentionData::stats);
    if (!backward) return;
    desc_.output_gradient_strides = add(call, operand(call, "grad_output"), &AttentionData::output_gradient);
    desc_.query_gradient_strides = add(call, {true, 0}, &AttentionData::query_gradient);
    desc_.key_gradient_strides = add(call, {true, 1}, &AttentionData::key_gradient);
    desc_.value_gradient_strides = add(call, {true, 2}, &AttentionData::value_gradient);
  }

  /// False where the library has no engine.
  bool make_plan() {
    plan_ = library::cuda::plan_attention(desc_, device_);
    return plan_ != nullptr;
  }

  void run(void* const* operands, void* const* results) const {
    const StagingMemory memory(device_, staged_bytes_);
    AttentionData data;
    for (const Part& p : parts_) {
      void* const given = p.place.is_result ? results[p.place.index] : operands[p.place.index];
      data.*p.address = p.operand.target(given, memory);
      if (reinterpret_cast<uintptr_t>(data.*p.address) % kAlignment != 0) [[unlikely]]
        return definition_(operands, results);
    }
    for (const Part& p : parts_)
      if (!p.place.is_result) p.operand.read(operands[p.place.index], memory);
    StreamWorkspace workspace(device_);
    plan_->run(data, current_stream(device_).handle, workspace);
    for (const Part& p : parts_)
      if (p.place.is_result) p.operand.store(results[p.place.index], memory);
  }

 private:
  struct Part {
    DeviceOperand operand;
    CallPlace place;
    Address address;
  };

  Device place() const { return {DeviceType::CUDA, static_cast<int8_t>(device_)}; }
  static CallPlace operand(const CallArguments& call, const char* name) {
    return {false, call.required_operand(name)};
  }

  /// An operand of four dimensions; its strides.
  AttentionDesc::Strides add(const CallArguments& call, CallPlace place, Address address) {
    parts_.push_back({DeviceOperand(device_, layout_at(call, place)), place, address});
    DeviceOperand& operand = parts_.back().operand;
    if (copies_) operand.stage(tokens_first(operand.layout().sizes), staged_bytes_);
    AttentionDesc::Strides strides{};
    std::ranges::copy(operand.layout().strides, strides.begin());
    return strides;
  }
  /// One number a row, or the seed.
  void add_rows(const CallArguments& call, CallPlace place, Address address) {
    parts_.push_back({DeviceOperand(device_, layout_at(call, place)), place, address});
    DeviceOperand& operand = parts_.back().operand;
    if (!is_row_major(operand.layout())) operand.stage(row_major(operand.layout().sizes), staged_bytes_);
  }
  void add_mask(const CallArguments& call) {
    const CallPlace place = operand(call, "mask");
    const OperandLayout& mask = layout_at(call, place);
    desc_.bias_batch = mask.sizes[0];
    desc_.bias_heads = mask.sizes[1];
    add_rows(call, place, &AttentionData::bias);
    std::ranges::copy(row_major(mask.sizes), desc_.bias_strides.begin());
  }
  void set_sizes(const CallArguments& call) {
    const std::vector<int64_t>& query = layout_at(call, operand(call, "query")).sizes;
    const std::vector<int64_t>& key = layout_at(call, operand(call, "key")).sizes;
    desc_.batch = query[0];
    desc_.heads = query[1];
    desc_.key_heads = key[1];
    desc_.queries = query[2];
    desc_.keys = key[2];
    desc_.width = query[3];
    desc_.value_width = layout_at(call, operand(call, "value")).sizes[3];
  }

  int device_;
  bool copies_;
  PreparedCall definition_;
  AttentionDesc desc_;
  std::vector<Part> parts_;
  int64_t staged_bytes_ = 0;
  std::shared_ptr<const DeviceAttention> plan_;
};

/// The library has one mask for all sizes: every query and key.
bool takes_mask(const CallArguments& call) {
  if (call.operand("mask") < 0) return true;
  const OperandLayout& mask = call.operands[call.operand("mask")];
  const OperandLayout& query = call.operands[call.required_operand("query")];
  const OperandLayout& key = call.operands[call.required_operand("key")];
  return mask.dtype == query.dtype && mask.sizes.size() == 4 && mask.sizes[2] == query.sizes[2] &&
         mask.sizes[3] == key.sizes[2] && !call.flag("is_causal", false);
}

}  // namespace

PreparedCall prepare_cuda_attention(const CallArguments& call, int device) {
  const std::optional<library::ScalarKind> dtype = library_kind(call.result(0).dtype);
  if (!dtype || !takes_mask(call)) return {};
  activate(device);
  for (const bool copies : {false, true}) {
    auto attention = std::make_shared<Attention>(call, device, *dtype, copies);
    if (!attention->make_plan()) continue;
    return [a = std::shared_ptr<const Attention>(attention)](void* const* operands, void* const* results) {
      a->run(operands, results);
    };
  }
  return {};
}

bool has_cuda_attention(const OpInfo& op, const Value* args) {
  const InferCtx call(op, args);
  const TensorSpec &query = call.spec(0), &value = call.spec(2);
  const std::optional<library::ScalarKind> dtype = library_kind(query.dtype);
  const SymInt width = query.sizes.back(), value_width = value.sizes.back();
  if (!dtype || width.is_symbolic() || value_width.is_symbolic()) return false;
  return library::cuda::may_have_attention(*dtype, width.expect_int(), value_width.expect_int());
}

}  // namespace fl::runtime::cuda
