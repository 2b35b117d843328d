#include "flambeau/library/cuda/attention.h"

#include <bit>
#include <limits>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/library/cuda/cudnn.h"
#include "flambeau/library/cuda/cudnn_builder.h"
#include "flambeau/library/plan_cache.h"

namespace fl::library::cuda {
namespace {

/// Heads that both passes take on all devices with matrix units for halves, by NVIDIA's documentation.
constexpr int64_t kWidest = 128, kWidthUnit = 8;

enum Tensor : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOutput,
  kStats,
  kOutputGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kRowSums,  // of output times its gradient: scratch
  kBias,
  kSeed,
  kOffset,
  kScale,
  kMinusInfinity,
  kKept,  // the share of weights that dropout keeps
  kOneByKept,
  kFirstVirtual,
};

// cuDNN's engines for attention know it by the shape of its graph: the operations below and their order are
// those that it matches (NVIDIA's documentation, "Graph API: fused flash attention").
class AttentionGraph {
 public:
  explicit AttentionGraph(const AttentionDesc& d)
      : d_(d), builder_(kFirstVirtual), type_(cudnn_type(d.dtype)) {
    query_ = tensor(kQuery, d.heads, d.queries, d.width, d.query_strides);
    output_ = tensor(kOutput, d.heads, d.queries, d.value_width, d.output_strides);
    key_transposed_ = transposed(tensor(kKey, d.key_heads, d.keys, d.width, d.key_strides));
    value_ = tensor(kValue, d.key_heads, d.keys, d.value_width, d.value_strides);
    stats_ = rows(kStats);
  }

