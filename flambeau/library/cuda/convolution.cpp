#include "flambeau/library/cuda/convolution.h"

#include <algorithm>
#include <bit>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/library/convolution_layout.h"
#include "flambeau/library/cuda/cudnn.h"
#include "flambeau/library/cuda/cudnn_graph.h"
#include "flambeau/library/cuda/driver.h"
#include "flambeau/library/plan_cache.h"

namespace fl::library::cuda {
namespace {

using Layout = ConvolutionDesc::Layout;

enum Tensor : int64_t { kInput = 1, kWeight, kOutput, kBias, kSum };

struct PlanKey {
  ConvolutionDesc desc;
  int device;
  ConvolutionOptions options;
  int64_t alignment;  // of all operands, in bytes
  bool operator==(const PlanKey&) const = default;
  uint64_t hash() const {
    return hash_combine(desc.hash(), static_cast<uint64_t>(device) << 16 |
                                         static_cast<uint64_t>(alignment) << 1 | options.tf32);
  }
};
std::shared_ptr<const DeviceConvolution> find_plan(const PlanKey& key);

CudnnTensor tensor(const PlanKey& key, Tensor id, const ConvolutionOperand& o) {
  CudnnTensor t;
  t.id = id;
  t.type = cudnn_type(key.desc.dtype);
  t.sizes.assign(o.sizes.begin(), o.sizes.begin() + o.rank);
  t.strides.assign(o.strides.begin(), o.strides.begin() + o.rank);
  t.alignment = key.alignment;
  return t;
}

/// The sum's type.
cudnnDataType_t compute_type(const ConvolutionDesc& d) {
  return d.dtype == ScalarKind::F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

CudnnDescriptor geometry(const ConvolutionDesc& d) {
  const auto list = [&](const std::array<int64_t, 3>& a) { return std::span(a.data(), d.spatial); };
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  CudnnDescriptor g(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  g.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_type(d));
  g.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  g.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(d.spatial));
  g.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, list(d.padding_begin));
  g.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, list(d.padding_end));
  g.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, list(d.dilation));
  g.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, list(d.stride));
  g.finalize();
  return g;
}

/// The library's names for one pass.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, geometry, input, weight, output;
};

PassNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::Forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case ConvolutionPass::BackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionPass::BackwardWeights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  }
  FL_RAISE(InternalError, "unknown pass {}", static_cast<int>(pass));
}

CudnnDescriptor convolution_operation(const ConvolutionDesc& d, const CudnnTensor& input,
                                      const CudnnTensor& weight, const CudnnTensor& output) {
  const PassNames names = names_of(d.pass);
  CudnnDescriptor operation(names.operation);
  if (d.dtype == ScalarKind::F64) {
    operation.set(names.alpha, 1.0);
    operation.set(names.beta, static_cast<double>(d.beta));
  } else {
    operation.set(names.alpha, 1.0f);
    operation.set(names.beta, d.beta);
  }
  operation.set(names.geometry, geometry(d));
  operation.set(names.input, input.descriptor());
  operation.set(names.weight, weight.descriptor());
  operation.set(names.output, output.descriptor());
  operation.finalize();
  return operation;
}

CudnnDescriptor add_operation(cudnnDataType_t compute, const CudnnTensor& x, const CudnnTensor& addend,
                              const CudnnTensor& y) {
  CudnnDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  add.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
  add.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, addend.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor());
  operation.finalize();
  return operation;
}

std::vector<CudnnDescriptor> operations(const PlanKey& key) {
  const ConvolutionDesc& d = key.desc;
  const CudnnTensor input = tensor(key, kInput, input_of(d)), weight = tensor(key, kWeight, weight_of(d));
  const CudnnTensor output = tensor(key, kOutput, output_of(d));
  std::vector<CudnnDescriptor> list;
  if (!d.bias) {
    list.push_back(convolution_operation(d, input, weight, output));
    return list;
  }
  CudnnTensor sum = output, bias = output;
  sum.id = kSum;
  sum.type = compute_type(d);
  sum.is_virtual = true;
  bias.id = kBias;
  std::ranges::fill(bias.sizes, 1);
  bias.sizes[1] = d.out_channels;
  std::ranges::fill(bias.strides, 1);
  bias.strides[0] = d.out_channels;
  if (output.strides[1] == 1) std::fill(bias.strides.begin() + 2, bias.strides.end(), d.out_channels);
  list.push_back(convolution_operation(d, input, weight, sum));
  list.push_back(add_operation(compute_type(d), sum, bias, output));
  return list;
}

class LibraryConvolution final : public DeviceConvolution {
 public:
  LibraryConvolution(const PlanKey& key, std::unique_ptr<const CudnnPlan> plan)
      : key_(key), plan_(std::move(plan)) {}
  std::string implementation() const override { return plan_->name(); }

