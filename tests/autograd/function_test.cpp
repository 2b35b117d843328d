#include "flambeau/autograd/function.h"

#include "flambeau/autograd/gradcheck.h"
#include "support.h"

namespace fl::testing {
namespace {

class Functions : public AutogradTest {};

struct Exp : Function<Exp> {
  static constexpr std::string_view name = "Exp";
  static Tensors forward(FunctionCtx& c, const Tensor& x) {
    Tensor y = exp(x);
    c.save_for_backward({y});
    return {y};
  }
  static Tensors backward(FunctionCtx& c, Tensors g) { return {mul(g[0], c.saved()[0])}; }
};

/// scale * a * b, with a number among the arguments.
struct Scaled : Function<Scaled> {
  static Tensors forward(FunctionCtx& c, const Tensor& a, double scale, const Tensor& b) {
    c.save_for_backward({a, b});
    c.data["scale"] = scale;
    return {mul(mul(a, b), scale)};
  }
  static Tensors backward(FunctionCtx& c, Tensors g) {
    const Tensors s = c.saved();
    const double scale = c.data["scale"].to_double();
    Tensor scaled = mul(g[0], scale);
    return {c.needs_input_grad(0) ? mul(scaled, s[1]) : Tensor(),
            c.needs_input_grad(1) ? mul(scaled, s[0]) : Tensor()};
  }
};

TEST_F(Functions, HaveTheirOwnGradient) {
  Tensor x = leaf({0, 1});
  Tensor y = Exp::apply(x)[0];
  EXPECT_EQ(grad_fn(y)->name(), "ExpBackward");
  const Tensor g = grad({y}, {x}, {ones(x)}, create_graph())[0];
  EXPECT_NEAR(values(g)[1], 2.7182817f, 1e-5);
  EXPECT_NEAR(values(grad({g}, {x}, {ones(x)})[0])[1], 2.7182817f, 1e-5) << "through the saved output";
}

TEST_F(Functions, TakeNumbersAndConstants) {
  Tensor a = leaf({1, 2});
  backward(Scaled::apply(a, 3.0, constant({5, 7}))[0], ones(a));
  EXPECT_EQ(values(a.grad()), (Floats{15, 21}));
  EXPECT_FALSE(Scaled::apply(constant({1}), 3.0, constant({5}))[0].requires_grad());
}

TEST_F(Functions, PassGradcheck) {
  auto f = [](const Tensors& in) { return Scaled::apply(in[0], 2.0, in[1]); };
  Tensor a = tensor_from(std::vector<double>{1, 2}, {2}).set_requires_grad(true);
  Tensor b = tensor_from(std::vector<double>{3, -4}, {2}).set_requires_grad(true);
  gradcheck(f, {a, b});
  gradgradcheck(f, {a, b});
}

struct TwoOutputs : Function<TwoOutputs> {
  static inline bool materialize = true;
  static inline bool second_defined = false;
  static Tensors forward(FunctionCtx& c, const Tensor& x) {
    Tensor count = gt(x, 0.0), other = mul(x, 3.0);
    c.mark_non_differentiable({count});
    c.set_materialize_grads(materialize);
    return {mul(x, 2.0), other, count};
  }
  static Tensors backward(FunctionCtx&, Tensors g) {
    second_defined = g[1].defined();
    Tensor r = mul(g[0], 2.0);
    if (g[1].defined()) r = add(r, mul(g[1], 3.0));
    return {r};
  }
};

TEST_F(Functions, MissingGradientsAreZerosUnlessAskedFor) {
  Tensor x = leaf({1, 2});
  for (bool materialize : {true, false}) {
    TwoOutputs::materialize = materialize;
    const Tensors out = TwoOutputs::apply(x);
    EXPECT_FALSE(out[2].requires_grad());
    x.set_grad({});
    backward(out[0], ones(x));
    EXPECT_EQ(TwoOutputs::second_defined, materialize);
    EXPECT_EQ(values(x.grad()), (Floats{2, 2}));
  }
}

struct AddOne : Function<AddOne> {
  static inline bool return_it = true;
  static Tensors forward(FunctionCtx& c, const Tensor& x) {
    add.in_place(x, 1);
    c.mark_dirty({x});
    return {return_it ? x : mul(x, 2.0)};
  }
  static Tensors backward(FunctionCtx&, Tensors g) { return {mul(g[0], 10.0)}; }
};

TEST_F(Functions, ChangeInputsInPlace) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 1.0);
  Tensor z = AddOne::apply(y)[0];
  EXPECT_TRUE(z.is_same(y));
  backward(y, ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{10, 10}));
  EXPECT_EQ(error_of([&] { AddOne::apply(x); }),
            "a leaf Variable that requires grad has been used in an in-place operation.");
  AddOne::return_it = false;
  EXPECT_EQ(
      error_of([&] { AddOne::apply(mul(x, 1.0)); }),
      "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
      "are modified inplace must all be outputs of the Function.");
  AddOne::return_it = true;
}