  std::span<const CudnnDescriptor> forward() {
    CudnnTensor scores = masked(scaled_scores());
    const CudnnTensor max = builder_.virtual_tensor({d_.batch, d_.heads, d_.queries, 1}),
                      sum = virtual_like(max);
    builder_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, max);
    const CudnnTensor exponentials =
        builder_.pointwise(CUDNN_POINTWISE_EXP, builder_.pointwise(CUDNN_POINTWISE_SUB, scores, max));
    builder_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    const CudnnTensor logarithm = builder_.pointwise(CUDNN_POINTWISE_LOG, sum);
    // The engine wants this result even where nobody reads it.
    stats_.is_virtual = d_.pass == AttentionPass::Forward;
    builder_.pointwise(CUDNN_POINTWISE_ADD, max, &logarithm, stats_);
    const CudnnTensor weights = builder_.virtual_tensor(scores.sizes, type_);
    if (d_.dropout == 0) {
      builder_.pointwise(CUDNN_POINTWISE_DIV, exponentials, &sum, weights);
    } else {
      const CudnnTensor all = builder_.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum);
      const CudnnTensor kept = builder_.pointwise(CUDNN_POINTWISE_MUL, all, kept_ones(scores.sizes));
      const CudnnTensor factor = CudnnBuilder::number(kOneByKept);
      builder_.pointwise(CUDNN_POINTWISE_MUL, kept, &factor, weights);
    }
    builder_.matmul(weights, value_, output_);
    return builder_.operations();
  }

  std::span<const CudnnDescriptor> backward() {
    const AttentionDesc& d = d_;
    const CudnnTensor output_gradient =
        tensor(kOutputGradient, d.heads, d.queries, d.value_width, d.output_gradient_strides);
    const CudnnTensor row_sums = rows(kRowSums), scale = CudnnBuilder::number(kScale),
                      share = CudnnBuilder::number(kKept), factor = CudnnBuilder::number(kOneByKept);
    const bool drops = d.dropout != 0;
    CudnnTensor ones;
    if (drops) ones = kept_ones({d.batch, d.heads, d.queries, d.keys});
    const auto kept = [&](const CudnnTensor& x) {
      return drops ? builder_.pointwise(CUDNN_POINTWISE_MUL, x, ones) : x;
    };
    const auto scaled = [&](const CudnnTensor& x) {
      return drops ? builder_.pointwise(CUDNN_POINTWISE_MUL, x, factor) : x;
    };
    const CudnnTensor products = builder_.pointwise(CUDNN_POINTWISE_MUL, output_gradient, output_);
    const CudnnTensor sums = builder_.virtual_tensor(row_sums.sizes);
    builder_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
    builder_.pointwise(CUDNN_POINTWISE_MUL, sums, &share, row_sums);

    const CudnnTensor differences = builder_.pointwise(CUDNN_POINTWISE_SUB, scaled_scores(), stats_);
    const CudnnTensor weights = builder_.pointwise(CUDNN_POINTWISE_EXP, masked(differences));
    by_heads(scaled(kept(weights)), output_gradient,
             tensor(kValueGradient, d.key_heads, d.keys, d.value_width, d.value_gradient_strides));

    const CudnnTensor weight_gradient = kept(builder_.matmul(output_gradient, transposed(value_)));
    const CudnnTensor centered = builder_.pointwise(CUDNN_POINTWISE_SUB, weight_gradient, row_sums);
    const CudnnTensor unscaled = scaled(builder_.pointwise(CUDNN_POINTWISE_MUL, centered, weights));
    const CudnnTensor score_gradient = virtual_like(unscaled);
    builder_.pointwise(CUDNN_POINTWISE_MUL, unscaled, &scale, score_gradient);
    by_heads(score_gradient, query_,
             tensor(kKeyGradient, d.key_heads, d.keys, d.width, d.key_gradient_strides));
    builder_.matmul(score_gradient, builder_.transposed(key_transposed_, type_),
                    tensor(kQueryGradient, d.heads, d.queries, d.width, d.query_gradient_strides));
    return builder_.operations();
  }

 private:
  CudnnTensor tensor(Tensor id, int64_t heads, int64_t tokens, int64_t width,
                     const AttentionDesc::Strides& strides) {
    CudnnTensor t;
    t.id = id;
    t.type = type_;
    t.sizes = {d_.batch, heads, tokens, width};
    t.strides.assign(strides.begin(), strides.end());
    return t;
  }
  CudnnTensor rows(Tensor id) {
    CudnnTensor t = tensor(id, d_.heads, d_.queries, 1, {d_.heads * d_.queries, d_.queries, 1, 1});
    t.type = CUDNN_DATA_FLOAT;
    return t;
  }
  static CudnnTensor transposed(CudnnTensor t) {
    std::swap(t.sizes[2], t.sizes[3]);
    std::swap(t.strides[2], t.strides[3]);
    return t;
  }
  CudnnTensor virtual_like(const CudnnTensor& t, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return builder_.virtual_tensor(t.sizes, type);
  }

  CudnnTensor scaled_scores() {
    const CudnnTensor scores = builder_.pointwise(
        CUDNN_POINTWISE_MUL, builder_.matmul(query_, key_transposed_), CudnnBuilder::number(kScale));
    if (d_.bias_batch == 0) return scores;
    CudnnTensor bias = tensor(kBias, d_.bias_heads, d_.queries, d_.keys, d_.bias_strides);
    bias.sizes[0] = d_.bias_batch;
    return builder_.pointwise(CUDNN_POINTWISE_ADD, scores, bias);
  }
  /// 1 where dropout keeps a weight, else 0.
  CudnnTensor kept_ones(const std::vector<int64_t>& sizes) {
    return builder_.bernoulli(sizes, 1 - d_.dropout, whole_number(kSeed), whole_number(kOffset));
  }
  static CudnnTensor whole_number(Tensor id) {
    CudnnTensor t;
    t.id = id;
    t.type = CUDNN_DATA_INT64;
    t.sizes = t.strides = {1, 1, 1, 1};
    return t;
  }
  CudnnTensor masked(const CudnnTensor& scores) {
    if (!d_.causal) return scores;
    const CudnnTensor row = builder_.index(scores, 2), column = builder_.index(scores, 3);
    const CudnnTensor seen = virtual_like(scores, CUDNN_DATA_BOOLEAN);
    builder_.pointwise(CUDNN_POINTWISE_CMP_GE, row, &column, seen, CUDNN_DATA_BOOLEAN);
    return builder_.select(seen, scores, CudnnBuilder::number(kMinusInfinity));
  }
  /// result = matrix^T x, summed over the query's heads that share a key's.
  void by_heads(const CudnnTensor& matrix, const CudnnTensor& x, const CudnnTensor& result) {
    const CudnnTensor turned = builder_.transposed(matrix, type_);
    if (d_.heads == d_.key_heads) return builder_.matmul(turned, x, result);
    const CudnnTensor of_all = builder_.virtual_tensor({d_.batch, d_.heads, d_.keys, x.sizes[3]}, type_);
    builder_.matmul(turned, x, of_all);
    builder_.reduce(CUDNN_REDUCE_TENSOR_ADD, of_all, result);
  }

  const AttentionDesc& d_;
  CudnnBuilder builder_;
  cudnnDataType_t type_;
  CudnnTensor query_, key_transposed_, value_, output_, stats_;
};

