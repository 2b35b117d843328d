// What a gradient formula sees of the forward call.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// The tensors whose elements a gradient formula reads: arguments and outputs by number. Sizes and dtypes of
/// the others are always there.
struct Saves {
  uint32_t in_mask = 0, out_mask = 0;
  constexpr Saves operator|(Saves o) const { return {in_mask | o.in_mask, out_mask | o.out_mask}; }
};
namespace saves {
constexpr Saves in(std::initializer_list<int> args) {
  Saves s;
  for (int a : args) s.in_mask |= 1u << a;
  return s;
}
constexpr Saves out(std::initializer_list<int> outs) {
  Saves s;
  for (int o : outs) s.out_mask |= 1u << o;
  return s;
}
}  // namespace saves

class GradCtx {
 public:
  virtual ~GradCtx() = default;
  /// Argument `arg` as it was; raises InternalError if the definition does not list it in `saves`.
  virtual Tensor in(int arg, int item = 0) const = 0;
  virtual Tensor out(int index) const = 0;
  /// Gradient by output `index`; a tensor of zeros if nothing depends on it.
  virtual Tensor grad(int index) const = 0;
  virtual bool grad_defined(int index) const = 0;
  /// Whether the caller wants the gradient by this argument.
  virtual bool needs(int arg, int item = 0) const = 0;
  virtual const TensorSpec& in_spec(int arg, int item = 0) const = 0;
  virtual const TensorSpec& out_spec(int index = 0) const = 0;
  virtual bool is_tensor(int arg) const = 0;  ///< false for a number in a tensor's place and for None
  virtual int list_size(int arg) const = 0;
  /// Every argument that is not a tensor.
  virtual const Value& arg(int i) const = 0;
};

using Tensors = std::vector<Tensor>;

/// Gradients by the tensor arguments in order (a list's items one after the other); undefined stands for zero
/// or not needed. A formula that returns one Tensor gives the first's. Gradients may have the output's
/// broadcast shape and dtype: the engine sums and casts them to the argument's.
class GradFn {
 public:
  GradFn() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, GradFn>) GradFn(F f) {
    if constexpr (std::is_convertible_v<F, Tensors (*)(GradCtx&, const Tensor&)>)
      many_ = f;
    else
      one_ = f;
  }
  explicit operator bool() const { return many_ || one_; }
  /// g is the gradient by output 0.
  Tensors operator()(GradCtx& c, const Tensor& g) const { return many_ ? many_(c, g) : Tensors{one_(c, g)}; }

 private:
  Tensors (*many_)(GradCtx&, const Tensor&) = nullptr;
  Tensor (*one_)(GradCtx&, const Tensor&) = nullptr;
};

}  // namespace fl
