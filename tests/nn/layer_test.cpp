#include <algorithm>
#include <cmath>
#include <limits>

#include "environment.h"
#include "flambeau/nn/activation.h"
#include "flambeau/nn/linear.h"
#include "flambeau/nn/loss.h"
#include "flambeau/nn/normalization.h"
#include "flambeau/nn/recurrent.h"
#include "flambeau/nn/scheduler.h"
#include "flambeau/ops/functions.h"
#include "waves.h"

// Expected values are PyTorch 2.15's.
namespace fl::testing {
namespace {

using namespace fl::nn;

using LayerTest = NnTest;

TEST_F(LayerTest, Linear) {
  Linear m(4, 3);
  fill_with_waves(*m);
  expect_near(m(wave({2, 4}, 0.9f)), {1.53771, -1.15402, 1.96651, -1.67227, 1.24108, 0.663038});
  EXPECT_FALSE(Linear(4, 3, {.bias = false})->bias.defined());
  EXPECT_NE(message_of<RuntimeError>([&] { m(wave({2, 5}, 1)); }), "");
}

TEST_F(LayerTest, Embedding) {
  Embedding m(5, 2);
  fill_with_waves(*m);
  expect_near(m(i64({0, 3, 4, 0}, {2, 2})),
              {0, 0.644218, -0.871576, -0.982453, -0.631267, 0.0168136, 0, 0.644218});
  const Embedding padded(5, 2, {.padding_idx = -2});
  expect_near(padded(i64({3}, {1})), {0, 0});
  EXPECT_EQ(message_of<ValueError>([] { Embedding(5, 2, {.padding_idx = 5}); }),
            "padding_idx must lie in [-5, 5), got 5");
}

TEST_F(LayerTest, LayerNorm) {
  LayerNorm m(4);
  fill_with_waves(*m);
  expect_near(m(wave({2, 4}, 0.9f)),
              {-0.29552, 0.800892, 2.02622, 0.697792, -0.29552, -0.353612, 0.291447, 2.26177});
  RMSNorm r(4, {.eps = 1e-6});
  fill_with_waves(*r);
  expect_near(r(wave({2, 4}, 0.9f)), {0, 0.764105, 1.45312, 0.558609, -0, -0.952396, -1.15169, 0.0219499});
}

TEST_F(LayerTest, GroupNorm) {
  GroupNorm m(2, 4);
  fill_with_waves(*m);
  expect_near(m(wave({2, 4, 3}, 0.9f)),
              {-0.29552, -0.29552, -0.29552, 0.672362, -0.148182, -0.652836, -0.564863, 0.667208,
               1.87942,  2.08035,  1.31796,  0.129268, -0.29552,  -0.29552,  -0.29552,  1.0268,
               1.1686,   0.670247, 0.349725, -0.32812, -0.01933,  1.10629,   1.99204,   2.16319});
  EXPECT_NE(message_of<ValueError>([] { GroupNorm(3, 4); }), "");
}

TEST_F(LayerTest, BatchNorm) {
  BatchNorm1d m(4);
  fill_with_waves(*m);
  const Tensor x = wave({2, 4, 3}, 0.9f);
  expect_near(m(x), {-0.29552, -0.29552, -0.29552, 0.606444,  -0.208029, -0.70895, 0.221858, 1.50732,
                     2.77207,  1.81645,  0.897809, -0.534494, -0.29552,  -0.29552, -0.29552, 0.958865,
                     1.11042,  0.577757, 0.710829, -0.122146, 0.257313,  0.302103, 1.55916,  1.80206});
  m(mul(x, 2));
  expect_near(m->running_mean, {0.00231406, 0.0567198, -0.104872, 0.132903});
  expect_near(m->running_var, {1.11435, 1.08837, 1.02543, 0.971516});
  EXPECT_EQ(m->num_batches_tracked.item().to_int(), 2);
  m->eval();
  expect_near(m(x), {-0.29552, -0.29552, -0.29552, 0.618304, 0.0811334, -0.24924, 0.241248, 1.00963,
                     1.76562,  1.70685,  1.21838,  0.456761, -0.29552,  -0.29552, -0.29552, 0.850737,
                     0.950695, 0.599384, 0.533527, 0.035621, 0.26244,   0.901614, 1.57004,  1.6992});
  EXPECT_EQ(m->num_batches_tracked.item().to_int(), 2);
  EXPECT_EQ(message_of<ValueError>([&] { m(wave({4}, 1)); }), "expected 2D or 3D input (got 1D input)");
  BatchNorm2d images(2);
  fill_with_waves(*images);
  expect_near(select(images(wave({1, 2, 4, 4}, 0.5f)), 2, 0),
              {-0.29552, -0.29552, -0.29552, -0.29552, 1.17608, 0.99944, 0.641883, 0.190949});
}

TEST_F(LayerTest, BatchNormWithPlainMeans) {
  BatchNorm1d m(4, {.momentum = std::nullopt});
  const Tensor x = wave({2, 4, 3}, 0.9f);
  m(x);
  m(mul(x, 2));
  expect_near(m->running_mean, {0.0119693, 0.293378, -0.542439, 0.68743});
  expect_near(m->running_var, {1.55279, 1.42024, 1.09913, 0.824064});
}

TEST_F(LayerTest, BatchNormWithoutRunningValues) {
  BatchNorm1d m(4, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(m->state_dict().empty());
  const Tensor x = wave({2, 4, 3}, 0.9f), trained = m(x);
  m->eval();
  expect_near(m(x), trained.to_vector<double>());
}

TEST_F(LayerTest, Dropout) {
  Dropout m(0.25);
  const Tensor x = ramp({1000}, 0, -1);
  const auto values = m(x).to_vector<double>();
  const auto kept = std::ranges::count_if(values, [](double v) { return v != 0; });
  EXPECT_NEAR(static_cast<double>(kept), 750, 60);
  for (double v : values) EXPECT_TRUE(v == 0 || std::abs(v - 4.0 / 3) < 1e-6) << v;
  m->eval();
  expect_near(m(x), x.to_vector<double>());
  EXPECT_EQ(message_of<ValueError>([] { Dropout(1.5); }),
            "dropout probability has to be between 0 and 1, but got 1.5");
}

TEST_F(LayerTest, Lstm) {
  LSTM m(4, 2);
  fill_with_waves(*m);
  const LSTMResult r = m(wave({3, 2, 4}, 0.9f));
  expect_near(r.output, {0.0651649, 0.0750886, 0.0470212, -0.0109675, 0.0287668, 0.283801, 0.217678,
                         -0.0236628, 0.0201641, 0.164437, 0.305474, -0.0536259});
  expect_near(r.hidden, {0.0201641, 0.164437, 0.305474, -0.0536259});
  expect_near(r.cell, {0.103488, 1.47597, 0.847334, -0.231898});
  // Half a sequence after the other is the whole one.
  const Tensor x = wave({3, 2, 4}, 0.9f);
  const LSTMResult first = m(narrow(x, 0, 0, 1));
  const LSTMResult rest = m(narrow(x, 0, 1, 2), first.hidden, first.cell);
  expect_near(rest.cell, r.cell.to_vector<double>(), 1e-6);
  EXPECT_EQ(message_of<RuntimeError>([&] {
              m(wave({3, 2, 5}, 1));
            }),
            "input.size(-1) must be equal to input_size. Expected 4, got 5");
}

TEST_F(LayerTest, LstmOfTwoLayersAndDirections) {
  LSTM m(4, 2, {.layers = 2, .batch_first = true, .bidirectional = true});
  fill_with_waves(*m);
  const LSTMResult r = m(wave({3, 2, 4}, 0.9f));
  expect_near(r.output,
              {-0.255569, 0.141035, -0.529692, -0.474492, -0.251087, 0.158464, -0.346636, -0.392107,
               -0.25962,  0.178343, -0.552678, -0.45823,  -0.270021, 0.202329, -0.349975, -0.393393,
               -0.250614, 0.1416,   -0.538846, -0.470193, -0.267069, 0.166755, -0.336395, -0.401279});
  expect_near(r.hidden,
              {0.351185,  -0.00717175, 0.215204,  -0.000523748, 0.216893,  0.0845902, -0.0147863, 0.181125,
               0.0207294, 0.28145,     0.040619,  0.0941864,    -0.251087, 0.158464,  -0.270021,  0.202329,
               -0.267069, 0.166755,    -0.529692, -0.474492,    -0.552678, -0.45823,  -0.538846,  -0.470193});
  expect_near(r.cell,
              {0.478263,  -0.289369, 0.289985,  -0.0110208, 0.580695,  0.409544,  -0.0309136, 0.208635,
               0.0262543, 0.492733,  0.0429257, 0.428978,   -0.287032, 0.196244,  -0.315055,  0.246425,
               -0.309765, 0.202779,  -1.1955,   -0.823829,  -1.14178,  -0.867065, -1.20446,   -0.827308});
}

TEST_F(LayerTest, Losses) {
  const Tensor logits = wave({2, 3}, 0.9f), classes = i64({2, 0}, {2});
  expect_near(CrossEntropyLoss()(logits, classes), {0.649899});
  expect_near(cross_entropy(logits, classes, {.weight = f32({1, 2, 3}, {3}), .label_smoothing = 0.1}),
              {0.774012});
  expect_near(cross_entropy(logits, i64({2, -100}, {2}), {.reduction = Reduction::None}), {0.790345, 0});
  const Tensor target = cos(ramp({2, 3}, 0.9f));
  expect_near(MSELoss()(logits, target), {0.839275});
  expect_near(L1Loss(Reduction::Sum)(logits, target), {4.91519});
  expect_near(SmoothL1Loss()(logits, target), {0.407114});
  const Tensor labels = to(gt(target, 0), DType::Float32);
  expect_near(BCEWithLogitsLoss()(logits, labels), {0.684779});
  expect_near(BCELoss()(sigmoid(logits), labels), {0.684779});
}

TEST_F(LayerTest, ClippedGradients) {
  const Tensor a = f32({0, 0}, {2}), b = f32({0}, {1});
  a.set_grad(f32({3, 4}, {2}));
  b.set_grad(f32({12}, {1}));
  expect_near(optim::clip_grad_norm_({a, b}, 100), {13});
  expect_near(a.grad(), {3, 4});
  expect_near(optim::clip_grad_norm_({a, b}, 6.5), {13});
  expect_near(a.grad(), {1.5, 2});
  expect_near(b.grad(), {6});
  expect_near(optim::clip_grad_norm_({a, b}, 3, std::numeric_limits<double>::infinity()), {6});
  expect_near(b.grad(), {3});
  optim::clip_grad_value_({a, b}, 0.8);
  expect_near(a.grad(), {0.75, 0.8});
}

}  // namespace
}  // namespace fl::testing
