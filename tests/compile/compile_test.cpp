// compile(): when it captures, recaptures and falls back, and that all a caller sees is as in eager mode.
#include "flambeau/compile/compile.h"

#include <gtest/gtest.h>

#include <thread>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/nn/optimizers.h"
#include "flambeau/ops/functions.h"

namespace fl {
namespace {

Tensor ramp(std::vector<int64_t> sizes, double start = -1, double step = 0.37, DType dtype = DType::Float32) {
  Sizes s;
  int64_t n = 1;
  for (int64_t i : sizes) s.push_back(i), n *= i;
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(start + step * static_cast<double>(i));
  return _to_copy(tensor_from(v, s), dtype);
}
Tensor leaf(Tensor t) { return t.set_requires_grad(true), t; }
std::vector<double> elements(const Tensor& t) {
  return t.defined() ? t.to_vector<double>() : std::vector<double>();
}
void expect_equal(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.dtype(), expected.dtype());
  EXPECT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
  EXPECT_EQ(elements(got), elements(expected));
}
size_t captures(const Compiled& c) { return c.explain().graphs.size(); }
std::string last_reason(const Compiled& c) { return c.explain().graphs.back().reason; }
bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensors wave(const Tensors& a) { return {mul(sin(a[0]), 2.0)}; }

TEST(Compile, FirstDimensionsAreOpenFromTheStart) {
  const Compiled c = compile(wave);
  for (int64_t n : {5, 7, 100}) expect_equal(c({ramp({n, 3})})[0], wave({ramp({n, 3})})[0]);
  EXPECT_EQ(captures(c), 1u);
  EXPECT_EQ(c.explain().calls, 3);
}

TEST(Compile, OtherDimensionsOpenOnceTheyHaveChanged) {
  const Compiled c = compile(wave);
  for (int64_t n : {5, 7, 9, 11}) expect_equal(c({ramp({4, n})})[0], wave({ramp({4, n})})[0]);
  EXPECT_EQ(captures(c), 2u);
  EXPECT_TRUE(mentions(last_reason(c), "7 in dimension 1")) << last_reason(c);
}

TEST(Compile, ExplainSaysWhatARunMoves) {
  const Compiled c = compile(wave);
  c({ramp({8, 4})});
  // One kernel reads 32 floats and writes 32.
  EXPECT_EQ(c.explain().graphs.at(0).bytes_moved, 2 * 32 * 4);
  EXPECT_THROW(compile(wave, {.mode = "fastest"}), ValueError);
}

TEST(Compile, ANumberReadFromACapturedTensorIsNotFixed) {
  const Tensor factor = ramp({}, 2);
  const auto scaled = [&](const Tensors& a) -> Tensors { return {mul(a[0], factor.item().to_double())}; };
  const Compiled c = compile(scaled);
  expect_equal(c({ramp({4})})[0], mul(ramp({4}), 2.0));
  fill.in_place(factor, 3.0);
  expect_equal(c({ramp({4})})[0], mul(ramp({4}), 3.0));
  EXPECT_TRUE(mentions(c.explain().fallbacks.at(0), "reads elements"));
  EXPECT_THROW(compile(scaled, {.fullgraph = true})({ramp({4})}), UnsupportedError);
}

TEST(Compile, StaticSizesAreCapturedOneByOne) {
  const Compiled c = compile(wave, {.dynamic = false});
  for (int64_t n : {5, 6, 5}) c({ramp({n})});
  EXPECT_EQ(captures(c), 2u);
}

TEST(Compile, SizesOneAndZeroAreCapturedForThemselves) {
  const Compiled c = compile(wave);
  for (int64_t n : {4, 1, 0, 3, 1}) expect_equal(c({ramp({n, 2})})[0], wave({ramp({n, 2})})[0]);
  EXPECT_EQ(captures(c), 3u);
}

TEST(Compile, EveryDifferenceHasItsReason) {
  const Compiled c = compile(wave);
  c({ramp({4, 3})});
  auto expect_reason = [&](const Tensor& t, const std::string& part) {
    const size_t before = captures(c);
    expect_equal(c({t})[0], wave({t})[0]);
    ASSERT_EQ(captures(c), before + 1) << part;
    EXPECT_TRUE(mentions(last_reason(c), part)) << last_reason(c);
  };
  expect_reason(ramp({4, 3}, 0, 1, DType::Float64), "dtype is float64, captured for float32");
  expect_reason(ramp({4}), "1 dimensions, captured for 2");
  expect_reason(leaf(ramp({4, 3})), "requires_grad");
  expect_reason(permute(ramp({3, 4}), {1, 0}), "stride");
}

TEST(Compile, ContiguousCopiesAskNothingOfStrides) {
  // The stride of the second dimension is the first one's size, by chance 3 * 2 here.
  auto f = [](const Tensors& a) {
    return Tensors{repeat(slice(permute(a[0], {1, 0}), 0, -5, std::nullopt, 2), {1, 2})};
  };
  const Compiled c = compile(f, {.dynamic = true});
  for (int64_t n : {6, 9, 13}) expect_equal(c({ramp({1, n})})[0], f({ramp({1, n})})[0]);
  EXPECT_EQ(captures(c), 1u);
}

TEST(Compile, GuardsOnRelationsOfSizes) {
  auto f = [](const Tensors& a) {
    return Tensors{a[0].size(0) > a[1].size(0) ? add(a[0], 1.0) : mul(a[1], 2.0)};
  };
  const Compiled c = compile(f);
  expect_equal(c({ramp({5}), ramp({3})})[0], f({ramp({5}), ramp({3})})[0]);
  expect_equal(c({ramp({9}), ramp({2})})[0], f({ramp({9}), ramp({2})})[0]);
  EXPECT_EQ(captures(c), 1u);
  expect_equal(c({ramp({3}), ramp({5})})[0], f({ramp({3}), ramp({5})})[0]);
  EXPECT_EQ(captures(c), 2u);
}

TEST(Compile, AtTheLimitItRunsEagerly) {
  const Compiled c = compile(wave, {.dynamic = false, .recompile_limit = 2});
  for (int64_t n : {2, 3, 4, 5}) expect_equal(c({ramp({n})})[0], wave({ramp({n})})[0]);
  EXPECT_EQ(captures(c), 2u);
  ASSERT_FALSE(c.explain().fallbacks.empty());
  EXPECT_TRUE(mentions(c.explain().fallbacks[0], "compiled 2 times"));
  const Compiled strict = compile(wave, {.dynamic = false, .fullgraph = true, .recompile_limit = 1});
  strict({ramp({2})});
  EXPECT_THROW(strict({ramp({3})}), RuntimeError);
}

Tensors reads_a_value(const Tensors& a) {
  return {a[0].item().to_double() > 0 ? add(a[1], 1.0) : sub(a[1], 1.0)};
}

TEST(Compile, AReadValueMakesItRunEagerly) {
  const Compiled c = compile(reads_a_value);
  for (double x : {1.0, -1.0}) {
    const Tensors in{ramp({}, x), ramp({3})};
    expect_equal(c(in)[0], reads_a_value(in)[0]);
  }
  EXPECT_EQ(captures(c), 0u);
  EXPECT_EQ(c.explain().fallbacks.size(), 1u);
}

TEST(Compile, FullgraphRaisesInsteadOfRunningEagerly) {
  EXPECT_THROW(compile(reads_a_value, {.fullgraph = true})({ramp({}), ramp({3})}), UnsupportedError);
}

TEST(Compile, ErrorsOfTheFunctionAreItsOwn) {
  const Compiled c = compile([](const Tensors& a) { return Tensors{add(a[0], a[1])}; });
  EXPECT_THROW(c({ramp({3}), ramp({4})}), RuntimeError);
  expect_equal(c({ramp({3}), ramp({3})})[0], add(ramp({3}), ramp({3})));
}

TEST(Compile, Explanation) {
  const Compiled c =
      compile([](const Tensors& a) { return Tensors{sum(exp(add(a[0], 1.0)), Sizes{1}, false)}; });
  c({ramp({4, 5})});
  const Explanation e = c.explain();
  ASSERT_EQ(e.graphs.size(), 1u);
  EXPECT_EQ(e.graphs[0].reason, "first call");
  EXPECT_EQ(e.graphs[0].kernels, 1);
  EXPECT_EQ(e.graphs[0].operators, 3);
  EXPECT_TRUE(mentions(e.graphs[0].graph, "exp"));
  EXPECT_TRUE(mentions(e.str(), "1 captures")) << e.str();
}

TEST(Compile, Backends) {
  const Tensors in{ramp({4, 3})};
  for (const char* backend : {"native", "interpreter", "aot_eager", "eager"})
    expect_equal(compile(wave, {.backend = backend})(in)[0], wave(in)[0]);
  try {
    compile(wave, {.backend = "nothing"});
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_TRUE(mentions(e.message(), "native")) << e.message();
  }
}

TEST(Compile, RegisteredBackend) {
  static int compiled = 0, run = 0;
  register_backend("counting", [](const graph::Graph& g) -> GraphRunner {
    ++compiled;
    return [runner = aot::interpreted(g)](const std::vector<Value>& in) {
      ++run;
      return runner(in);
    };
  });
  const std::vector<std::string> known = list_backends();
  EXPECT_NE(std::find(known.begin(), known.end(), "counting"), known.end());
  const Compiled c = compile(wave, {.backend = "counting"});
  for (int k = 0; k < 3; ++k) expect_equal(c({ramp({4})})[0], wave({ramp({4})})[0]);
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(run, 3);
}

TEST(Compile, ChangedInputs) {
  auto f = [](const Tensors& a) {
    mul.in_place(a[0], 2.0);
    add.in_place(slice(a[1], 0, 1, 3), 1.0);
    return Tensors{add(a[0], 1.0), a[0]};
  };
  const Compiled c = compile(f);
  for (int round = 0; round < 2; ++round) {
    const Tensors eager{ramp({4}), ramp({4}, 2)}, given{ramp({4}), ramp({4}, 2)};
    const int64_t before = version(given[0]);
    const void* data = given[0].data();
    const Tensors expected = f(eager), got = c(given);
    expect_equal(got[0], expected[0]);
    EXPECT_TRUE(got[1].is_same(given[0]));
    for (int k = 0; k < 2; ++k) expect_equal(given[k], eager[k]);
    EXPECT_EQ(given[0].data(), data);
    EXPECT_GT(version(given[0]), before);
  }
}

TEST(Compile, ChangedCapturedTensors) {
  const Tensor counter = ramp({3}, 0, 0), table = ramp({2, 3});
  const void* data = counter.data();
  const Compiled c = compile([counter, table](const Tensors& a) {
    add.in_place(counter, a[0]);
    copy.in_place(select(table, 0, 1), counter);
    return Tensors{mul(counter, 2.0)};
  });
  for (int k = 1; k <= 3; ++k) {
    expect_equal(c({ramp({3}, 1, 0)})[0], ramp({3}, 2.0 * k, 0));
    expect_equal(counter, ramp({3}, k, 0));
    expect_equal(select(table, 0, 1), counter);
  }
  expect_equal(select(table, 0, 0), select(ramp({2, 3}), 0, 0));
  EXPECT_EQ(counter.data(), data);
  EXPECT_GE(version(counter), 3);
  // Changes from outside are seen.
  fill.in_place(counter, scalar_tensor(Scalar(10.0), DType::Float32));
  expect_equal(c({ramp({3}, 1, 0)})[0], ramp({3}, 22, 0));
  EXPECT_EQ(captures(c), 1u);
}

/// Two layers and their optimiser.
struct Model {
  Tensor first = leaf(ramp({4, 5}, -0.5, 0.05)), second = leaf(ramp({5, 1}, 0.3, -0.1));
  optim::SGD optimizer{Tensors{first, second}, {.lr = 0.05, .momentum = 0.5}};

