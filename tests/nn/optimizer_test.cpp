// Five steps on sum(c p^2 + sin p), against what PyTorch 2.15 makes of them (float32, foreach=False).
#include <cmath>
#include <limits>

#include "environment.h"
#include "flambeau/nn/optimizers.h"
#include "flambeau/nn/scheduler.h"

namespace fl::testing {
namespace {

using namespace fl::optim;

const std::vector<float> kStart{1, -2, 0.5, 3}, kCurvature{1, 0.5, 2, 0.25};

Tensor parameter() {
  Tensor p = f32(kStart, {4});
  p.set_requires_grad(true);
  return p;
}

void set_gradient(const Tensor& p) {
  std::vector<float> g;
  for (size_t i = 0; i < kStart.size(); ++i) {
    const float x = p.data_as<float>()[i];
    g.push_back(2 * kCurvature[i] * x + std::cos(x));
  }
  p.set_grad(f32(g, {4}));
}

void run(const Tensor& p, Optimizer& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    set_gradient(p);
    optimizer.step();
  }
}

template <class O, class Options>
void expect_after_five(Options options, const std::vector<double>& expected) {
  const Tensor p = parameter();
  O optimizer({p}, options);
  run(p, optimizer, 5);
  expect_near(p, expected, 2e-6);
}

using OptimizerTest = NnTest;

TEST_F(OptimizerTest, Sgd) {
  expect_after_five<SGD>(SGDOptions{.lr = 0.1}, {0.03834245, -1.1835393, -0.18828267, 2.759182});
  expect_after_five<SGD>(SGDOptions{.lr = 0.01, .maximize = true},
                         {1.1299406, -2.1254687, 0.6542542, 3.0256879});
}

TEST_F(OptimizerTest, SgdWithMomentum) {
  expect_after_five<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9},
                         {-1.2130394, -0.047697473, -0.73316902, 2.3652585});
  expect_after_five<SGD>(SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
                         {-0.56605643, -0.6456939, -0.54108912, 2.5698009});
}

TEST_F(OptimizerTest, FirstGradientIsNotDampened) {
  expect_after_five<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1},
                         {-0.76019651, -0.39472055, -0.66168904, 2.3031013});
}

TEST_F(OptimizerTest, Adam) {
  expect_after_five<Adam>(AdamOptions{.lr = 0.1}, {0.50292379, -1.5057756, 0.011886589, 2.5022638});
  expect_after_five<Adam>(
      AdamOptions{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1, .amsgrad = true},
      {0.50355268, -1.5062135, 0.013373882, 2.5028589});
  expect_after_five<Adam>(AdamOptions{.lr = 0.1, .maximize = true},
                          {1.5013998, -2.5019677, 1.0022309, 3.5021918});
}

TEST_F(OptimizerTest, AdamW) {
  expect_after_five<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.5},
                           {0.32612872, -1.1115668, -0.049795039, 1.8699576});
  expect_after_five<AdamW>(AdamWOptions{.lr = 0.05, .amsgrad = true},
                           {0.74835575, -1.7463981, 0.25100195, 2.7434819});
}

TEST_F(OptimizerTest, RmsProp) {
  expect_after_five<RMSprop>(RMSpropOptions{.lr = 0.05}, {-0.23916845, -0.9113633, -0.24055032, 1.2614672});
  expect_after_five<RMSprop>(
      RMSpropOptions{.lr = 0.02, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5, .centered = true},
      {0.60466021, -1.6119409, 0.12614289, 2.6022809});
}

TEST_F(OptimizerTest, ParametersKeepTheirOwnCountOfSteps) {
  // One parameter misses a step: Adam's correction for it must not move on.
  const Tensor a = parameter(), b = parameter(), alone = parameter();
  Adam both({a, b}, {.lr = 0.1}), single({alone}, {.lr = 0.1});
  for (int i = 0; i < 4; ++i) {
    both.zero_grad();
    set_gradient(a);
    if (i != 1) set_gradient(b);
    both.step();
  }
  run(alone, single, 3);
  expect_near(b, alone.to_vector<double>(), 1e-7);
  const NamedTensors state = both.state_dict();
  EXPECT_EQ(state.at("0.step").item().to_double(), 4);
  EXPECT_EQ(state.at("1.step").item().to_double(), 3);
}

