// cuDNN's attention against loops in double.
#include "flambeau/library/cuda/attention.h"

#include "flambeau/library/cuda/cudnn.h"
#include "tests/library/cuda_device.h"

namespace fl::library::cuda {
namespace {

using library::test::Buffer;
using test::DeviceMemory;
using Doubles = std::vector<double>;

/// An operand in memory order of its strides, and as numbers.
struct Operand {
  Buffer memory;
  int64_t batch, heads, tokens, width;
  AttentionDesc::Strides strides;

  Operand(const AttentionDesc& d, int64_t heads, int64_t tokens, int64_t width,
          const AttentionDesc::Strides& strides, uint32_t seed)
      : Operand(d.dtype, d.batch, heads, tokens, width, strides, seed) {}
  Operand(ScalarKind dtype, int64_t batch, int64_t heads, int64_t tokens, int64_t width,
          const AttentionDesc::Strides& strides, uint32_t seed)
      : memory(dtype, batch * heads * tokens * width),
        batch(batch),
        heads(heads),
        tokens(tokens),
        width(width),
        strides(strides) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < memory.count(); ++i) memory.set(i, random() / 4294967296.0 * 2 - 1);
  }
  double at(int64_t b, int64_t h, int64_t t, int64_t x) const {
    return memory.get(b * strides[0] + h * strides[1] + t * strides[2] + x * strides[3]);
  }
  void set(int64_t b, int64_t h, int64_t t, int64_t x, double value) {
    memory.set(b * strides[0] + h * strides[1] + t * strides[2] + x * strides[3], value);
  }
};

/// All results by loops, in row-major order. `factors`: what dropout multiplies each weight with; empty: 1.
struct Reference {
  Doubles output, stats, query_gradient, key_gradient, value_gradient;
  const Operand& bias;
  const Doubles& factors;

  Reference(const AttentionDesc& d, const Operand& q, const Operand& k, const Operand& v, const Operand& g,
            const Operand& bias, const Doubles& factors)
      : output(d.batch * d.heads * d.queries * d.value_width),
        stats(d.batch * d.heads * d.queries),
        query_gradient(d.batch * d.heads * d.queries * d.width),
        key_gradient(d.batch * d.key_heads * d.keys * d.width),
        value_gradient(d.batch * d.key_heads * d.keys * d.value_width),
        bias(bias),
        factors(factors) {
    for (int64_t b = 0; b < d.batch; ++b)
      for (int64_t h = 0; h < d.heads; ++h)
        for (int64_t i = 0; i < d.queries; ++i) row(d, q, k, v, g, b, h, i);
  }

  void row(const AttentionDesc& d, const Operand& q, const Operand& k, const Operand& v, const Operand& g,
           int64_t b, int64_t h, int64_t i) {
    const int64_t shared = h / (d.heads / d.key_heads), seen = d.causal ? std::min(i + 1, d.keys) : d.keys;
    const int64_t at = (b * d.heads + h) * d.queries + i, key_at = (b * d.key_heads + shared) * d.keys;
    Doubles weights(seen);
    const auto factor = [&](int64_t j) { return factors.empty() ? 1 : factors[at * d.keys + j]; };
    double sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
      double score = 0;
      for (int64_t x = 0; x < d.width; ++x) score += q.at(b, h, i, x) * k.at(b, shared, j, x);
      score *= d.scale;
      if (d.bias_batch != 0) score += bias.at(b % d.bias_batch, h % d.bias_heads, i, j);
      sum += weights[j] = std::exp(score);
    }
    stats[at] = std::log(sum);
    for (double& w : weights) w /= sum;
    double total = 0;  // of the output times its gradient
    for (int64_t x = 0; x < d.value_width; ++x) {
      double& out = output[at * d.value_width + x];
      for (int64_t j = 0; j < seen; ++j) out += weights[j] * factor(j) * v.at(b, shared, j, x);
      total += out * g.at(b, h, i, x);
    }
    for (int64_t j = 0; j < seen; ++j) {
      double by_weight = 0;
      for (int64_t x = 0; x < d.value_width; ++x) {
        by_weight += factor(j) * g.at(b, h, i, x) * v.at(b, shared, j, x);
        value_gradient[(key_at + j) * d.value_width + x] += weights[j] * factor(j) * g.at(b, h, i, x);
      }
      const double by_score = weights[j] * (by_weight - total) * d.scale;
      for (int64_t x = 0; x < d.width; ++x) {
        query_gradient[at * d.width + x] += by_score * k.at(b, shared, j, x);
        key_gradient[(key_at + j) * d.width + x] += by_score * q.at(b, h, i, x);
      }
    }
  }
};