class LibraryAttention final : public DeviceAttention {
 public:
  LibraryAttention(const AttentionDesc& desc, int device, std::unique_ptr<const CudnnPlan> plan)
      : desc_(desc), device_(device), plan_(std::move(plan)) {}
  std::string implementation() const override { return plan_->name(); }

  void run(const AttentionData& data, CUstream stream, DeviceWorkspace& workspace) const override {
    static constexpr float kInfinity = -std::numeric_limits<float>::infinity();
    const float share = static_cast<float>(1 - desc_.dropout);
    const float factor = static_cast<float>(1 / (1 - desc_.dropout));
    const bool backward = desc_.pass == AttentionPass::Backward;
    const int64_t plan_bytes = (plan_->workspace_bytes() + 255) / 256 * 256;
    const int64_t row_bytes = backward ? desc_.batch * desc_.heads * desc_.queries * 4 : 0;
    char* const scratch =
        plan_bytes + row_bytes ? static_cast<char*>(workspace.bytes(plan_bytes + row_bytes)) : nullptr;
    std::vector<CudnnPlan::Argument> arguments{{kQuery, data.query},
                                               {kKey, data.key},
                                               {kValue, data.value},
                                               {kOutput, data.output},
                                               {kScale, &desc_.scale}};
    if (desc_.causal) arguments.push_back({kMinusInfinity, &kInfinity});
    if (desc_.bias_batch != 0) arguments.push_back({kBias, data.bias});
    // One number says where in all of the library's numbers those of this call are.
    if (desc_.dropout != 0)
      arguments.insert(arguments.end(), {{kSeed, data.seed}, {kOffset, data.seed}, {kOneByKept, &factor}});
    if (desc_.pass != AttentionPass::Forward) arguments.push_back({kStats, data.stats});
    if (backward)
      arguments.insert(arguments.end(), {{kOutputGradient, data.output_gradient},
                                         {kQueryGradient, data.query_gradient},
                                         {kKeyGradient, data.key_gradient},
                                         {kValueGradient, data.value_gradient},
                                         {kRowSums, scratch + plan_bytes},
                                         {kKept, &share}});
    const CudnnHandle handle(device_);
    plan_->run(handle.get(), arguments, scratch, stream);
  }

 private:
  AttentionDesc desc_;
  int device_;
  std::unique_ptr<const CudnnPlan> plan_;
};

/// Of the tensors that the pass has.
std::vector<const AttentionDesc::Strides*> all_strides(const AttentionDesc& d) {
  std::vector<const AttentionDesc::Strides*> all{&d.query_strides, &d.key_strides, &d.value_strides,
                                                 &d.output_strides};
  if (d.bias_batch != 0) all.push_back(&d.bias_strides);
  if (d.pass == AttentionPass::Backward)
    all.insert(all.end(), {&d.query_gradient_strides, &d.key_gradient_strides, &d.value_gradient_strides,
                           &d.output_gradient_strides});
  return all;
}

