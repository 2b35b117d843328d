#include "support.h"

namespace fl::testing {
namespace {

class Modes : public AutogradTest {};

TEST_F(Modes, NoGradRecordsNothing) {
  Tensor x = leaf({1, 2});
  {
    NoGradGuard no_grad;
    EXPECT_FALSE(mul(x, 2.0).requires_grad());
    EnableGradGuard grad;
    EXPECT_TRUE(mul(x, 2.0).requires_grad());
  }
  EXPECT_TRUE(mul(x, 2.0).requires_grad());
}

TEST_F(Modes, InferenceTensors) {
  Tensor x = leaf({1, 2, 3}), a;
  {
    InferenceGuard inference;
    a = mul(constant({1, 2, 3}), 2.0);
    EXPECT_FALSE(mul(x, 2.0).requires_grad());
  }
  EXPECT_EQ(
      error_of([&] { mul(a, x); }),
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
      "in "
      "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and "
      "use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  EXPECT_EQ(
      error_of([&] { add.in_place(a, 1); }),
      "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
      "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
      "details.");
  EXPECT_EQ(error_of([&] { a.set_requires_grad(true); }),
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  EXPECT_TRUE(mul(clone(a), x).requires_grad());
}

/// Records nothing but that it was called.
class CountingTracer : public Tracer {
 public:
  int calls = 0, grad_changes = 0;
  void record(const OpInfo& op, Value* args, Value* outs) override {
    ++calls;
    StateGuard<Tracer*> off(&DispatchState::tracer, nullptr);
    dispatch_below_autograd(op, args, outs);
  }
  void before_grad_change(const Tensor&, bool) override { ++grad_changes; }
};

TEST_F(Modes, BackwardOfTracedTensorsIsTraced) {
  Tensor x = leaf({1, 2, 3});
  CountingTracer tracer;
  {
    StateGuard<Tracer*> on(&DispatchState::tracer, &tracer);
    TensorSpec spec = x.spec();
    Tensor fake = fake_tensor(spec);
    Tensor y = exp(mul(x, fake));
    EXPECT_FALSE(y.has_data());
    EXPECT_TRUE(y.requires_grad());
    const int forward_calls = tracer.calls;
    EXPECT_EQ(forward_calls, 2);
    backward(y, fake_tensor(spec));
    EXPECT_EQ(tracer.calls, forward_calls + 2);
  }
  EXPECT_EQ(tracer.grad_changes, 1);
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(x.grad().has_data());
}

}  // namespace
}  // namespace fl::testing
