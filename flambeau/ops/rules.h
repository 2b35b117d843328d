// Shape and dtype rules, and pieces of gradients, that several operators share.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

/// An operator's name, for messages of its definition.
template <schema::FixedString S>
constexpr std::string_view name_of(Op<S>) {
  const std::string_view text = S.view();
  return text.substr(0, text.find('('));
}

/// The dtypes that an operator takes.
enum class Takes : uint8_t {
  Real,        ///< all but complex ones
  Floating,    ///< floating point numbers
  Number,      ///< all but bool
  RealNumber,  ///< integers and floating point numbers
  Integer,     ///< integers
  Integral,    ///< integers and bool
};
/// Raises NotImplementedError, which says what is expected and what came, on a dtype that is not taken.
void check_dtype(std::string_view op, DType dtype, Takes takes);

namespace rule {
/// As elementwise, for real dtypes only; raises NotImplementedError on complex ones.
Infer real(Promote p = Promote::Default);
/// As elementwise, for floating dtypes only; raises NotImplementedError on others.
Infer floating();
/// As elementwise; raises NotImplementedError on bool.
Infer number(Promote p = Promote::Default);
Infer real_number();  ///< And on complex dtypes.
/// As elementwise, for integers and bool only; raises NotImplementedError on others.
Infer integral(Promote p = Promote::Default);
/// As elementwise; raises RuntimeError on a bool tensor where `-` has no meaning, and on a factor (a Scalar
/// argument) that an integer result can't take.
Infer arithmetic();
Infer subtraction();
/// The result of elementwise(p), for rules that check something first.
InferResult elementwise_result(const InferCtx& c, Promote p);
}  // namespace rule

/// Argument `arg` of a formula's call: the saved tensor, or the number in its place.
schema::Operand operand(GradCtx& c, int arg);
/// The conjugate of a complex tensor; a real one as it is.
Tensor conj_if_complex(const Tensor& x);
/// A tensor that stands for a number as that number, so that graphs hold a constant.
schema::Operand unwrapped(const Tensor& x);
/// The number, if x stands for one.
std::optional<Scalar> number_of(const Tensor& x);
/// Argument `arg` as a tensor: the saved one, or a 0-dim tensor of the number in its place.
Tensor tensor_operand(GradCtx& c, int arg, DType dtype);
/// conj_if_complex of an argument of a formula's call, and of a number.
schema::Operand conj_operand(GradCtx& c, int arg);
Scalar conj_if_complex_number(const Scalar& s);
/// f on a half-precision tensor runs in float32 and its result is rounded once.
template <class F>
Tensor in_compute_dtype(const Tensor& x, F f);
/// The distance from 1 to the next number of the dtype that arithmetic on `dtype` happens in.
double epsilon_of(DType dtype);
/// x in the dtype that arithmetic on it happens in.
Tensor to_compute(const Tensor& x);
/// x; integers and bool converted to the default dtype.
Tensor as_float(const Tensor& x);
/// x converted to a dtype; x itself where it has it.
Tensor to_dtype(const Tensor& x, DType dtype);
/// x on a device; x itself where it is there.
Tensor to_device(const Tensor& x, Device device);

/// The index of a tensor of these sizes for an index of what it is broadcast to.
Index broadcast_index(std::span<const sym::Expr> index, std::span<const sym::Expr> sizes);

template <class F>
Tensor in_compute_dtype(const Tensor& x, F f) {
  return to_dtype(f(to_compute(x)), x.dtype());
}

}  // namespace fl
