#include <thread>

#include "flambeau/autograd/node.h"
#include "flambeau/op/op.h"
#include "support.h"

namespace fl::testing {
namespace {

class Engine : public AutogradTest {};

TEST_F(Engine, GradientOfAProduct) {
  Tensor x = leaf({1, 2, 3}), y = leaf({4, 5, 6});
  Tensor z = mul(x, y);
  EXPECT_TRUE(z.requires_grad());
  EXPECT_FALSE(z.is_leaf());
  EXPECT_EQ(grad_fn(z)->name(), "MulBackward0");
  backward(z, constant({1, 10, 100}));
  EXPECT_EQ(values(x.grad()), (Floats{4, 50, 600}));
  EXPECT_EQ(values(y.grad()), (Floats{1, 20, 300}));
}

TEST_F(Engine, LeavesAccumulate) {
  Tensor x = leaf({1, 2});
  backward(mul(x, x), ones(x));
  const Tensor first = x.grad();
  EXPECT_EQ(values(first), (Floats{2, 4}));
  backward(mul(x, 3.0), ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{5, 7}));
  EXPECT_TRUE(first.is_same(x.grad())) << "added to in place";
}

TEST_F(Engine, CreateGraphAddsOutOfPlace) {
  Tensor x = leaf({1, 2});
  backward(mul(x, x), ones(x));
  const Tensor first = x.grad();
  backward(mul(x, x), ones(x), create_graph());
  EXPECT_EQ(values(x.grad()), (Floats{4, 8}));
  EXPECT_FALSE(first.is_same(x.grad()));
  EXPECT_TRUE(x.grad().requires_grad());
  x.set_grad({});  // or x would keep itself alive through its gradient's graph
}

TEST_F(Engine, GivenGradientIsNotTaken) {
  Tensor x = leaf({1, 2}), g = constant({1, 1});
  backward(add(x, 1), g);
  EXPECT_NE(x.grad().data(), g.data());
}

TEST_F(Engine, ScalarOutputNeedsNoGradient) {
  Tensor x = leaf({3}, {});
  backward(mul(x, x));
  EXPECT_EQ(values(x.grad()), Floats{6});
  Tensor one = leaf({1}, {});
  backward(one);
  EXPECT_EQ(values(one.grad()), Floats{1});
}

TEST_F(Engine, ErrorsOfRoots) {
  Tensor x = leaf({1, 2, 3});
  EXPECT_EQ(error_of([&] { backward(mul(x, 2.0)); }),
            "grad can be implicitly created only for scalar outputs");
  EXPECT_EQ(error_of([&] { backward(constant({1}, {})); }),
            "element 0 of tensors does not require grad and does not have a grad_fn");
  EXPECT_EQ(error_of([&] {
              backward(mul(x, 2.0), constant({1, 1}));
            }),
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of "
            "torch.Size([3]).");
  EXPECT_EQ(error_of([&] { grad({mul(x, x), x}, {x}, {ones(x)}); }), "got 2 tensors and 1 gradients");
  EXPECT_EQ(error_of([&] { grad({mul(x, x)}, {}, {ones(x)}); }),
            "`inputs` argument to `grad()` cannot be empty.");
  EXPECT_EQ(error_of([&] { backward(mul(x, x), ones(x), {}, Tensors{}); }),
            "`inputs` argument to `backward()` cannot be empty.");
}

TEST_F(Engine, SecondPassNeedsRetainGraph) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, x);
  backward(y, ones(x), keep_graph());
  backward(y, ones(x));
  EXPECT_EQ(values(x.grad()), (Floats{4, 8}));
  EXPECT_EQ(
      error_of([&] { backward(y, ones(x)); }),
      "Trying to backward through the graph a second time (or directly access saved tensors after they "
      "have already been freed). Saved intermediate values of the graph are freed when you call "
      ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
      "a second time or if you need to access saved tensors after calling backward.");
  // Nothing is saved for a sum, so it may run again.
  Tensor z = add(x, x);
  backward(z, ones(x));
  backward(z, ones(x));
}

TEST_F(Engine, GradReturnsAndLeavesGradAlone) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4});
  Tensor z = mul(x, y);
  const Tensors g = grad({z}, {y, x}, {ones(x)});
  EXPECT_EQ(values(g[0]), (Floats{1, 2}));
  EXPECT_EQ(values(g[1]), (Floats{3, 4}));
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Engine, GradByIntermediate) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 2.0), z = mul(y, 3.0);
  const Tensors g = grad({z}, {y, x}, {ones(x)});
  EXPECT_EQ(values(g[0]), (Floats{3, 3}));
  EXPECT_EQ(values(g[1]), (Floats{6, 6}));
}

TEST_F(Engine, UnusedInputs) {
  Tensor x = leaf({1, 2}), y = leaf({1, 2});
  EXPECT_EQ(error_of([&] { grad({mul(x, 2.0)}, {y}, {ones(x)}); }),
            "The differentiated Tensor at index 0 appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior.");
  EXPECT_FALSE(grad({mul(x, 2.0)}, {y}, {ones(x)}, {}, true)[0].defined());
  EXPECT_EQ(error_of([&] { grad({mul(x, 2.0)}, {constant({1})}, {ones(x)}); }),
            "One of the differentiated Tensors does not require grad");
}

TEST_F(Engine, BackwardIntoChosenInputs) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4});
  backward(mul(x, y), ones(x), {}, Tensors{x});
  EXPECT_EQ(values(x.grad()), (Floats{3, 4}));
  EXPECT_FALSE(y.grad().defined());
  Tensor h = mul(x, 5.0);
  backward(mul(h, y), ones(x), {}, Tensors{h});
  EXPECT_EQ(values(h.grad()), (Floats{3, 4}));
  EXPECT_EQ(values(x.grad()), (Floats{3, 4})) << "unchanged";
}

