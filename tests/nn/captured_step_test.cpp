// Training steps captured whole: backward and the optimiser's part inside one compiled function.
#include "environment.h"
#include "flambeau/compile/compile.h"
#include "flambeau/nn/optimizers.h"
#include "flambeau/ops/functions.h"

namespace fl::testing {
namespace {

using namespace fl::optim;

/// A parameter, its optimiser, and a step on c p^2 + sin p.
template <class O, class Options>
struct Training {
  Tensor p = f32({1, -2, 0.5, 3}, {4});
  O optimizer;
  explicit Training(Options options) : optimizer({p.set_requires_grad(true)}, options) {}
  Tensors step(const Tensors& in) {
    const Tensor loss = add(mul(in[0], mul(p, p)), sin(p));
    backward(loss, ones_like(loss));
    optimizer.step();
    optimizer.zero_grad();
    return {detach(loss)};
  }
};

struct CapturedStepTest : NnTest {
  const Tensor curvature = f32({1, 0.5, 2, 0.25}, {4});

  template <class O, class Options>
  void expect_after_five(Options options, const std::vector<double>& expected) {
    Training<O, Options> training(options);
    const Compiled step = compile([&](const Tensors& in) { return training.step(in); }, {.fullgraph = true});
    for (int i = 0; i < 5; ++i) step({curvature});
    expect_near(training.p, expected, 2e-6);
    EXPECT_EQ(step.explain().graphs.size(), 1u) << step.explain().str();
    EXPECT_FALSE(training.p.grad().defined());
  }
};

TEST_F(CapturedStepTest, Sgd) {
  expect_after_five<SGD>(SGDOptions{.lr = 0.1}, {0.03834245, -1.1835393, -0.18828267, 2.759182});
  expect_after_five<SGD>(SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
                         {-0.56605643, -0.6456939, -0.54108912, 2.5698009});
  expect_after_five<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1},
                         {-0.76019651, -0.39472055, -0.66168904, 2.3031013});
}

TEST_F(CapturedStepTest, Adam) {
  expect_after_five<Adam>(
      AdamOptions{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1, .amsgrad = true},
      {0.50355268, -1.5062135, 0.013373882, 2.5028589});
  expect_after_five<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.5},
                           {0.32612872, -1.1115668, -0.049795039, 1.8699576});
}

TEST_F(CapturedStepTest, RmsProp) {
  expect_after_five<RMSprop>(
      RMSpropOptions{.lr = 0.02, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5, .centered = true},
      {0.60466021, -1.6119409, 0.12614289, 2.6022809});
}

TEST_F(CapturedStepTest, LearningRateChangesWithoutACompile) {
  Training<SGD, SGDOptions> training({.lr = 0.1});
  const Compiled step = compile([&](const Tensors& in) { return training.step(in); }, {.fullgraph = true});
  step({curvature});
  const auto before = training.p.to_vector<float>();
  training.optimizer.set_learning_rate(0);
  step({curvature});
  EXPECT_EQ(training.p.to_vector<float>(), before);
  EXPECT_EQ(step.explain().graphs.size(), 1u);
}

TEST_F(CapturedStepTest, LoadedStateIsSeen) {
  Training<Adam, AdamOptions> training({.lr = 0.1}), other({.lr = 0.1});
  const Compiled step = compile([&](const Tensors& in) { return training.step(in); }, {.fullgraph = true});
  for (int i = 0; i < 3; ++i) step({curvature});
  for (int i = 0; i < 5; ++i) other.step({curvature});
  training.optimizer.load_state_dict(other.optimizer.state_dict());
  std::copy_n(other.p.data_as<float>(), 4, training.p.data_as<float>());
  step({curvature});
  other.step({curvature});
  expect_near(training.p, other.p.to_vector<double>(), 1e-6);
}

}  // namespace
}  // namespace fl::testing
