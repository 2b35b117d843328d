#include "environment.h"
#include "flambeau/nn/attention.h"
#include "flambeau/nn/convolution.h"
#include "flambeau/nn/pooling.h"
#include "flambeau/ops/functions.h"
#include "waves.h"

// Expected values are PyTorch 2.15's.
namespace fl::testing {
namespace {

using namespace fl::nn;

using ImageLayerTest = NnTest;
using AttentionTest = NnTest;

TEST_F(ImageLayerTest, Convolutions) {
  const Tensor x = wave({1, 2, 4, 4}, 0.5f);
  Conv2d m(2, 2, 3, {.stride = 2, .padding = 1});
  fill_with_waves(*m);
  expect_near(m(x), {-0.635291, 2.7471, -1.81337, -6.23375, -0.027417, 3.30537, -1.00984, -5.53135});
  Conv2d grouped(2, 4, {1, 2}, {.dilation = {1, 2}, .groups = 2, .bias = false});
  fill_with_waves(*grouped);
  expect_near(select(grouped(x), 2, 0),
              {0.54209, 0.642604, 0.726366, 1.3335, 0.186859, 0.293846, -1.26719, -0.62211});
  Conv1d one(4, 2, 2, {.padding = 1});
  fill_with_waves(*one);
  expect_near(one(wave({2, 4, 3}, 0.9f)),
              {-0.6084, -1.2667, -1.1305, -0.594181, -0.288055, -1.12694, -0.826304, -0.0216184, -0.117442,
               0.182846, -0.699463, -0.993841, 0.972094, 1.02614, -0.326867, -0.365188});
  EXPECT_NE(message_of<ValueError>([] { Conv2d(3, 4, 3, {.groups = 2}); }), "");
  EXPECT_NE(message_of<RuntimeError>([&] { m(wave({1, 3, 4, 4}, 1)); }), "");
}

TEST_F(ImageLayerTest, Pooling) {
  const Tensor x = wave({1, 2, 4, 4}, 0.5f);
  expect_near(MaxPool2d(2)(x), {0.909297, 0.997495, 0.21512, 0.938, 0.989358, 0.412118, 0.990607, 0.803784});
  expect_near(MaxPool2d(3, {.stride = Pair(2), .padding = 1})(x),
              {0.909297, 0.997495, 0.909297, 0.938, 0.989358, 0.798487, 0.990607, 0.934895});
  expect_near(AvgPool2d(2)(x),
              {0.496799, 0.407326, -0.449657, -0.0173695, 0.0910321, -0.384619, 0.330652, 0.520177});
  expect_near(AvgPool2d(3, {.stride = Pair(2), .padding = 1, .count_include_pad = false})(x),
              {0.496799, 0.4512, -0.0484764, -0.049231, 0.0910321, -0.269947, -0.0168516, 0.0215713});
  expect_near(AdaptiveAvgPool2d({1, 3})(x), {0.0235709, 0.124518, 0.194978, 0.210842, 0.158743, 0.067779});
}

TEST_F(AttentionTest, MultiheadAttention) {
  MultiheadAttention m(4, 2);
  fill_with_waves(*m);
  const Tensor x = wave({3, 2, 4}, 0.9f);
  expect_near(m(x, x, x), {1.541,    -2.56691, 2.61791, -0.729585, 1.31867,  -2.38072, 2.48938, -0.673562,
                           1.18384,  -2.50074, 2.85038, -1.23383,  1.0193,   -1.87485, 1.83548, 0.052821,
                           0.861603, -2.26295, 2.72451, -1.23443,  0.993026, -1.81821, 1.75502, 0.147804});
  const std::vector<double> causal = {2.12196,  -3.3962,  3.59971,  -1.75044, 0.0253956, -0.943521,
                                      1.07434,  0.555815, 1.60032,  -2.8582,  3.10751,   -1.36091,
                                      0.615169, -1.52096, 1.57272,  0.194086, 0.861603,  -2.26295,
                                      2.72451,  -1.23443, 0.993026, -1.81821, 1.75502,   0.147804};
  expect_near(m(x, x, x, AttentionMask{.is_causal = true}), causal);
  const Tensor hidden = to(triu(ramp({3, 3}, 0, -1), 1), DType::Bool);
  expect_near(m(x, x, x, AttentionMask{.mask = hidden}), causal);
  expect_near(m(wave({2, 2, 4}, 0.4f), x, x),
              {1.46468, -2.42123, 2.41971, -0.501767, 1.22271, -2.37968, 2.58338, -0.851729, 0.84055,
               -2.24407, 2.71, -1.22595, 1.28704, -2.30072, 2.37025, -0.529063});
  EXPECT_NE(message_of<ValueError>([] { MultiheadAttention(4, 3); }), "");
}

TEST_F(AttentionTest, EncoderLayer) {
  TransformerEncoderLayer m(4, 2, {.feedforward = 3, .dropout = 0});
  fill_with_waves(*m);
  expect_near(m(wave({3, 2, 4}, 0.9f)),
              {0.209671, -1.5072,  0.437776, -1.26318, 0.232063, -1.56561, 0.315844, -1.23057,
               0.22853,  -1.53486, 0.353405, -1.27269, 0.185027, -1.4781,  0.522167, -1.22309,
               0.24242,  -1.55898, 0.278182, -1.2655,  0.165911, -1.41632, 0.596599, -1.24021},
              2e-5);
  TransformerEncoderLayer first(
      4, 2, {.feedforward = 3, .dropout = 0, .gelu = true, .batch_first = true, .norm_first = true});
  fill_with_waves(*first);
  expect_near(first(wave({3, 2, 4}, 0.9f)),
              {-1.00956,   -0.875214, 1.27584,   0.791556,   -2.01718, -2.36686,  -0.39011,  0.218988,
               -0.103427,  -0.560791, 0.530853,  -0.0794344, -2.93644, -1.64011,  -0.244611, 1.68843,
               -0.0892076, -1.11512,  -0.267499, -0.794774,  -2.9103,  -0.479963, 0.0543286, 2.31827},
              2e-5);
}

}  // namespace
}  // namespace fl::testing