  Tensors step(const Tensors& a) {
    const Tensor y = mm(tanh(mm(a[0], first)), second);
    const Tensor loss = mean(square(sub(y, a[1])), Sizes{0, 1}, false);
    optimizer.zero_grad();
    backward(loss);
    optimizer.step();
    return {detach(loss)};
  }
};

TEST(Compile, WholeTrainingStep) {
  for (const char* backend : {"native", "aot_eager"}) {
    Model eager, model;
    const Compiled c = compile([&](const Tensors& a) { return model.step(a); },
                               {.backend = backend, .fullgraph = true, .name = "step"});
    double first = 0, last = 0;
    for (int k = 0; k < 20; ++k) {
      const Tensors in{ramp({6, 4}, -1, 0.083), ramp({6, 1}, 0.2, 0.1)};
      const double expected = eager.step(in)[0].item().to_double();
      last = c(in)[0].item().to_double();
      if (k == 0) first = last;
      ASSERT_NEAR(last, expected, 1e-5 * std::abs(expected)) << backend << ", step " << k;
    }
    EXPECT_LT(last, 0.5 * first);
    const std::vector<double> x = elements(eager.first), y = elements(model.first);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5);
  }
}

TEST(Compile, RandomNumbersAreThoseOfEagerMode) {
  auto f = [](const Tensors& a) {
    const Tensor kept = dropout(a[0], 0.4, true);
    return Tensors{kept, rand({5}), add(randn({3, 2}), rand_like(ramp({3, 2})))};
  };
  for (const char* backend : {"native", "interpreter", "aot_eager"}) {
    const Compiled c = compile(f, {.backend = backend, .fullgraph = true});
    manual_seed(11);
    std::vector<Tensors> expected;
    for (int k = 0; k < 3; ++k) expected.push_back(f({ramp({4, 4})}));
    manual_seed(11);
    for (int k = 0; k < 3; ++k) {
      const Tensors got = c({ramp({4, 4})});
      for (size_t i = 0; i < got.size(); ++i) expect_equal(got[i], expected[k][i]);
    }
    EXPECT_NE(elements(expected[0][1]), elements(expected[1][1]));
  }
}

