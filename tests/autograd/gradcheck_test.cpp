#include "flambeau/autograd/gradcheck.h"

#include "flambeau/autograd/function.h"
#include "support.h"

namespace fl::testing {
namespace {

class Gradcheck : public AutogradTest {};

Tensor doubles(const std::vector<double>& v, IntList sizes) {
  return tensor_from(v, sizes).set_requires_grad(true);
}

TEST_F(Gradcheck, AcceptsRightGradients) {
  Tensor x = doubles({0.3, -1.2, 2}, {3}), y = doubles({1.5, 0.4}, {2, 1});
  auto f = [](const Tensors& in) { return Tensors{mul(sin(in[0]), exp(in[1])), add(in[0], 1)}; };
  gradcheck(f, {x, y});
  gradgradcheck(f, {x, y});
}

TEST_F(Gradcheck, ChecksInPlaceChangesOfViews) {
  Tensor x = doubles({0.3, -1.2, 2, 0.7}, {2, 2}), w = doubles({0.9, -0.2}, {2});
  auto f = [](const Tensors& in) {
    Tensor y = mul(in[0], in[0]);
    Tensor column = select(permute(y, {1, 0}), 0, 0);
    mul.in_place(column, in[1]);
    sin.in_place(select(y, 0, 1));
    return Tensors{y};
  };
  gradcheck(f, {x, w});
  gradgradcheck(f, {x, w});
}

struct WrongSquare : Function<WrongSquare> {
  static Tensors forward(FunctionCtx& c, const Tensor& x) {
    c.save_for_backward({x});
    return {mul(x, x)};
  }
  static Tensors backward(FunctionCtx& c, Tensors g) { return {mul(g[0], c.saved()[0])}; }
};

TEST_F(Gradcheck, NamesTheWrongElement) {
  Tensor x = doubles({1, 2}, {2});
  EXPECT_EQ(error_of([&] { gradcheck([](const Tensors& in) { return WrongSquare::apply(in[0]); }, {x}); }),
            "Jacobian mismatch for output 0 with respect to input 0: the derivative of element 0 by element "
            "0 is 2 by "
            "finite differences, but backward gives 1");
}

TEST_F(Gradcheck, RefusesWhatItCannotCheck) {
  auto same = [](const Tensors& in) { return Tensors{mul(in[0], 1.0)}; };
  EXPECT_EQ(error_of<ValueError>([&] { gradcheck(same, {leaf({1})}); }),
            "gradcheck: input 0 is float32, but finite differences need float64");
  EXPECT_EQ(error_of<ValueError>([&] { gradcheck(same, {constant({1})}); }),
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True.");
}

}  // namespace
}  // namespace fl::testing