class GpuAttention : public test::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && !find_cudnn()) GTEST_SKIP() << why_no_cudnn();
  }

  static void expect_close(const char* what, const Operand& actual, const Doubles& expected,
                           double tolerance) {
    double worst = 0;
    size_t n = 0;
    for (int64_t b = 0; b < actual.batch; ++b)
      for (int64_t h = 0; h < actual.heads; ++h)
        for (int64_t t = 0; t < actual.tokens; ++t)
          for (int64_t x = 0; x < actual.width; ++x, ++n)
            worst =
                std::max(worst, std::abs(actual.at(b, h, t, x) - expected[n]) / (1 + std::abs(expected[n])));
    EXPECT_LT(worst, tolerance) << what;
  }

  void expect_attention(AttentionDesc d) {
    SCOPED_TRACE(d.text());
    const Doubles factors = d.dropout == 0 ? Doubles() : dropout_factors(d);
    if (d.dropout != 0 && factors.empty()) return;
    const std::array<Plan, 3> plans = all_plans(d);
    const auto& [forward, with_stats, backward] = plans;
    const Operand q(d, d.heads, d.queries, d.width, d.query_strides, 1);
    const Operand k(d, d.key_heads, d.keys, d.width, d.key_strides, 2);
    const Operand v(d, d.key_heads, d.keys, d.value_width, d.value_strides, 3);
    const Operand g(d, d.heads, d.queries, d.value_width, d.output_gradient_strides, 4);
    const Operand bias(d.dtype, d.bias_batch, d.bias_heads, d.queries, d.keys, d.bias_strides, 6);
    const Reference expected(d, q, k, v, g, bias, factors);
    Operand out(d, d.heads, d.queries, d.value_width, d.output_strides, 5);
    Operand dq(d, d.heads, d.queries, d.width, d.query_gradient_strides, 5);
    Operand dk(d, d.key_heads, d.keys, d.width, d.key_gradient_strides, 5);
    Operand dv(d, d.key_heads, d.keys, d.value_width, d.value_gradient_strides, 5);
    Buffer stats(ScalarKind::F32, d.batch * d.heads * d.queries);
    const DeviceMemory mq(q.memory), mk(k.memory), mv(v.memory), mg(g.memory), mo(out.memory), ms(stats);
    const DeviceMemory mb(bias.memory), seed(seed_number()), mdq(dq.memory), mdk(dk.memory), mdv(dv.memory);
    const AttentionData data{mq.data(), mk.data(), mv.data(),  mb.data(),  seed.data(), mo.data(),
                             ms.data(), mg.data(), mdq.data(), mdk.data(), mdv.data()};
    const double unit = d.dtype == ScalarKind::BF16 ? 1.0 / 128 : 1.0 / 1024;
    for (const auto& plan : {forward, with_stats}) {
      if (!plan) continue;
      plan->run(data, nullptr, workspace_);
      mo.read(out.memory);
      expect_close("output", out, expected.output, unit);
    }
    if (!with_stats) return;
    ms.read(stats);
    for (int64_t i = 0; i < stats.count(); ++i) ASSERT_NEAR(stats.get(i), expected.stats[i], 1e-3) << i;
    if (!backward) return;
    backward->run(data, nullptr, workspace_);
    mdq.read(dq.memory);
    mdk.read(dk.memory);
    mdv.read(dv.memory);
    expect_close("query's gradient", dq, expected.query_gradient, unit * 2);
    expect_close("key's gradient", dk, expected.key_gradient, unit * 2);
    expect_close("value's gradient", dv, expected.value_gradient, unit * 2);
    Buffer again = dq.memory;
    for (int i = 0; i < 3; ++i) {
      backward->run(data, nullptr, workspace_);
      mdq.read(again);
      EXPECT_EQ(dq.memory, again) << "not deterministic";
    }
  }

 private:
  using Plan = std::shared_ptr<const DeviceAttention>;

  std::array<Plan, 3> all_plans(AttentionDesc d) {
    std::array<Plan, 3> plans;
    std::string names;
    for (const AttentionPass pass :
         {AttentionPass::Forward, AttentionPass::ForwardWithStats, AttentionPass::Backward}) {
      d.pass = pass;
      Plan& plan = plans[static_cast<size_t>(pass)] = plan_attention(d, 0);
      EXPECT_TRUE(plan) << d.text();
      names += ", " + (plan ? plan->implementation() : "none");
    }
    std::printf("%s: %s\n", d.text().c_str(), names.c_str() + 2);
    return plans;
  }

  static Buffer seed_number() {
    Buffer number(ScalarKind::F64, 1);
    number.set(0, std::bit_cast<double>(int64_t{0x1234567890abcdef}));
    return number;
  }

  /// What dropout multiplies each weight with: a product with the unit matrix in the place of the values has
  /// the weights. There are as many keys as a head is wide.
  Doubles dropout_factors(AttentionDesc d) {
    d.value_width = d.keys;
    d.set_layout(false);
    d.pass = AttentionPass::Forward;
    const Plan dropped = plan_attention(d, 0);
    EXPECT_TRUE(dropped) << d.text();
    if (!dropped) return {};
    const Operand q(d, d.heads, d.queries, d.width, d.query_strides, 1);
    const Operand k(d, d.key_heads, d.keys, d.width, d.key_strides, 2);
    Operand unit(d, d.key_heads, d.keys, d.keys, d.value_strides, 3);
    for (int64_t b = 0; b < d.batch; ++b)
      for (int64_t h = 0; h < d.key_heads; ++h)
        for (int64_t j = 0; j < d.keys; ++j)
          for (int64_t x = 0; x < d.keys; ++x) unit.set(b, h, j, x, j == x);
    Operand weights(d, d.heads, d.queries, d.keys, d.output_strides, 5);
    const DeviceMemory mq(q.memory), mk(k.memory), mv(unit.memory), mo(weights.memory), seed(seed_number());
    dropped->run(
        {.query = mq.data(), .key = mk.data(), .value = mv.data(), .seed = seed.data(), .output = mo.data()},
        nullptr, workspace_);
    mo.read(weights.memory);
    Doubles factors;
    double kept = 0, seen = 0, alike = 0;
    for (int64_t b = 0; b < d.batch; ++b)
      for (int64_t h = 0; h < d.heads; ++h)
        for (int64_t i = 0; i < d.queries; ++i)
          for (int64_t j = 0; j < d.keys; ++j) {
            const bool keeps = weights.at(b, h, i, j) != 0;
            factors.push_back(keeps ? 1 / (1 - d.dropout) : 0);
            if (d.causal && j >= i) continue;
            kept += keeps, ++seen;
            if (i > 0) alike += keeps == (weights.at(b, h, i - 1, j) != 0);
          }
    const double p = d.dropout;
    EXPECT_NEAR(kept / seen, 1 - p, 0.02);
    EXPECT_NEAR(alike / seen, p * p + (1 - p) * (1 - p), 0.04) << "rows drop the same";
    return factors;
  }
};