TEST_F(OptimizerTest, GroupsHaveTheirOwnOptions) {
  const Tensor a = parameter(), b = parameter();
  SGD optimizer({a}, {.lr = 0});
  optimizer.add_group({b}, {.lr = 0.1});
  for (int i = 0; i < 5; ++i) {
    set_gradient(a);
    set_gradient(b);
    optimizer.step();
  }
  expect_near(a, {1, -2, 0.5, 3});
  expect_near(b, {0.03834245, -1.1835393, -0.18828267, 2.759182}, 2e-6);
}

TEST_F(OptimizerTest, StateContinuesARun) {
  const Tensor p = parameter(), q = parameter();
  AdamW first({p}, {.lr = 0.1, .amsgrad = true}), second({q}, {.lr = 0.3, .amsgrad = true});
  run(p, first, 3);
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.learning_rate(), 0.1);
  std::copy_n(p.data_as<float>(), 4, q.data_as<float>());
  run(p, first, 2);
  run(q, second, 2);
  EXPECT_EQ(p.to_vector<float>(), q.to_vector<float>());
}

TEST_F(OptimizerTest, StateThatDoesNotFitChangesNothing) {
  const Tensor p = parameter();
  AdamW adam({p}, {.lr = 0.1});
  run(p, adam, 1);
  const auto message = [&](const std::string& name, const Tensor& t) {
    NamedTensors state{{"group0.lr", scalar_tensor(7.0, DType::Float64)}, {name, t}};
    return message_of<ValueError>([&] { adam.load_state_dict(state); });
  };
  EXPECT_EQ(message("0.exp_avg", f32({1, 2}, {2})), "'0.exp_avg' should have sizes [4], the state has [2]");
  EXPECT_EQ(message("0.velocity", f32({1, 2}, {2})),
            "the state has '0.velocity', which is no state of this kind of optimizer");
  EXPECT_EQ(message("1.step", f32({1}, {})),
            "the state has '1.step', but this optimizer has 1 parameters in 1 groups");
  EXPECT_NE(message("99999999999999999999.step", f32({1}, {})), "");
  EXPECT_EQ(adam.learning_rate(), 0.1);
}

TEST_F(OptimizerTest, Errors) {
  EXPECT_EQ(message_of<ValueError>([] { SGD({}, {}); }), "optimizer got an empty parameter list");
  EXPECT_EQ(message_of<ValueError>([] { SGD({parameter()}, {.lr = -1}); }), "invalid learning rate: -1");
  EXPECT_EQ(message_of<ValueError>([] { Adam({parameter()}, {.beta2 = 1}); }),
            "invalid beta parameter at index 1: 1");
  EXPECT_EQ(message_of<ValueError>([] { SGD({parameter()}, {.nesterov = true}); }),
            "Nesterov momentum requires a momentum and zero dampening, got momentum 0 and dampening 0");
  const Tensor p = parameter();
  EXPECT_EQ(message_of<ValueError>([&] { SGD({p, p}, {}); }), "a parameter appears in more than one place");
}

TEST_F(OptimizerTest, Schedules) {
  SGD optimizer({parameter()}, {.lr = 0.5});
  const auto rates = [&](Scheduler scheduler) {
    std::vector<double> list{optimizer.learning_rate()};
    for (int i = 0; i < 4; ++i) {
      scheduler.step();
      list.push_back(optimizer.learning_rate());
    }
    optimizer.set_learning_rate(0.5);
    return list;
  };
  const auto expect = [](const std::vector<double>& rates, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12) << i;
  };
  expect(rates(StepLR(optimizer, 2, 0.1)), {0.5, 0.5, 0.05, 0.05, 0.005});
  expect(rates(CosineAnnealingLR(optimizer, 4, 0.1)),
         {0.5, 0.3 + std::sqrt(0.02) * 1.0, 0.3, 0.3 - std::sqrt(0.02), 0.1});
  expect(rates(LambdaLR(optimizer, [](int64_t epoch) { return 1.0 / (1 + epoch); })),
         {0.5, 0.25, 0.5 / 3, 0.125, 0.1});
}

}  // namespace
}  // namespace fl::testing