TEST_F(Functions, ChangeViewsInPlace) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = mul(x, 1.0);
  AddOne::apply(select(y, 0, 1));
  EXPECT_EQ(grad_fn(y)->name(), "CopySlices");
  backward(y, ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{1, 10, 1}));
}

struct Once : Function<Once> {
  static constexpr bool once_differentiable = true;
  static Tensors forward(FunctionCtx&, const Tensor& x) { return {mul(x, 2.0)}; }
  static Tensors backward(FunctionCtx&, Tensors g) { return {mul(g[0], 2.0)}; }
};

TEST_F(Functions, OnceDifferentiable) {
  Tensor x = leaf({1, 2}), g = leaf({1, 1});
  const Tensor first = grad({Once::apply(x)[0]}, {x}, {g}, create_graph())[0];
  EXPECT_EQ(values(first), (Floats{2, 2}));
  EXPECT_EQ(error_of([&] { backward(first, ones(x)); }),
            "trying to differentiate twice a function that was marked with @once_differentiable");
}

struct WrongShape : Function<WrongShape> {
  static constexpr std::string_view name = "F";
  static Tensors forward(FunctionCtx&, const Tensor& x) { return {mul(x, 2.0)}; }
  static Tensors backward(FunctionCtx&, Tensors g) { return {slice(g[0], 0, 0, 2)}; }
};
struct WrongCount : Function<WrongCount> {
  static constexpr std::string_view name = "G";
  static Tensors forward(FunctionCtx&, const Tensor& x) { return {mul(x, 2.0)}; }
  static Tensors backward(FunctionCtx&, Tensors g) { return {g[0], g[0]}; }
};

TEST_F(Functions, WrongGradientsAreNamed) {
  Tensor x = leaf({1, 2, 3});
  EXPECT_EQ(error_of([&] { backward(WrongShape::apply(x)[0], ones(x)); }),
            "Function FBackward returned an invalid gradient at index 0 - got [2] but expected shape "
            "compatible with "
            "[3]");
  EXPECT_EQ(error_of([&] { backward(WrongCount::apply(x)[0], ones(x)); }),
            "function GBackward returned an incorrect number of gradients (expected 1, got 2)");
}

struct AsView : Function<AsView> {
  static constexpr std::string_view name = "E";
  static Tensors forward(FunctionCtx&, const Tensor& x) { return {view(x, {-1})}; }
  static Tensors backward(FunctionCtx&, Tensors g) { return g; }
};

TEST_F(Functions, ViewsTheyReturnMustNotChange) {
  Tensor y = mul(leaf({1, 2}), 1.0);
  Tensor z = AsView::apply(y)[0];
  EXPECT_EQ(
      error_of([&] { add.in_place(z, 1); }),
      "Output 0 of E is a view and is being modified inplace. This view was created inside a custom Function "
      "(or because an input was returned as-is) and the autograd logic to handle view+inplace would override "
      "the custom backward associated with the custom Function, leading to incorrect gradients. This "
      "behavior "
      "is forbidden. You can fix this by cloning the output of the custom Function.");
}

}  // namespace
}  // namespace fl::testing
