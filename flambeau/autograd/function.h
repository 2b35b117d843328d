// Functions with a gradient of the user's own.
#pragma once
#include <map>
#include <memory>

#include "flambeau/autograd/saved_tensor.h"

namespace fl {

class FunctionNode;

/// What forward leaves for backward.
class FunctionCtx {
 public:
  /// Inputs, outputs or others; undefined ones are kept as such.
  void save_for_backward(Tensors tensors) { to_save_ = std::move(tensors); }
  /// In backward: the tensors that were saved. Raises RuntimeError if one was changed in place since.
  Tensors saved() const;
  /// In forward: inputs that it changes in place and returns.
  void mark_dirty(Tensors inputs) { dirty_ = std::move(inputs); }
  void mark_non_differentiable(Tensors outputs) { non_differentiable_ = std::move(outputs); }
  /// false: backward gets undefined tensors for outputs that nothing depends on, instead of zeros.
  void set_materialize_grads(bool value) { materialize_ = value; }
  /// Of the i-th tensor argument. In backward: whether the running pass wants it.
  bool needs_input_grad(int i) const;

  /// Whatever else backward needs.
  std::map<std::string, Value> data;
  std::any object;
  /// Points at the ctx once the call is recorded, for as long as its node lives.
  std::shared_ptr<FunctionCtx*> self;

 private:
  friend class FunctionNode;
  friend struct FunctionCall;
  Tensors to_save_, dirty_, non_differentiable_;
  bool materialize_ = true;
  const FunctionNode* node_ = nullptr;
  std::vector<bool> inputs_need_grad_;
};

struct FunctionSpec {
  std::string name;  ///< "Exp": the node is called ExpBackward
  std::function<Tensors(FunctionCtx&)> forward;
  /// One gradient for each tensor input; undefined: zero.
  std::function<Tensors(FunctionCtx&, Tensors)> backward;
  bool once_differentiable = false;  ///< backward's own gradient is an error
};

/// The ctx of a node that apply_function made; null for others.
FunctionCtx* function_ctx(Node& node);

/// Runs forward without recording and gives its outputs a node that runs backward. `inputs`: every tensor
/// that forward differentiates by.
Tensors apply_function(FunctionSpec spec, const Tensors& inputs);

/// struct Exp : Function<Exp> {
///   static constexpr std::string_view name = "Exp";          // optional
///   static constexpr bool once_differentiable = false;       // optional
///   static Tensors forward(FunctionCtx& c, Tensor x) { Tensor y = exp(x); c.save_for_backward({y}); return
///   {y}; } static Tensors backward(FunctionCtx& c, Tensors g) { return {mul(g[0], c.saved()[0])}; }
/// };
/// Exp::apply(x). backward returns a gradient for each tensor argument in order; the items of a Tensors
/// argument count one by one.
template <class T>
struct Function {
  template <class... A>
  static Tensors apply(A&&... args) {
    Tensors inputs;
    (collect(inputs, args), ...);
    FunctionSpec spec;
    if constexpr (requires { T::name; })
      spec.name = T::name;
    else
      spec.name = "Function";
    if constexpr (requires { T::once_differentiable; }) spec.once_differentiable = T::once_differentiable;
    spec.forward = [&](FunctionCtx& c) { return T::forward(c, args...); };
    spec.backward = [](FunctionCtx& c, Tensors grads) { return T::backward(c, std::move(grads)); };
    return apply_function(std::move(spec), inputs);
  }

 private:
  static void collect(Tensors& list, const Tensor& t) { list.push_back(t); }
  static void collect(Tensors& list, const Tensors& ts) { list.insert(list.end(), ts.begin(), ts.end()); }
  template <class O>
  static void collect(Tensors&, const O&) {}
};

}  // namespace fl
