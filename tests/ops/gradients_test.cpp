// Gradients, and gradients of gradients, against finite differences in float64.
#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/gradcheck.h"
#include "flambeau/tensor/generator.h"
#include "support.h"

namespace fl::testing {
namespace {

class Gradients : public OperatorTest {};

constexpr int64_t kMostElements = 40;

/// The operator as a function of its float64 tensors.
struct Function {
  const OpInfo* op;
  std::vector<Value> args;
  std::vector<std::pair<int, int>> places;  ///< argument and item (-1: the argument itself)

  Tensors operator()(const Tensors& inputs) const {
    std::vector<Value> a = args;
    for (size_t k = 0; k < places.size(); ++k) {
      const auto [arg, item] = places[k];
      if (item < 0) {
        a[arg] = Value(inputs[k]);
      } else {
        std::vector<Tensor> list = a[arg].tensors();
        list[item] = inputs[k];
        a[arg] = Value(std::move(list));
      }
    }
    Tensors outs;
    for (const Value& v : call(*op, std::move(a))) {
      if (v.is_tensor()) outs.push_back(v.tensor());
      if (v.tag() == Value::Tag::TensorList)
        for (const Tensor& t : v.tensors()) outs.push_back(t);
    }
    std::erase_if(outs, [](const Tensor& t) { return !is_floating(t.dtype()); });
    return outs;
  }
};

/// A contiguous leaf with t's elements.
Tensor leaf(const Tensor& t) {
  Tensor x = tensor_from(t.to_vector<double>(), t.sizes());
  x.set_requires_grad(true);
  return x;
}

bool prepare(const OpInfo& op, const Sample& s, Function& f, Tensors& inputs) {
  f = {&op, copied(s.args), {}};
  inputs.clear();
  const auto add = [&](const Tensor& t, int arg, int item) {
    if (!t.defined() || t.dtype() != DType::Float64) return true;
    if (t.numel() > SymInt(kMostElements)) return false;
    inputs.push_back(leaf(t));
    f.places.emplace_back(arg, item);
    return true;
  };
  for (size_t a = 0; a < s.args.size(); ++a) {
    const Value& v = s.args[a];
    if (v.is_tensor() && !add(v.tensor(), static_cast<int>(a), -1)) return false;
    if (v.tag() != Value::Tag::TensorList) continue;
    for (size_t k = 0; k < v.tensors().size(); ++k)
      if (!add(v.tensors()[k], static_cast<int>(a), static_cast<int>(k))) return false;
  }
  return !inputs.empty();
}

void each_differentiable(const OpInfo& op, const std::function<void(const Function&, const Tensors&)>& f) {
  each_sample(op, [&](const Sample& s, DType dtype) {
    if (dtype != DType::Float64) return;
    SCOPED_TRACE(describe(op, s, dtype));
    Function function;
    Tensors inputs;
    if (!prepare(op, s, function, inputs)) return;
    manual_seed(7);
    f(function, inputs);
  });
}

bool differentiable(const OpInfo& op) {
  return op.samples.gradient && !op.is(Tag::NonDifferentiable) && !op.is(Tag::Random);
}

TEST_P(Gradients, First) {
  const OpInfo& op = *GetParam();
  if (!differentiable(op)) GTEST_SKIP() << "not differentiable";
  each_differentiable(op, [](const Function& f, const Tensors& inputs) {
    EXPECT_EQ(error_of([&] { gradcheck(f, inputs); }), "");
  });
}

TEST_P(Gradients, Second) {
  const OpInfo& op = *GetParam();
  if (!differentiable(op)) GTEST_SKIP() << "not differentiable";
  each_differentiable(op, [](const Function& f, const Tensors& inputs) {
    EXPECT_EQ(error_of([&] { gradgradcheck(f, inputs); }), "");
  });
}

FL_FOR_EVERY_OPERATOR(Gradients);

}  // namespace
}  // namespace fl::testing