TEST(Compile, DropoutInBackwardIsThatOfForward) {
  auto f = [](const Tensors& a) { return Tensors{dropout(mul(a[0], 3.0), 0.5, true)}; };
  const Compiled c = compile(f);
  auto gradient = [](const Callable& g) {
    manual_seed(5);
    const Tensor x = leaf(ramp({40}, 1));
    const Tensor out = g({x})[0];
    backward(out, full(out.sizes(), 1.0));
    return std::pair(elements(out), elements(x.grad()));
  };
  EXPECT_EQ(gradient(f), gradient(c));
}

TEST(Compile, CallsFromSeveralThreads) {
  const Compiled c = compile(wave);
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        const Tensor x = ramp({2 + (t + k) % 7, 3}, t);
        if (elements(c({x})[0]) != elements(wave({x})[0])) wrong[t] = fmt::format("call {}", k);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
  EXPECT_EQ(captures(c), 1u);
  EXPECT_EQ(c.explain().calls, 200);
}

TEST(Compile, InsideAnotherCompiledFunctionItIsAPart) {
  const Compiled inner = compile(wave);
  const Compiled outer = compile([&](const Tensors& a) { return Tensors{add(inner(a)[0], 1.0)}; });
  expect_equal(outer({ramp({4})})[0], add(wave({ramp({4})})[0], 1.0));
  EXPECT_EQ(captures(inner), 0u);
  EXPECT_EQ(outer.explain().graphs[0].kernels, 1);
}