TEST_F(Engine, DoubleBackward) {
  Tensor x = leaf({2, 3});
  Tensor y = mul(mul(x, x), x);
  const Tensor g = grad({y}, {x}, {ones(x)}, create_graph())[0];
  EXPECT_EQ(values(g), (Floats{12, 27}));
  const Tensor gg = grad({g}, {x}, {ones(x)}, create_graph())[0];
  EXPECT_EQ(values(gg), (Floats{12, 18}));
  EXPECT_EQ(values(grad({gg}, {x}, {ones(x)})[0]), (Floats{6, 6}));
}

TEST_F(Engine, DiamondsAddUpOnce) {
  Tensor x = leaf({1});
  Tensor a = x;
  for (int i = 0; i < 40; ++i) a = add(a, a);  // 2^40 paths
  backward(a, constant({1}));
  EXPECT_EQ(values(x.grad()), Floats{1099511627776.0f});
}

TEST_F(Engine, DeepGraphs) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = mul(y, 1.0);
  backward(y, constant({1}), keep_graph());
  EXPECT_EQ(values(x.grad()), Floats{1});
  y = Tensor();  // frees 100,000 nodes
  Tensor z = x;
  for (int i = 0; i < 100000; ++i) z = exp(mul(z, 0.0));  // nodes reached through saved tensors
  z = Tensor();
}

TEST_F(Engine, BroadcastArgumentsGetSums) {
  Tensor x = leaf({1, 2}), y = leaf({1, 2, 3}, {3, 1}), s = leaf({2}, {});
  Tensor z = mul(mul(x, y), s);
  backward(z, ones(z));
  EXPECT_EQ(values(x.grad()), (Floats{12, 12}));
  EXPECT_EQ(values(y.grad()), (Floats{6, 6, 6}));
  EXPECT_EQ(values(s.grad()), Floats{18});
  EXPECT_EQ(y.grad().dim(), 2);
  EXPECT_EQ(s.grad().dim(), 0);
}

TEST_F(Engine, GradientsAreCastToTheArgument) {
  Tensor x = leaf({1, 2});
  Tensor d = tensor_from(std::vector<double>{3, 4}, {2}).set_requires_grad(true);
  Tensor z = mul(x, d);
  EXPECT_EQ(z.dtype(), DType::Float64);
  backward(z, tensor_from(std::vector<double>{1, 1}, {2}));
  EXPECT_EQ(x.grad().dtype(), DType::Float32);
  EXPECT_EQ(values(x.grad()), (Floats{3, 4}));
  EXPECT_EQ(d.grad().dtype(), DType::Float64);
}

TEST_F(Engine, IntegersHaveNoGradient) {
  Tensor x = leaf({1, 2});
  EXPECT_FALSE(eq(x, x).requires_grad());
  EXPECT_EQ(error_of([&] { tensor_from(std::vector<int64_t>{1}, {1}).set_requires_grad(true); }),
            "only Tensors of floating point dtype can require gradients");
  EXPECT_EQ(
      error_of([&] { mul(x, 2.0).set_requires_grad(false); }),
      "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
      "a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
}

TEST_F(Engine, AssignedGradientsMustFit) {
  Tensor x = leaf({1, 2, 3});
  EXPECT_EQ(error_of([&] {
              x.set_grad(constant({1, 2}));
            }),
            "attempting to assign a gradient of size '[2]' to a tensor of size '[3]'. Please ensure that the "
            "gradient and the tensor are the same size");
  EXPECT_NE(error_of([&] { x.set_grad(tensor_from(std::vector<double>{1, 2, 3}, {3})); }), "no error");
  const Tensor g = constant({1, 2, 3});
  x.set_grad(g);
  EXPECT_TRUE(x.grad().is_same(g));
  x.set_grad(Tensor());
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Engine, DetachCutsTheGraph) {
  Tensor x = leaf({1, 2});
  Tensor y = detach(mul(x, 2.0));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_FALSE(is_view(y));
  Tensor d = detach(x);
  EXPECT_EQ(d.data(), x.data());
  EXPECT_TRUE(x.requires_grad());
}

TEST_F(Engine, ThreadsShareAGraph) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(exp(x), x);
  for (int i = 0; i < 10; ++i) y = mul(y, 1.0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) backward(y, ones(x), keep_graph());
    });
  for (std::thread& t : threads) t.join();
  const Floats once = values(grad({y}, {x}, {ones(x)})[0]), all = values(x.grad());
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(all[i], once[i] * 100, once[i] * 0.01);
}

constexpr Op<"test_twice(Tensor self) -> Tensor"> test_twice;

TEST_F(Engine, UnknownDerivativesAreNamed) {
  static OpTable& table = *new OpTable;
  table.define(test_twice, {.doc = "2 x, of unknown derivative.",
                            .tags = Tag::Elementwise,
                            .infer = rule::elementwise(Promote::Default),
                            .scalar = [](ScalarOps& s, Val x) { return s.add(x, x); }});
  Tensor x = leaf({1, 2});
  Tensor y = test_twice(x);
  EXPECT_EQ(values(y), (Floats{2, 4}));
  EXPECT_EQ(error_of<NotImplementedError>([&] { backward(y, ones(x)); }),
            "derivative for test_twice is not implemented");
}

}  // namespace
}  // namespace fl::testing
