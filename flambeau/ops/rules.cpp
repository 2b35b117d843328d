#include "flambeau/ops/rules.h"

#include "flambeau/ops/functions.h"

namespace fl {
namespace {

/// Calls f with the spec of every tensor argument.
template <class F>
void each_tensor(const InferCtx& c, F f) {
  for (int i = 0; i < c.op().arg_count(); ++i) {
    if (c.is_tensor(i)) f(c.spec(i));
  }
}

InferResult real_rule(const InferCtx& c, int p) {
  each_tensor(c, [&](const TensorSpec& s) {
    FL_CHECK(!is_complex(s.dtype), NotImplementedError, "\"{}\" not implemented for {} tensors",
             c.op().schema.name, name(s.dtype));
  });
  return rule::elementwise_result(c, static_cast<Promote>(p));
}

InferResult floating_rule(const InferCtx& c, int p) {
  each_tensor(c, [&](const TensorSpec& s) {
    FL_CHECK(is_floating(s.dtype), NotImplementedError,
             "\"{}\" not implemented for {} tensors: expected floating point numbers", c.op().schema.name,
             name(s.dtype));
  });
  return rule::elementwise_result(c, static_cast<Promote>(p));
}

InferResult number_rule(const InferCtx& c, int p) {
  each_tensor(c, [&](const TensorSpec& s) {
    FL_CHECK(s.dtype != DType::Bool, NotImplementedError, "\"{}\" not implemented for bool tensors",
             c.op().schema.name);
  });
  return rule::elementwise_result(c, static_cast<Promote>(p));
}

InferResult real_number_rule(const InferCtx& c, int p) {
  number_rule(c, p);
  return real_rule(c, p);
}

InferResult integral_rule(const InferCtx& c, int p) {
  each_tensor(c, [&](const TensorSpec& s) {
    FL_CHECK(is_integral(s.dtype, true), NotImplementedError,
             "\"{}\" not implemented for {} tensors: expected integers or bool", c.op().schema.name,
             name(s.dtype));
  });
  return rule::elementwise_result(c, static_cast<Promote>(p));
}

/// The Scalar argument `alpha` has to fit the result's category.
void check_factors(const InferCtx& c, DType result) {
  for (int i = 0; i < c.op().arg_count(); ++i) {
    const Argument& a = c.op().schema.args[i];
    if (a.type != ArgType::Number || !c.arg(i).is_number()) continue;
    const Scalar s = c.arg(i).scalar();
    FL_CHECK(!(is_integral(result, true) && s.category() > DTypeCategory::Integral), RuntimeError,
             "For integral input tensors, argument {} must not be a floating point number, got {}", a.name,
             s.str());
    FL_CHECK(s.kind() != Scalar::Kind::Bool || result == DType::Bool, RuntimeError,
             "Boolean {} only supported for Boolean results, got a result of {}", a.name, name(result));
    FL_CHECK(is_complex(result) || !s.is_complex(), RuntimeError,
             "For non-complex input tensors, argument {} must not be a complex number, got {}", a.name,
             s.str());
  }
}

InferResult arithmetic_rule(const InferCtx& c, int p) {
  InferResult r = rule::elementwise_result(c, static_cast<Promote>(p));
  check_factors(c, r[0].dtype);
  return r;
}

InferResult subtraction_rule(const InferCtx& c, int p) {
  for (int i = 0; i < 2; ++i) {
    FL_CHECK(!(c.is_tensor(i) && c.spec(i).dtype == DType::Bool), RuntimeError,
             "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
             "invert a mask, use the `~` or `logical_not()` operator instead.");
  }
  return arithmetic_rule(c, p);
}

}  // namespace

namespace rule {
InferResult elementwise_result(const InferCtx& c, Promote p) {
  const Infer r = elementwise(p);
  return r.function(c, r.data);
}
Infer real(Promote p) { return {real_rule, static_cast<int>(p)}; }
Infer floating() { return {floating_rule, static_cast<int>(Promote::Default)}; }
Infer number(Promote p) { return {number_rule, static_cast<int>(p)}; }
Infer real_number() { return {real_number_rule, static_cast<int>(Promote::Default)}; }
Infer integral(Promote p) { return {integral_rule, static_cast<int>(p)}; }
Infer arithmetic() { return {arithmetic_rule, static_cast<int>(Promote::Default)}; }
Infer subtraction() { return {subtraction_rule, static_cast<int>(Promote::Default)}; }
}  // namespace rule

schema::Operand operand(GradCtx& c, int arg) {
  if (c.is_tensor(arg)) return c.in(arg);
  return c.arg(arg).scalar();
}
std::optional<Scalar> number_of(const Tensor& x) {
  return x.impl()->wrapped_number && x.has_data() ? std::optional(x.item()) : std::nullopt;
}
schema::Operand unwrapped(const Tensor& x) {
  if (const auto number = number_of(x)) return *number;
  return x;
}
Tensor conj_if_complex(const Tensor& x) { return is_complex(x.dtype()) ? conj_physical(x) : x; }
Tensor tensor_operand(GradCtx& c, int arg, DType dtype) {
  if (c.is_tensor(arg)) return c.in(arg);
  return full(IntList(), c.arg(arg).scalar(), dtype);
}
Scalar conj_if_complex_number(const Scalar& s) {
  return s.is_complex() ? Scalar(std::conj(s.to_complex())) : s;
}
schema::Operand conj_operand(GradCtx& c, int arg) {
  if (c.is_tensor(arg)) return conj_if_complex(c.in(arg));
  return conj_if_complex_number(c.arg(arg).scalar());
}
Tensor to_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : _to_copy(x, dtype); }
Tensor to_compute(const Tensor& x) { return to_dtype(x, compute_dtype(x.dtype())); }

Index broadcast_index(std::span<const Expr> index, std::span<const Expr> sizes) {
  Index out;
  const size_t extra = index.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) out.push_back(sizes[d].is_const(1) ? Expr(0) : index[extra + d]);
  return out;
}

}  // namespace fl
