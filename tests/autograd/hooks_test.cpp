#include "flambeau/autograd/meta.h"
#include "support.h"

namespace fl::testing {
namespace {

class Hooks : public AutogradTest {};

TEST_F(Hooks, OnTensorsSeeAndReplaceTheGradient) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 2.0);
  Floats seen;
  HookHandle h = register_hook(y, [&](const Tensor& g) {
    seen = values(g);
    return mul(g, 10.0);
  });
  Tensor z = mul(y, 3.0);
  backward(z, ones(x), keep_graph());
  EXPECT_EQ(seen, (Floats{3, 3}));
  EXPECT_EQ(values(x.grad()), (Floats{60, 60}));
  h.remove();
  h.remove();
  x.set_grad({});
  backward(z, ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{6, 6}));
}

TEST_F(Hooks, OnALeafRunOnceWithTheWhole) {
  Tensor x = leaf({1});
  int calls = 0;
  register_hook(x, [&](const Tensor& g) {
    ++calls;
    EXPECT_EQ(values(g), Floats{5});
    return Tensor();
  });
  backward(add(mul(x, 2.0), mul(x, 3.0)), ones(x));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values(x.grad()), Floats{5});
}

TEST_F(Hooks, AndWantedGradients) {
  // As PyTorch 2.15: a wanted gradient comes after the hooks, unless the pass goes on from there.
  Tensor x = leaf({1, 1});
  Tensor y = mul(x, 2.0);
  register_hook(y, [](const Tensor& g) { return mul(g, 10.0); });
  Tensors g = grad({mul(y, 3.0)}, {y, x}, {ones(x)}, keep_graph());
  EXPECT_EQ(values(g[0]), (Floats{3, 3}));
  EXPECT_EQ(values(g[1]), (Floats{60, 60}));
  g = grad({mul(y, 3.0)}, {y}, {ones(x)});
  EXPECT_EQ(values(g[0]), (Floats{30, 30}));
}

TEST_F(Hooks, MustKeepTheSize) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 2.0);
  register_hook(y, [](const Tensor& g) { return slice(g, 0, 0, 1); });
  EXPECT_EQ(error_of([&] { backward(y, ones(x)); }),
            "hook has changed the size of value: it got [2] and returned [1]");
  EXPECT_EQ(error_of([&] { register_hook(constant({1}), [](const Tensor& g) { return g; }); }),
            "cannot register a hook on a tensor that doesn't require gradient");
}

TEST_F(Hooks, RetainGrad) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 2.0);
  retain_grad(y);
  retain_grad(y);
  retain_grad(x);
  EXPECT_TRUE(retains_grad(y));
  EXPECT_FALSE(retains_grad(x));
  backward(mul(y, 3.0), ones(x));
  EXPECT_EQ(values(y.grad()), (Floats{3, 3}));
  EXPECT_EQ(error_of([&] { retain_grad(constant({1})); }),
            "can't retain_grad on Tensor that has requires_grad=False");
}

TEST_F(Hooks, RetainGradFollowsAnInPlaceChange) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 2.0);
  retain_grad(y);
  mul.in_place(y, 5.0);
  backward(mul(y, 3.0), ones(x));
  EXPECT_EQ(values(y.grad()), (Floats{3, 3}));
  EXPECT_EQ(values(x.grad()), (Floats{30, 30}));
}

TEST_F(Hooks, RetainGradOfATensorThatIsGone) {
  Tensor x = leaf({1, 2}), z;
  {
    Tensor y = mul(x, 2.0);
    retain_grad(y);
    z = mul(y, 3.0);
  }
  backward(z, ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{6, 6}));
}

TEST_F(Hooks, OnNodes) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 2.0);
  Node& node = *grad_fn(y);
  register_node_pre_hook(node, [](Tensors& g) { g[0] = mul(g[0], 2.0); });
  register_node_hook(node, [](Tensors& in, const Tensors& out) {
    EXPECT_EQ(values(out[0]), (Floats{2, 2}));
    in[0] = mul(in[0], 100.0);
  });
  backward(y, ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{400, 400}));
}

TEST_F(Hooks, AfterAccumulation) {
  Tensor x = leaf({1, 2});
  int calls = 0;
  HookHandle h = register_post_accumulate_grad_hook(x, [&](const Tensor& leaf) {
    ++calls;
    leaf.set_grad({});
  });
  backward(mul(x, 2.0), ones(x));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(x.grad().defined());
  h.remove();
  backward(mul(x, 2.0), ones(x));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error_of([&] { register_post_accumulate_grad_hook(mul(x, 2.0), [](const Tensor&) {}); }),
            "post accumulate grad hooks cannot be registered on non-leaf tensors");
}

TEST_F(Hooks, MayRunAnotherPass) {
  Tensor x = leaf({1, 2}), w = leaf({5, 5});
  Tensor y = mul(x, 2.0);
  register_hook(y, [&](const Tensor& g) {
    EnableGradGuard grad_on;
    backward(mul(w, w), g);
    return Tensor();
  });
  backward(mul(y, 3.0), ones(x));
  EXPECT_EQ(values(w.grad()), (Floats{30, 30}));
  EXPECT_EQ(values(x.grad()), (Floats{6, 6}));
}

TEST_F(Hooks, OfSavedTensors) {
  Tensor x = leaf({2, 3});
  int packed = 0, unpacked = 0;
  Tensor z;
  {
    SavedTensorHooks hooks(
        [&](const Tensor& t) {
          ++packed;
          return std::any(values(t));
        },
        [&](const std::any& a) {
          ++unpacked;
          return constant(std::any_cast<const Floats&>(a));
        });
    z = exp(mul(x, x));
  }
  EXPECT_EQ(packed, 3);
  EXPECT_EQ(unpacked, 0);
  const Tensor g = grad({z}, {x}, {ones(x)}, create_graph())[0];
  EXPECT_EQ(unpacked, 3);
  EXPECT_NEAR(values(g)[0], 4 * std::exp(4.0f), 1e-2);
  // The unpacked tensors are still part of the graph: d2/dx2 exp(x^2) = (2 + 4x^2) exp(x^2).
  EXPECT_NEAR(values(grad({g}, {x}, {ones(x)})[0])[0], 18 * std::exp(4.0f), 1e-1);
}

}  // namespace
}  // namespace fl::testing
