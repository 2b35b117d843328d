// Compiled functions behave as the functions they were made from.
#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"
#include "programs.h"
#include "tests/autograd/set_up.h"

namespace fl {
namespace {

using testing::interior;
using testing::leaf;
using testing::Program;
using testing::ramp;

class Wrapper : public ::testing::TestWithParam<Program> {};

TEST_P(Wrapper, DoesWhatEagerDoes) { testing::expect_same_as_eager(GetParam()); }

Tensors plain() { return {ramp({2, 3}), ramp({2, 3}, 0.5, 0.11)}; }
Tensors needing_gradients() { return {leaf(ramp({2, 3})), leaf(ramp({2, 3}, 0.5, 0.11))}; }
Tensors interiors() { return {interior(leaf(ramp({2, 3}))), interior(leaf(ramp({2, 3}, 0.5, 0.11)))}; }

std::vector<Program> programs() {
  std::vector<Program> p;
  auto add_program = [&](std::string name, trace::Callable f, std::function<Tensors()> inputs) {
    p.push_back({std::move(name), std::move(f), std::move(inputs), {}, {}});
  };
  add_program(
      "Pointwise",
      [](const Tensors& a) {
        return Tensors{sin(add(a[0], a[1])), mul(a[0], 2.0)};
      },
      plain);
  add_program(
      "Gradients", [](const Tensors& a) { return Tensors{mul(sin(a[0]), exp(a[1]))}; }, needing_gradients);
  add_program(
      "OneOutputWithoutGradient",
      [](const Tensors& a) {
        return Tensors{mul(a[0], a[1]), detach(sin(a[0]))};
      },
      needing_gradients);
  add_program(
      "InputChanges",
      [](const Tensors& a) {
        add.in_place(a[0], a[1]);
        return Tensors{mul(a[0], 3.0)};
      },
      plain);
  add_program(
      "InputWithHistoryChanges",
      [](const Tensors& a) {
        const Tensor y = exp(a[0]);
        mul.in_place(a[0], a[1]);
        return Tensors{add(y, a[0])};
      },
      interiors);
  add_program(
      "InputWithoutGradientGetsOne",
      [](const Tensors& a) {
        mul.in_place(a[0], a[1]);
        return Tensors{sin(a[0])};
      },
      [] {
        return Tensors{ramp({2, 3}), leaf(ramp({2, 3}, 0.5, 0.11))};
      });
  add_program(
      "SliceOfInputChanges",
      [](const Tensors& a) {
        add.in_place(slice(a[0], 1, 1, 3), 10.0);
        return Tensors{add(a[0], 1.0)};
      },
      plain);
  add_program(
      "ViewSeesChangeOfBase",
      [](const Tensors& a) {
        const Tensor x = mul(a[0], 2.0);
        const Tensor row = select(x, 0, 1);
        const Tensor turned = permute(x, {1, 0});
        mul.in_place(x, 5.0);
        add.in_place(row, 1.0);
        return Tensors{sin(turned), add(row, 0.0)};
      },
      needing_gradients);
  add_program(
      "ViewsOfViews",
      [](const Tensors& a) {
        const Tensor x = mul(a[0], 1.5);
        const Tensor inner = select(slice(permute(x, {1, 0}), 0, 1, 3), 1, 0);
        mul.in_place(inner, a[1].dim() == 2 ? select(slice(permute(a[1], {1, 0}), 0, 0, 2), 1, 1) : a[1]);
        return Tensors{add(x, 1.0), mul(inner, 2.0)};
      },
      needing_gradients);
  add_program(
      "OutputIsInput",
      [](const Tensors& a) {
        return Tensors{a[0], mul(a[0], a[1])};
      },
      needing_gradients);
  add_program(
      "OutputIsViewOfInput",
      [](const Tensors& a) {
        return Tensors{select(a[0], 0, 1), permute(a[1], {1, 0})};
      },
      interiors);
  add_program(
      "ViewOfChangedInput",
      [](const Tensors& a) {
        add.in_place(a[0], a[1]);
        return Tensors{select(a[0], 0, 1)};
      },
      interiors);
  add_program(
      "OutputsShareMemory",
      [](const Tensors& a) {
        const Tensor x = mul(a[0], 2.0);
        return Tensors{x, select(x, 0, 0), permute(x, {1, 0})};
      },
      needing_gradients);
  add_program(
      "OutputsAreViewsOfHiddenTensor",
      [](const Tensors& a) {
        const Tensor x = mul(a[0], a[1]);
        return Tensors{select(x, 0, 0), select(x, 0, 1)};
      },
      needing_gradients);
  add_program(
      "SameOutputTwice",
      [](const Tensors& a) {
        const Tensor x = mul(a[0], 2.0);
        return Tensors{x, x};
      },
      needing_gradients);
  add_program(
      "EqualOutputsStayApart",
      [](const Tensors& a) {
        return Tensors{mul(a[0], 2.0), mul(a[0], 2.0), clone(a[1])};
      },
      plain);
  add_program(
      "SameInputTwice", [](const Tensors& a) { return Tensors{mul(a[0], a[1])}; },
      [] {
        const Tensor x = leaf(ramp({4}));
        return Tensors{x, x};
      });
  add_program(
      "InputsShareMemory",
      [](const Tensors& a) {
        add.in_place(a[0], 1.0);
        return Tensors{mul(a[1], 2.0)};
      },
      [] {
        const Tensor x = ramp({6});
        return Tensors{slice(x, 0, 0, 4), slice(x, 0, 2, 6)};
      });
  add_program(
      "StridesOfOutputs",
      [](const Tensors& a) {
        return Tensors{sin(permute(a[0], {1, 0})), add(a[0], permute(ramp({3, 2}), {1, 0}))};
      },
      plain);
  add_program(
      "NotContiguousInputChanges",
      [](const Tensors& a) {
        mul.in_place(a[0], 2.0);
        return Tensors{add(a[0], 1.0)};
      },
      [] {
        return Tensors{slice(ramp({3, 6}), 1, 0, 6, 2)};
      });
  add_program(
      "OtherDTypeIntoInput",
      [](const Tensors& a) {
        add.in_place(a[0], a[1]);
        copy.in_place(a[1], a[0]);
        return Tensors{a[0]};
      },
      [] {
        return Tensors{ramp({4}), ramp({4}, 3, 0.3, DType::Float64)};
      });
  add_program(
      "RandomNumbers",
      [](const Tensors& a) {
        const Tensor noise = rand({2, 3});
        return Tensors{mul(a[0], noise), add(rand({2, 3}), noise)};
      },
      needing_gradients);
  add_program(
      "Dropout", [](const Tensors& a) { return Tensors{dropout(mul(a[0], a[1]), 0.5, true)}; },
      needing_gradients);
  add_program(
      "NothingToDo",
      [](const Tensors& a) {
        return Tensors{Tensor(), a[1]};
      },
      plain);
  return p;
}

INSTANTIATE_TEST_SUITE_P(Programs, Wrapper, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param.name; });

TEST(Wrapper, OneCompileServesOtherSizes) {
  Program p{"Sizes",
            [](const Tensors& a) {
              mul.in_place(a[0], 2.0);
              return Tensors{sin(permute(a[0], {1, 0})), select(a[0], 0, -1)};
            },
            [] {
              return Tensors{ramp({4, 5})};
            },
            {},
            [] {
              return Tensors{ramp({7, 3})};
            }};
  p.options.trace.dynamic = true;
  testing::expect_same_as_eager(p);
}

TEST(Wrapper, ParametersAreCaptured) {
  fl::testing::set_up();
  const Tensor weight = leaf(ramp({3}, 0.2, 0.3));
  auto f = [weight](const Tensors& a) { return Tensors{mul(a[0], exp(weight))}; };
  auto compiled = aot::CompiledFunction::make(f, {ramp({3})}, aot::interpreted);
  EXPECT_FALSE(weight.grad().defined());
  const Tensor x = ramp({3}, 1, 1);
  const Tensors out = (*compiled)({x});
  backward(out[0], full({3}, 1.0));
  const std::vector<double> got = testing::elements(weight.grad());
  weight.set_grad({});
  backward(f({x})[0], full({3}, 1.0));
  EXPECT_EQ(got, testing::elements(weight.grad()));
}

TEST(Wrapper, ChangedSavedInputIsReported) {
  fl::testing::set_up();
  const Tensor x = leaf(ramp({3})), y = ramp({3});
  auto compiled = aot::CompiledFunction::make([](const Tensors& a) { return Tensors{mul(a[0], a[1])}; },
                                              {x, y}, aot::interpreted);
  const Tensors out = (*compiled)({x, y});
  add.in_place(y, 1.0);
  EXPECT_THROW(backward(out[0], full({3}, 1.0)), RuntimeError);
}

TEST(Wrapper, AnArgumentsMemoryWithAHistoryOfItsOwnIsUnsupported) {
  fl::testing::set_up();
  const Tensor outside = leaf(ramp({3}, 2));
  auto changed = [&](int what) {
    return [what, outside](const Tensors& a) {
      const Tensor t = detach(what == 2 ? outside : a[0]);
      mul.in_place(t, a[0]);
      return Tensors{what == 0 ? mul(t, 1.0) : t};
    };
  };
  auto make = [&](const trace::Callable& f) {
    return aot::CompiledFunction::make(f, {leaf(ramp({3}))}, aot::interpreted);
  };
  EXPECT_TRUE(make(changed(0))->joint().differentiable()) << "a copy has a history";
  EXPECT_THROW(make(changed(1)), UnsupportedError);
  EXPECT_THROW(make(changed(2)), UnsupportedError);
}

TEST(Wrapper, GradientsOfGradients) {
  fl::testing::set_up();
  auto f = [](const Tensors& a) { return Tensors{sin(mul(a[0], a[0]))}; };
  auto second = [&](const trace::Callable& g) {
    const Tensor x = leaf(ramp({4}));
    const Tensor out = g({x})[0];
    const Tensor first = grad({out}, {x}, {full({4}, 1.0)}, {.retain_graph = true, .create_graph = true})[0];
    return testing::elements(grad({first}, {x}, {full({4}, 1.0)})[0]);
  };
  auto compiled = aot::CompiledFunction::make(f, {leaf(ramp({4}))}, aot::interpreted);
  EXPECT_EQ(second(f), second([&](const Tensors& a) { return (*compiled)(a); }));
}

/// A model with a parameter, a momentum and running statistics.
struct Model {
  Tensor weight = leaf(ramp({4}, 0.3, 0.2)), momentum = ramp({4}, 0, 0), running = ramp({4}, 1, 0);

