#include "support.h"

namespace fl::testing {
namespace {

class InPlace : public AutogradTest {};

TEST_F(InPlace, ChangesTheHistory) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 1.0);
  mul.in_place(y, 3.0);
  EXPECT_EQ(version(y), 1);
  EXPECT_EQ(values(y), (Floats{3, 6}));
  backward(y, ones(y));
  EXPECT_EQ(values(x.grad()), (Floats{3, 3}));
}

TEST_F(InPlace, GivesAConstantAHistory) {
  Tensor x = leaf({1, 2}), y = constant({5, 5});
  add.in_place(y, x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  backward(y, ones(y));
  EXPECT_EQ(values(x.grad()), (Floats{1, 1}));
}

TEST_F(InPlace, FormulasSeeTheOldValue) {
  Tensor x = leaf({2, 3}), w = leaf({5, 7});
  Tensor y = mul(x, 1.0);
  mul.in_place(y, w);  // d/dw reads y before the change
  backward(y, ones(y));
  EXPECT_EQ(values(w.grad()), (Floats{2, 3}));
  EXPECT_EQ(values(x.grad()), (Floats{5, 7}));
  Tensor e = mul(x, 1.0);
  exp.in_place(e);  // reads its result
  x.set_grad({});
  backward(e, ones(e));
  EXPECT_NEAR(values(x.grad())[0], 7.389056f, 1e-4);
}

TEST_F(InPlace, LeavesAreRefused) {
  Tensor x = leaf({1, 2, 3});
  EXPECT_EQ(error_of([&] { add.in_place(x, 1); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(error_of([&] { add.in_place(select(x, 0, 0), 1); }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  NoGradGuard no_grad;
  add.in_place(x, 1);
  EXPECT_EQ(values(x), (Floats{2, 3, 4}));
  EXPECT_EQ(version(x), 1);
  EXPECT_TRUE(x.is_leaf());
}

TEST_F(InPlace, SavedTensorsMustNotChange) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = exp(x), z = mul(y, y);
  add.in_place(y, 1);
  EXPECT_EQ(
      error_of([&] { backward(z, ones(z)); }),
      "one of the variables needed for gradient computation has been modified by an inplace operation: "
      "[torch.FloatTensor [3]], which is output 0 of Exp, is at version 1; expected version 0 instead. Hint: "
      "enable anomaly detection to find the operation that failed to compute its gradient, with "
      "torch.autograd.set_detect_anomaly(True, check_nan=False).");
  Tensor w = constant({1, 1, 1});
  z = mul(x, w);
  add.in_place(w, 1);
  EXPECT_EQ(
      error_of([&] { backward(z, ones(z)); }),
      "one of the variables needed for gradient computation has been modified by an inplace operation: "
      "[torch.FloatTensor [3]] is at version 1; expected version 0 instead. Hint: enable anomaly detection "
      "to "
      "find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
      "check_nan=False).");
}

TEST_F(InPlace, WhatANodeSavedMayDependOnTheNodeLater) {
  const auto live = [] { return allocator_stats({}).allocated; };
  const int64_t before = live();
  {
    const Tensor x = leaf({1, 2, 3}), y = exp(x), w = constant({1, 1, 1}), z = mul(y, w);
    add.in_place(y, z);                                                    // with a history
    add.in_place(w, z);                                                    // without one so far
    add.in_place(select(y, 0, 0), mul(select(y, 0, 0), select(z, 0, 1)));  // through a view
    EXPECT_TRUE(w.requires_grad());
  }
  EXPECT_EQ(live(), before) << "a cycle";
}

TEST_F(InPlace, ChangingWhatNoGradientReadsIsFine) {
  Tensor x = leaf({1, 2});
  Tensor h = mul(x, 1.0), c = constant({3, 4});
  Tensor z = mul(h, c);
  add.in_place(h, 1);  // only d/dc would read it
  backward(z, ones(z));
  EXPECT_EQ(values(x.grad()), (Floats{3, 4}));
}

TEST_F(InPlace, ATensorTimesItself) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = mul(x, 1.0);
  mul.in_place(y, y);
  EXPECT_NE(error_of([&] { backward(y, ones(y)); }).find("modified by an inplace operation"),
            std::string::npos);
}

TEST_F(InPlace, OutFormsRefuseGradients) {
  Tensor x = leaf({1, 2});
  const OpInfo& out_form = *add.info().out;
  EXPECT_EQ(error_of([&] {
              call(out_form, {x, Value(1), Value(1), constant({0, 0})});
            }),
            "add(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.");
  NoGradGuard no_grad;
  Tensor out = constant({0, 0});
  call(out_form, {x, Value(1), Value(1), out});
  EXPECT_EQ(values(out), (Floats{2, 3}));
}

TEST_F(InPlace, AViewRewritesItsBase) {
  Tensor x = leaf({1, 2, 3, 4}, {2, 2}), w = leaf({10, 20});
  Tensor y = mul(x, 1.0);
  Tensor row = select(y, 0, 1);
  mul.in_place(row, w);
  EXPECT_EQ(grad_fn(y)->name(), "CopySlices");
  EXPECT_EQ(grad_fn(row)->name(), "SelectBackward0");
  EXPECT_EQ(values(y), (Floats{1, 2, 30, 80}));
  backward(y, constant({1, 1, 1, 1}, {2, 2}));
  EXPECT_EQ(values(x.grad()), (Floats{1, 1, 10, 20}));
  EXPECT_EQ(values(w.grad()), (Floats{3, 4}));
}

TEST_F(InPlace, AViewOfAViewRewritesTheBase) {
  Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor y = mul(x, 1.0);
  Tensor v = select(permute(y, {1, 0}), 0, 2);  // column 2
  mul.in_place(v, 10.0);
  EXPECT_TRUE(view_base(v).is_same(y));
  backward(y, constant({1, 1, 1, 1, 1, 1}, {2, 3}));
  EXPECT_EQ(values(x.grad()), (Floats{1, 1, 10, 1, 1, 10}));
}

TEST_F(InPlace, OtherViewsFollow) {
  Tensor base = constant({1, 1, 1, 1}, {2, 2}), w = leaf({3, 4});
  Tensor first = select(base, 0, 0), second = select(base, 0, 1), flat = view(base, {4});
  mul.in_place(first, w);
  EXPECT_TRUE(base.requires_grad());
  EXPECT_TRUE(first.requires_grad());
  EXPECT_TRUE(second.requires_grad());
  EXPECT_TRUE(flat.requires_grad());
  backward(mul(flat, constant({1, 2, 3, 4})), constant({1, 1, 1, 1}));
  EXPECT_EQ(values(w.grad()), (Floats{1, 2}));
}

TEST_F(InPlace, ChangingTheBaseRenewsViews) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = mul(x, 1.0);
  Tensor v = slice(y, 0, 1);
  const Node* before = grad_fn(v).get();
  mul.in_place(y, 5.0);
  EXPECT_NE(grad_fn(v).get(), before);
  backward(v, constant({1, 1}));
  EXPECT_EQ(values(x.grad()), (Floats{0, 5, 5}));
}

TEST_F(InPlace, OverwritingCutsTheGradient) {
  Tensor x = leaf({1, 2, 3}), s = leaf({9});
  Tensor y = mul(x, 2.0);
  copy.in_place(slice(y, 0, 0, 1), s);
  backward(y, ones(y));
  EXPECT_EQ(values(x.grad()), (Floats{0, 2, 2}));
  EXPECT_EQ(values(s.grad()), Floats{1});
}

TEST_F(InPlace, GradientOfAnExpandedSum) {
  // The base's gradient arrives with strides that its view operators can't take.
  Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor y = mul(x, 1.0);
  mul.in_place(view(y, {6}), 2.0);
  backward(y, expand(constant({1}), {2, 3}));
  EXPECT_EQ(values(x.grad()), (Floats{2, 2, 2, 2, 2, 2}));
}

TEST_F(InPlace, OneOfSeveralViewsIsRefused) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = mul(x, 1.0);
  const std::string rest =
      " is a view and is being modified inplace. This view is the output of a function that returns multiple "
      "views. Such functions do not allow the output views to be modified inplace. You should replace the "
      "inplace "
      "operation by an out-of-place one.";
  EXPECT_EQ(error_of([&] { add.in_place(unbind(y)[1], 1); }), "Output 1 of Unbind" + rest);
  EXPECT_EQ(error_of([&] { add.in_place(split(y, 2)[0], 1); }), "Output 0 of Split" + rest);
  const Tensor part = unbind(y)[0];
  add.in_place(y, 1);
  EXPECT_EQ(
      error_of([&] { grad_fn(part); }),
      "Output 0 of Unbind is a view and its base or another view of its base has been modified inplace. This "
      "view is the output of a function that returns multiple views. Such functions do not allow the output "
      "views to be modified inplace. You should replace the inplace operation by an out-of-place one.");
}

TEST_F(InPlace, ViewsFromOtherModesAreRefused) {
  Tensor x = leaf({1, 2, 3}), y = mul(x, 1.0), v, w;
  {
    NoGradGuard no_grad;
    v = select(y, 0, 0);
  }
  EXPECT_EQ(
      error_of([&] { mul.in_place(v, select(x, 0, 0)); }),
      "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
      "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
      "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
      "tracked) or both outside (if you want the inplace to be tracked).");
  Tensor z = constant({0, 0, 0});
  {
    InferenceGuard inference;
    w = select(z, 0, 0);
  }
  EXPECT_EQ(
      error_of([&] { mul.in_place(w, select(x, 0, 0)); }),
      "A view was created in inference mode and is being modified inplace in normal mode. Given that this "
      "use "
      "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
      "and the inplace either both inside the inference_mode block (if you don't want the inplace to be "
      "tracked) or both outside (if you want the inplace to be tracked).");
}

TEST_F(InPlace, DoubleBackwardThroughAChangedView) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = mul(x, x);
  Tensor v = slice(y, 0, 1);
  mul.in_place(v, v.size(0) == SymInt(2) ? slice(x, 0, 1) : x);  // y = [x0^2, x1^3, x2^3]
  const Tensor g = grad({y}, {x}, {ones(x)}, create_graph())[0];
  EXPECT_EQ(values(g), (Floats{2, 12, 27}));
  EXPECT_EQ(values(grad({g}, {x}, {ones(x)})[0]), (Floats{2, 12, 18}));
}

TEST_F(InPlace, CompositesAreRecordedStepByStep) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, 1.0);
  square.in_place(y);
  EXPECT_EQ(values(y), (Floats{1, 4}));
  backward(y, ones(y));
  EXPECT_EQ(values(x.grad()), (Floats{2, 4}));
}

}  // namespace
}  // namespace fl::testing
