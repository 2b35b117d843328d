// What an operator means: the closed set of fields of a definition.
#pragma once
#include <string_view>
#include <vector>

#include "flambeau/op/grad_ctx.h"
#include "flambeau/op/infer.h"
#include "flambeau/op/lowering.h"
#include "flambeau/op/sample.h"
#include "flambeau/op/schema.h"

namespace fl {

enum class Tag : uint32_t {
  None = 0,
  Elementwise = 1 << 0,  ///< takes numbers in the place of tensors; broadcasts
  Reduction = 1 << 1,
  View = 1 << 2,    ///< the result shares the first argument's storage; infer gives strides and offset
  Random = 1 << 3,  ///< draws from a generator
  NonDifferentiable = 1 << 4,  ///< no output has a gradient
  NoInPlace = 1 << 5,          ///< no op_ form
  NoOut = 1 << 6,              ///< no out= form
  DataDependent = 1 << 7,      ///< output sizes or a number depend on elements
  Mutates = 1 << 8,            ///< set by rule from (a!)
  Composite = 1 << 9,          ///< set by rule: only a decomposition; never recorded itself
  CastsInPlace = 1 << 10,      ///< the op_ form converts to self's dtype whatever it is (copy_, fill_)
  ComputeIntensive = 1 << 11,  ///< the partitioner never recomputes it
  Factory = 1 << 12,           ///< makes a tensor from no tensor
  Fused = 1 << 13,             ///< eager compiles the decomposition as one kernel
};
constexpr Tag operator|(Tag a, Tag b) {
  return static_cast<Tag>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool has(Tag set, Tag t) { return (static_cast<uint32_t>(set) & static_cast<uint32_t>(t)) != 0; }

/// Work that a library (or a routine of this one) does as a whole; runtime/ has the routine for each.
enum class LibraryCall : uint8_t {
  None,
  Matmul,  ///< mm, bmm: products of the last two dimensions
  Convolution,
  ConvolutionInput,   ///< gradient by the input
  ConvolutionWeight,  ///< gradient by the weight
  Sort,               ///< stable; values and int64 positions along a dimension
  Nonzero,
  Join,         ///< many tensors one after the other along a dimension; few are loops
  HostRoutine,  ///< opaque; the routine is found by the operator's name, its results are as inferred
};
/// Whether the call is a convolution or one of its gradients.
constexpr bool is_convolution(LibraryCall c) {
  return c == LibraryCall::Convolution || c == LibraryCall::ConvolutionInput ||
         c == LibraryCall::ConvolutionWeight;
}

/// An elementwise operation on values of the computation dtype: one Val for each tensor and Scalar argument,
/// in order.
class ScalarFn {
 public:
  ScalarFn() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ScalarFn>) ScalarFn(F f) : ScalarFn(+f) {}
  template <class... V>
  ScalarFn(Val (*f)(ScalarOps&, V...)) : function_(reinterpret_cast<void (*)()>(f)), arity_(sizeof...(V)) {
    invoke_ = [](void (*g)(), ScalarOps& s, const Val* in) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return reinterpret_cast<Val (*)(ScalarOps&, V...)>(g)(s, in[I]...);
      }
      (std::index_sequence_for<V...>{});
    };
  }
  explicit operator bool() const { return function_ != nullptr; }
  int arity() const { return arity_; }
  Val operator()(ScalarOps& s, const Val* in) const { return invoke_(function_, s, in); }

 private:
  void (*function_)() = nullptr;
  Val (*invoke_)(void (*)(), ScalarOps&, const Val*) = nullptr;
  int arity_ = 0;
};

/// One call of a primitive that is to be lowered: arguments with tensors as specs.
class LowerCtx {
 public:
  LowerCtx(const InferCtx& in, const std::vector<TensorSpec>& outs) : in_(in), outs_(outs) {}
  const Value& arg(int i) const { return in_.arg(i); }
  bool has(int i) const { return in_.has(i); }
  const TensorSpec& spec(int i, int item = 0) const { return in_.spec(i, item); }
  int list_size(int i) const { return in_.list_size(i); }
  bool item_defined(int i, int item) const { return in_.item_defined(i, item); }  ///< of a Tensor?[]
  std::vector<Expr> sizes(int i, int item = 0) const;                             ///< of a tensor argument
  const TensorSpec& out(int i = 0) const { return outs_[i]; }
  std::vector<Expr> out_sizes(int i = 0) const;

 private:
  const InferCtx& in_;
  const std::vector<TensorSpec>& outs_;
};
using LowerFn = Lowered (*)(const LowerCtx&);

/// A definition with its C++ type erased: called on boxed values.
struct Thunk {
  void (*function)() = nullptr;
  void (*invoke)(void (*)(), const Value* args, Value* outs) = nullptr;
  explicit operator bool() const { return function != nullptr; }
  void operator()(const Value* args, Value* outs) const { invoke(function, args, outs); }
};

/// The fields of an operator's definition. infer or decompose gives the shape; scalar, lower, library or
/// decompose the values; grad (or the decomposition) the gradient.
template <schema::FixedString S>
struct OpDef {
  std::string_view doc;  ///< Markdown; what it computes, formula, errors
  Tag tags = Tag::None;
  Infer infer{};
  ScalarFn scalar{};
  LowerFn lower = nullptr;
  LibraryCall library = LibraryCall::None;
  typename schema::Signature<S>::Definition* decompose = nullptr;
  /// Of a view: the base with the view's elements replaced, from the base, the new view and the other
  /// arguments.
  Tensor (*write_back)(const Tensor& base, const Tensor& view, const Value* args) = nullptr;
  Saves saves{};  ///< tensors that grad reads
  GradFn grad{};
  Samples samples{};
};

/// An operator as every other part of the system sees it.
struct OpInfo {
  Schema schema;
  std::string doc;
  Tag tags = Tag::None;
  Infer infer;
  ScalarFn scalar;
  LowerFn lower = nullptr;
  LibraryCall library = LibraryCall::None;
  Thunk decompose;
  Tensor (*write_back)(const Tensor&, const Tensor&, const Value*) = nullptr;
  Saves saves;
  GradFn grad;
  Samples samples;

  int id = -1;                            ///< position in the table
  const OpInfo* functional = nullptr;     ///< of an op_ or out= form: the operator it was made from
  const OpInfo* in_place = nullptr;       ///< op_, if there is one
  const OpInfo* out = nullptr;            ///< the out= form; its last arguments are the tensors written
  mutable void* backend_cache = nullptr;  ///< the backend's, for this operator

  bool is(Tag t) const { return has(tags, t); }
  bool is_view() const { return is(Tag::View); }
  bool mutates() const { return is(Tag::Mutates); }
  std::string name() const { return schema.full_name(); }
  int arg_count() const { return static_cast<int>(schema.args.size()); }
  int return_count() const { return static_cast<int>(schema.returns.size()); }
  /// A primitive: known to the lowering.
  bool is_primitive() const { return scalar || lower || library != LibraryCall::None; }
};

}  // namespace fl