std::shared_ptr<const DeviceAttention> make_plan(const AttentionDesc& d, int device) {
  const bool empty = d.batch * d.heads * d.key_heads * d.queries * d.keys * d.width * d.value_width == 0;
  const bool half = scalar_bytes(d.dtype) == 2;
  if (!find_cudnn() || empty || !half || d.heads % d.key_heads != 0 || d.dropout >= 1) return nullptr;
  for (const AttentionDesc::Strides* s : all_strides(d))
    if ((*s)[3] != 1) return nullptr;
  const CudnnHandle handle(device);
  AttentionGraph graph(d);
  EngineRules rules;
  // Backward holds the weights' gradient in dtype: without the library it would lie in memory, too.
  rules.workspace_bytes = std::numeric_limits<int64_t>::max();
  std::unique_ptr<const CudnnPlan> plan = CudnnPlan::make(
      handle.get(), d.pass == AttentionPass::Backward ? graph.backward() : graph.forward(), rules);
  if (!plan) return nullptr;
  return std::make_shared<LibraryAttention>(d, device, std::move(plan));
}

struct PlanKey {
  AttentionDesc desc;
  int device;
  bool operator==(const PlanKey&) const = default;
  uint64_t hash() const { return hash_combine(desc.hash(), device); }
};

}  // namespace

uint64_t AttentionDesc::hash() const {
  uint64_t h = hash_combine(static_cast<uint64_t>(pass) * 8 + static_cast<uint64_t>(dtype) * 2 + causal,
                            std::bit_cast<uint32_t>(scale));
  h = hash_combine(h, std::bit_cast<uint64_t>(dropout));
  for (const int64_t v : {batch, heads, key_heads, queries, keys, width, value_width, bias_batch, bias_heads})
    h = hash_combine(h, v);
  for (const Strides* s : all_strides(*this))
    for (const int64_t v : *s) h = hash_combine(h, v);
  return h;
}

std::string AttentionDesc::text() const {
  const char* names[] = {"forward", "forward with stats", "backward"};
  std::string out =
      fmt::format("attention {} {} batch {} heads {} of {} tokens {} and {} width {} and {} scale {}{}",
                  names[static_cast<int>(pass)], scalar_name(dtype), batch, heads, key_heads, queries, keys,
                  width, value_width, scale, causal ? " causal" : "");
  if (dropout != 0) out += fmt::format(" dropout {}", dropout);
  if (bias_batch != 0) out += fmt::format(" bias {} x {}", bias_batch, bias_heads);
  return out;
}

void AttentionDesc::set_layout(bool tokens_first) {
  const auto strides = [&](int64_t heads, int64_t tokens, int64_t width) -> Strides {
    if (tokens_first) return {tokens * heads * width, width, heads * width, 1};
    return {heads * tokens * width, tokens * width, width, 1};
  };
  query_strides = query_gradient_strides = strides(heads, queries, width);
  key_strides = key_gradient_strides = strides(key_heads, keys, width);
  value_strides = value_gradient_strides = strides(key_heads, keys, value_width);
  bias_strides = {bias_heads * queries * keys, queries * keys, keys, 1};
  output_strides = output_gradient_strides = strides(heads, queries, value_width);
}

bool may_have_attention(ScalarKind dtype, int64_t width, int64_t value_width) {
  const auto fits = [](int64_t w) { return w > 0 && w <= kWidest && w % kWidthUnit == 0; };
  return scalar_bytes(dtype) == 2 && fits(width) && fits(value_width) && find_cudnn();
}

std::shared_ptr<const DeviceAttention> plan_attention(const AttentionDesc& desc, int device) {
  static auto* const cache = new PlanCache<PlanKey, DeviceAttention>;
  return cache->find_or_make({desc, device}, [&] { return make_plan(desc, device); });
}

}  // namespace fl::library::cuda