  void run(const ConvolutionData& data, CUstream stream, DeviceWorkspace& workspace) const override {
    uintptr_t bits = key_.alignment;
    for (const void* p : {data.input, data.weight, data.bias, data.output})
      bits |= reinterpret_cast<uintptr_t>(p);
    if (const int64_t alignment = int64_t{1} << std::countr_zero(bits); alignment < key_.alignment) {
      const auto other = find_plan({key_.desc, key_.device, key_.options, alignment});
      FL_CHECK(other, RuntimeError, "cuDNN has no engine for operands aligned to {} bytes of a {}", alignment,
               key_.desc.text());
      return other->run(data, stream, workspace);
    }
    void* const scratch = plan_->workspace_bytes() ? workspace.bytes(plan_->workspace_bytes()) : nullptr;
    const CudnnPlan::Argument arguments[] = {
        {kInput, data.input}, {kWeight, data.weight}, {kOutput, data.output}, {kBias, data.bias}};
    const CudnnHandle handle(key_.device);
    plan_->run(handle.get(), std::span(arguments, key_.desc.bias ? 4 : 3), scratch, stream);
  }

 private:
  PlanKey key_;
  std::unique_ptr<const CudnnPlan> plan_;
};

/// The written operand is empty, or it is a sum over nothing: zeros, where they are not added.
class EmptyConvolution final : public DeviceConvolution {
 public:
  explicit EmptyConvolution(const ConvolutionDesc& desc) : desc_(desc) {}
  std::string implementation() const override { return "empty"; }
  void run(const ConvolutionData& data, CUstream stream, DeviceWorkspace&) const override {
    if (desc_.beta == 1) return;
    const bool forward = desc_.pass == ConvolutionPass::Forward;
    const bool weights = desc_.pass == ConvolutionPass::BackwardWeights;
    const int64_t count = (forward ? output_of(desc_) : weights ? weight_of(desc_) : input_of(desc_)).count();
    if (count == 0) return;
    const void* const result = forward ? data.output : weights ? data.weight : data.input;
    FL_CUDA(cuMemsetD8Async, reinterpret_cast<CUdeviceptr>(result), 0, count * scalar_bytes(desc_.dtype),
            stream);
  }

 private:
  ConvolutionDesc desc_;
};

std::shared_ptr<const DeviceConvolution> make_plan(const PlanKey& key) {
  const bool negative = std::ranges::any_of(key.desc.padding_begin, [](int64_t p) { return p < 0; }) ||
                        std::ranges::any_of(key.desc.padding_end, [](int64_t p) { return p < 0; });
  const bool odd_bias = key.desc.bias && (key.desc.pass != ConvolutionPass::Forward || key.desc.beta != 0);
  if (!find_cudnn() || key.desc.relu || negative || odd_bias) return nullptr;
  const std::optional<ConvolutionDesc> d = with_one_layout(key.desc);
  if (!d) return nullptr;
  if (input_of(*d).count() == 0 || weight_of(*d).count() == 0 || output_of(*d).count() == 0) {
    const bool simple = !d->bias && (d->beta == 0 || d->beta == 1);
    return simple ? std::make_shared<EmptyConvolution>(*d) : nullptr;
  }
  const PlanKey inner{*d, key.device, key.options, key.alignment};
  const bool single = d->dtype == ScalarKind::F32;
  EngineRules rules;
  rules.tensor_cores = !single || key.options.tf32;
  rules.narrower_inputs = !single;
  const CudnnHandle handle(key.device);
  std::unique_ptr<const CudnnPlan> plan = CudnnPlan::make(handle.get(), operations(inner), rules);
  if (!plan) return nullptr;
  return std::make_shared<LibraryConvolution>(key, std::move(plan));
}

std::shared_ptr<const DeviceConvolution> find_plan(const PlanKey& key) {
  static auto* const cache = new PlanCache<PlanKey, DeviceConvolution>;
  return cache->find_or_make(key, [&] { return make_plan(key); });
}

/// A convolution over lines as one over images of one row.
ConvolutionDesc with_rows(ConvolutionDesc d) {
  if (d.spatial != 1) return d;
  d.spatial = 2;
  for (auto* sizes : {&d.input, &d.kernel, &d.stride, &d.dilation}) *sizes = {1, (*sizes)[0], 1};
  for (auto* padding : {&d.padding_begin, &d.padding_end}) *padding = {0, (*padding)[0], 0};
  return d;
}

}  // namespace

std::optional<ConvolutionDesc> with_one_layout(const ConvolutionDesc& desc) {
  const ConvolutionOperand operands[] = {input_of(desc), weight_of(desc), output_of(desc)};
  const bool half = scalar_bytes(desc.dtype) == 2;
  for (const Layout layout :
       {half ? Layout::ChannelsLast : Layout::Contiguous, half ? Layout::Contiguous : Layout::ChannelsLast}) {
    if (!std::ranges::all_of(operands, [&](const ConvolutionOperand& o) { return o.fits(layout); })) continue;
    ConvolutionDesc d = with_rows(desc);
    d.set_layout(layout, layout);
    return d;
  }
  return std::nullopt;
}

std::shared_ptr<const DeviceConvolution> plan_convolution(const ConvolutionDesc& desc, int device,
                                                          const ConvolutionOptions& options) {
  return find_plan({desc, device, options, 16});
}

}  // namespace fl::library::cuda