AttentionDesc attention(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t width) {
  AttentionDesc d;
  d.batch = batch;
  d.heads = d.key_heads = heads;
  d.queries = queries;
  d.keys = keys;
  d.width = d.value_width = width;
  d.scale = 1 / std::sqrt(static_cast<float>(width));
  d.set_layout(false);
  return d;
}

TEST_F(GpuAttention, TypesAndMasks) {
  for (const ScalarKind dtype : {ScalarKind::BF16, ScalarKind::F16})
    for (const bool causal : {false, true}) {
      AttentionDesc d = attention(2, 3, 128, 128, 64);
      d.dtype = dtype;
      d.causal = causal;
      expect_attention(d);
    }
}

TEST_F(GpuAttention, SizesThatAreNoMultiples) {
  for (const bool causal : {false, true}) {
    AttentionDesc d = attention(1, 2, 77, 77, 40);
    d.causal = causal;
    expect_attention(d);
    d = attention(1, 2, 50, 130, 128);
    d.causal = causal;
    expect_attention(d);
  }
}

TEST_F(GpuAttention, TokensBeforeHeadsAndSharedHeads) {
  AttentionDesc d = attention(2, 4, 96, 64, 64);
  d.set_layout(true);
  expect_attention(d);
  d.key_heads = 2;
  d.causal = true;
  d.set_layout(true);
  expect_attention(d);
  d.set_layout(false);
  expect_attention(d);
}

TEST_F(GpuAttention, Bias) {
  for (const bool all : {false, true}) {
    AttentionDesc d = attention(2, 3, 64, 128, 64);
    d.bias_batch = all ? 2 : 1;
    d.bias_heads = all ? 3 : 1;
    d.set_layout(true);
    expect_attention(d);
  }
  AttentionDesc d = attention(1, 2, 77, 50, 40);
  d.bias_batch = d.bias_heads = 1;
  d.set_layout(false);
  expect_attention(d);
}

TEST_F(GpuAttention, Dropout) {
  for (const bool causal : {false, true}) {
    AttentionDesc d = attention(2, 4, 128, 64, 64);
    d.causal = causal;
    d.dropout = 0.25;
    expect_attention(d);
    d.key_heads = 2;
    d.set_layout(true);
    expect_attention(d);
  }
}

TEST_F(GpuAttention, GradientsInOtherLayouts) {
  AttentionDesc d = attention(2, 4, 96, 64, 64);
  d.set_layout(true);
  const AttentionDesc::Strides query = d.query_strides;
  d.set_layout(false);
  d.query_gradient_strides = query;
  expect_attention(d);
}

TEST(CudaAttention, DescriptionsThatDifferAreOtherKeys) {
  AttentionDesc a = attention(2, 4, 96, 64, 64), b = a;
  EXPECT_EQ(a.hash(), b.hash());
  b.causal = true;
  EXPECT_NE(a.hash(), b.hash());
  b = a;
  b.set_layout(true);
  EXPECT_NE(a, b);
  EXPECT_NE(a.hash(), b.hash());
  b = a;
  b.dropout = 0.5;
  EXPECT_NE(a.hash(), b.hash());
  b = a;
  b.dtype = ScalarKind::F32;
  EXPECT_FALSE(plan_attention(b, 0));
}

}  // namespace
}  // namespace fl::library::cuda