TEST(Compile, GradientsOnAndOff) {
  const Compiled c = compile(wave);
  const Tensor x = leaf(ramp({4}));
  const Tensor with = c({x})[0];
  EXPECT_TRUE(with.requires_grad());
  {
    NoGradGuard off;
    EXPECT_FALSE(c({x})[0].requires_grad());
  }
  EXPECT_FALSE(c({ramp({4})})[0].requires_grad());
  EXPECT_EQ(captures(c), 3u);
  backward(with, full({4}, 1.0));
  const Tensor same = leaf(ramp({4}));
  backward(wave({same})[0], full({4}, 1.0));
  expect_equal(x.grad(), same.grad());
}

TEST(Compile, OutputsThatAreInputsOrViewsOfThem) {
  auto f = [](const Tensors& a) {
    return Tensors{a[0], select(a[0], 0, 1), permute(a[1], {1, 0}), Tensor(), a[0]};
  };
  const Compiled c = compile(f);
  const Tensors in{ramp({3, 2}), ramp({2, 5})};
  const Tensors out = c(in);
  EXPECT_TRUE(out[0].is_same(in[0]));
  EXPECT_TRUE(out[4].is_same(in[0]));
  EXPECT_EQ(out[1].storage(), in[0].storage());
  EXPECT_TRUE(out[1].offset().same_as(2));
  EXPECT_EQ(out[2].storage(), in[1].storage());
  EXPECT_FALSE(out[3].defined());
}

TEST(Compile, AnOutputTwice) {
  const Compiled c = compile([](const Tensors& a) {
    const Tensor view = select(mul(a[0], 3.0), 0, 1);
    return Tensors{view, a[0], view};
  });
  const Tensor x = leaf(ramp({3, 2}));
  const Tensors out = c({x});
  EXPECT_TRUE(out[0].is_same(out[2]));
  backward(out[0], full({2}, 1.0));
  EXPECT_EQ(elements(x.grad()), (std::vector<double>{0, 0, 3, 3, 0, 0}));
}

TEST(Compile, WhatFollowsFromAGuardHoldsInTheLoops) {
  // The diagonal has one element, which is known from a guard only.
  auto f = [](const Tensors& a) { return Tensors{add(a[0], diagonal(a[0], -1))}; };
  for (int64_t rows : {2, 3}) {
    const Tensor x = ramp({rows, 2});
    expect_equal(compile(f)({x})[0], f({x})[0]);
  }
}

TEST(Compile, GradientsThatEagerWouldOnlyMissLater) {
  // The second change destroys what the gradient of the first needs; nobody asks for that gradient.
  auto f = [](const Tensors& a) {
    const Tensor y = exp.in_place(a[0]);
    mul.in_place(y, y);
    return Tensors{mul(a[1], 2.0)};
  };
  auto inputs = [] { return Tensors{mul(leaf(ramp({3})), 1.0), ramp({3})}; };
  const Tensors eager = inputs(), given = inputs();
  expect_equal(compile(f)(given)[0], f(eager)[0]);
  expect_equal(given[0], eager[0]);
  EXPECT_THROW(compile(f, {.fullgraph = true})(inputs()), UnsupportedError);
}

}  // namespace
}  // namespace fl
