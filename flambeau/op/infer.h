// Shape and dtype rules.
#pragma once
#include <vector>

#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// The arguments of one call, tensors as specs. Graph values are answered through `graph_spec`.
class InferCtx {
 public:
  InferCtx(const OpInfo& op, const Value* args) : op_(op), args_(args) {}
  InferCtx(const OpInfo& op, const Value* args, const TensorSpec& (*graph_spec)(void*, GraphRef),
           void* context)
      : op_(op), args_(args), graph_spec_(graph_spec), context_(context) {}
  const OpInfo& op() const { return op_; }
  const Value& arg(int i) const { return args_[i]; }
  /// Whether the argument was given (not None).
  bool has(int i) const { return !args_[i].is_none(); }
  bool is_tensor(int i) const { return args_[i].is_tensor() || args_[i].tag() == Value::Tag::GraphRef; }
  /// Of a tensor argument (or of an item of a list). Raises TypeError otherwise.
  const TensorSpec& spec(int i, int item = 0) const;
  int list_size(int i) const;
  bool item_defined(int i, int item) const;  ///< of a Tensor?[] argument
  /// A 0-dim tensor that stands for a number in promotion.
  bool is_wrapped_number(int i) const;
  SymInt sym_int(int i) const { return args_[i].sym_int(); }
  IntList ints(int i) const { return args_[i].ints(); }
  bool flag(int i) const { return args_[i].to_bool(); }

 private:
  const OpInfo& op_;
  const Value* args_;
  const TensorSpec& (*graph_spec_)(void*, GraphRef) = nullptr;
  void* context_ = nullptr;
};

/// How an elementwise operator's dtypes follow from its tensors and numbers (PyTorch's
/// ELEMENTWISE_TYPE_PROMOTION_KIND).
enum class Promote : uint8_t {
  Default,         ///< the promoted dtype
  IntToFloat,      ///< integers and bool become float32
  AlwaysBool,      ///< computed in the promoted dtype, result bool
  BoolToLong,      ///< bool becomes int64
  ComplexToFloat,  ///< result is the real dtype (abs)
  Where,           ///< argument 0 is a condition and takes no part
  First,           ///< the first argument's dtype (copy, fill); Scalars take no part anyway
};
struct ElementwiseTypes {
  DType compute;  ///< what the arguments are converted to (halves then compute in float32)
  DType result;
};

using InferResult = std::vector<TensorSpec>;
struct Infer {
  InferResult (*function)(const InferCtx&, int data) = nullptr;
  int data = 0;
  Infer() = default;
  Infer(InferResult (*f)(const InferCtx&, int), int d) : function(f), data(d) {}
  template <class F>
  requires(std::is_convertible_v<F, InferResult (*)(const InferCtx&, int)> &&
           !std::is_same_v<std::remove_cvref_t<F>, Infer>) Infer(F f)
      : function(f) {}
  explicit operator bool() const { return function != nullptr; }
};

namespace rule {
/// Broadcast of all tensor arguments; dtype by promotion; strides as TensorIterator's: the inputs' common
/// layout is kept.
Infer elementwise(Promote p = Promote::Default);
/// The first argument's sizes, dtype, device and (where dense) layout.
Infer same_as_input();
}  // namespace rule

/// The dtypes of an elementwise call. Wrapped numbers and numbers count with their category only; Scalar
/// arguments not.
ElementwiseTypes promote_types(const InferCtx& c, Promote p);
/// Promotion of dimensioned tensors, 0-dim tensors and numbers, each the promoted dtype of its group or
/// nothing.
DType result_type(std::optional<DType> dimensioned, std::optional<DType> zero_dim,
                  std::optional<DType> number);
/// Raises RuntimeError naming both sizes and the dimension.
Sizes broadcast_sizes(IntList a, IntList b);
/// Output strides of an elementwise operator with these tensor inputs (broadcast to sizes).
Sizes elementwise_strides(IntList sizes, std::span<const TensorSpec* const> inputs);
/// A contiguous spec.
TensorSpec make_spec(IntList sizes, DType dtype, Device device = {});

}  // namespace fl