  Tensors step(const Tensors& a) {
    weight.set_grad({});
    Tensor y = mul(sin(a[0]), weight);
    {
      NoGradGuard no_grad;
      mul.in_place(running, 0.9);
      add.in_place(running, a[0], 0.1);
    }
    y = sub(y, running);
    const Tensor loss = mul(y, y);
    backward(loss, full({4}, 1.0));
    NoGradGuard no_grad;
    mul.in_place(momentum, 0.5);
    add.in_place(momentum, weight.grad());
    sub.in_place(weight, momentum, 0.1);
    return {detach(loss)};
  }
  std::vector<std::vector<double>> state() const {
    return {testing::elements(weight), testing::elements(momentum), testing::elements(running),
            testing::elements(weight.grad())};
  }
};

TEST(Wrapper, WholeTrainingSteps) {
  fl::testing::set_up();
  Model eager, model;
  auto compiled = aot::CompiledFunction::make([&](const Tensors& a) { return model.step(a); }, {ramp({4})},
                                              aot::interpreted);
  EXPECT_EQ(model.state(), Model().state()) << "capture changed the model";
  EXPECT_FALSE(compiled->joint().differentiable());
  for (int i = 0; i < 3; ++i) {
    const Tensor x = ramp({4}, 0.1 * i, 0.4);
    const std::vector<double> loss = testing::elements(eager.step({x})[0]);
    EXPECT_EQ(trace::why_not(compiled->joint().program, {x}), "");
    EXPECT_EQ(testing::elements((*compiled)({x})[0]), loss);
    EXPECT_EQ(model.state(), eager.state()) << "step " << i;
  }
}

TEST(Wrapper, AddingToGradientsOfEarlierSteps) {
  fl::testing::set_up();
  auto make_step = [](const Tensor& w) {
    return [w](const Tensors& a) {
      backward(mul(w, a[0]), full({4}, 1.0));
      return Tensors{};
    };
  };
  const Tensor eager = leaf(ramp({4})), w = leaf(ramp({4}));
  const Tensor x = ramp({4}, 2, 0.5);
  auto first = aot::CompiledFunction::make(make_step(w), {x}, aot::interpreted);
  (*first)({x});
  make_step(eager)({x});
  EXPECT_EQ(testing::elements(w.grad()), testing::elements(eager.grad()));
  EXPECT_NE(trace::why_not(first->joint().program, {x}), "") << "now there is a gradient to add to";
  auto later = aot::CompiledFunction::make(make_step(w), {x}, aot::interpreted);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(trace::why_not(later->joint().program, {x}), "");
    (*later)({x});
    make_step(eager)({x});
    EXPECT_EQ(testing::elements(w.grad()), testing::elements(eager.grad()));
  }
}

}  // namespace
}  // namespace fl
