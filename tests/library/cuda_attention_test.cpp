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
      : memory(d.dtype, d.batch * heads * tokens * width),
        batch(d.batch),
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
};

/// All results by loops, in row-major order.
struct Reference {
  Doubles output, stats, query_gradient, key_gradient, value_gradient;

  Reference(const AttentionDesc& d, const Operand& q, const Operand& k, const Operand& v, const Operand& g)
      : output(d.batch * d.heads * d.queries * d.value_width),
        stats(d.batch * d.heads * d.queries),
        query_gradient(d.batch * d.heads * d.queries * d.width),
        key_gradient(d.batch * d.key_heads * d.keys * d.width),
        value_gradient(d.batch * d.key_heads * d.keys * d.value_width) {
    for (int64_t b = 0; b < d.batch; ++b)
      for (int64_t h = 0; h < d.heads; ++h)
        for (int64_t i = 0; i < d.queries; ++i) row(d, q, k, v, g, b, h, i);
  }

  void row(const AttentionDesc& d, const Operand& q, const Operand& k, const Operand& v, const Operand& g,
           int64_t b, int64_t h, int64_t i) {
    const int64_t shared = h / (d.heads / d.key_heads), seen = d.causal ? std::min(i + 1, d.keys) : d.keys;
    const int64_t at = (b * d.heads + h) * d.queries + i, key_at = (b * d.key_heads + shared) * d.keys;
    Doubles weights(seen);
    double sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
      double score = 0;
      for (int64_t x = 0; x < d.width; ++x) score += q.at(b, h, i, x) * k.at(b, shared, j, x);
      sum += weights[j] = std::exp(score * d.scale);
    }
    stats[at] = std::log(sum);
    for (double& w : weights) w /= sum;
    double total = 0;  // of the output times its gradient
    for (int64_t x = 0; x < d.value_width; ++x) {
      double& out = output[at * d.value_width + x];
      for (int64_t j = 0; j < seen; ++j) out += weights[j] * v.at(b, shared, j, x);
      total += out * g.at(b, h, i, x);
    }
    for (int64_t j = 0; j < seen; ++j) {
      double by_weight = 0;
      for (int64_t x = 0; x < d.value_width; ++x) {
        by_weight += g.at(b, h, i, x) * v.at(b, shared, j, x);
        value_gradient[(key_at + j) * d.value_width + x] += weights[j] * g.at(b, h, i, x);
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
    d.pass = AttentionPass::Forward;
    const auto forward = plan_attention(d, 0);
    d.pass = AttentionPass::ForwardWithStats;
    const auto with_stats = plan_attention(d, 0);
    d.pass = AttentionPass::Backward;
    const auto backward = plan_attention(d, 0);
    std::printf("%s: %s, %s, %s\n", d.text().c_str(), forward ? forward->implementation().c_str() : "none",
                with_stats ? with_stats->implementation().c_str() : "none",
                backward ? backward->implementation().c_str() : "none");
    EXPECT_TRUE(forward && with_stats && backward);
    const Operand q(d, d.heads, d.queries, d.width, d.query_strides, 1);
    const Operand k(d, d.key_heads, d.keys, d.width, d.key_strides, 2);
    const Operand v(d, d.key_heads, d.keys, d.value_width, d.value_strides, 3);
    const Operand g(d, d.heads, d.queries, d.value_width, d.output_gradient_strides, 4);
    const Reference expected(d, q, k, v, g);
    Operand out(d, d.heads, d.queries, d.value_width, d.output_strides, 5), dq = q, dk = k, dv = v;
    Buffer stats(ScalarKind::F32, d.batch * d.heads * d.queries);
    const DeviceMemory mq(q.memory), mk(k.memory), mv(v.memory), mg(g.memory), mo(out.memory), ms(stats);
    const DeviceMemory mdq(q.memory), mdk(k.memory), mdv(v.memory);
    const AttentionData data{mq.data(), mk.data(),  mv.data(),  mo.data(), ms.data(),
                             mg.data(), mdq.data(), mdk.data(), mdv.data()};
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
  b.dtype = ScalarKind::F32;
  EXPECT_FALSE(plan_attention(b, 0));
}

}  // namespace
}  // namespace fl::library::cuda
