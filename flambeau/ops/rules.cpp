#include "flambeau/ops/rules.h"

#include <limits>

#include "flambeau/ops/functions.h"

namespace fl {
namespace {

bool takes_dtype(Takes takes, DType d) {
  switch (takes) {
    case Takes::Real:
      return !is_complex(d);
    case Takes::Floating:
      return is_floating(d);
    case Takes::Number:
      return d != DType::Bool;
    case Takes::RealNumber:
      return !is_complex(d) && d != DType::Bool;
    case Takes::Integer:
      return is_integral(d);
    case Takes::Integral:
      return is_integral(d, true);
  }
  return false;
}

const char* words(Takes takes) {
  switch (takes) {
    case Takes::Real:
      return "real numbers or bool";
    case Takes::Floating:
      return "floating point numbers";
    case Takes::Number:
      return "integers, floating point or complex numbers";
    case Takes::RealNumber:
      return "integers or floating point numbers";
    case Takes::Integer:
      return "integers";
    case Takes::Integral:
      return "integers or bool";
  }
  return "";
}

/// Elementwise, where every tensor argument has a dtype that is taken.
template <Takes takes>
InferResult checked_rule(const InferCtx& c, int p) {
  for (int i = 0; i < c.op().arg_count(); ++i)
    if (c.is_tensor(i)) check_dtype(c.op().schema.name, c.spec(i).dtype, takes);
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
  auto is_bool = [&](int i) {
    return c.is_tensor(i) ? c.spec(i).dtype == DType::Bool
                          : c.arg(i).is_number() && c.arg(i).scalar().kind() == Scalar::Kind::Bool;
  };
  FL_CHECK(!(is_bool(0) && is_bool(1)), NotImplementedError,
           "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
           "`logical_xor()` operator instead.");
  FL_CHECK(!is_bool(0) && !is_bool(1), NotImplementedError,
           "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
           "invert a mask, use the `~` or `logical_not()` operator instead.");
  return arithmetic_rule(c, p);
}

}  // namespace

void check_dtype(std::string_view op, DType dtype, Takes takes) {
  FL_CHECK(takes_dtype(takes, dtype), NotImplementedError,
           "\"{}\" not implemented for {} tensors: expected {}", op, name(dtype), words(takes));
}

namespace rule {
InferResult elementwise_result(const InferCtx& c, Promote p) {
  const Infer r = elementwise(p);
  return r.function(c, r.data);
}
Infer real(Promote p) { return {checked_rule<Takes::Real>, static_cast<int>(p)}; }
Infer floating() { return {checked_rule<Takes::Floating>, static_cast<int>(Promote::Default)}; }
Infer number(Promote p) { return {checked_rule<Takes::Number>, static_cast<int>(p)}; }
Infer real_number() { return {checked_rule<Takes::RealNumber>, static_cast<int>(Promote::Default)}; }
Infer integral(Promote p) { return {checked_rule<Takes::Integral>, static_cast<int>(p)}; }
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
double epsilon_of(DType dtype) {
  return real_dtype(dtype) == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
}
Tensor to_device(const Tensor& x, Device device) {
  return x.device() == device ? x : _to_copy(x, std::nullopt, device);
}
Tensor to_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : _to_copy(x, dtype); }
Tensor as_float(const Tensor& x) { return is_integral(x.dtype(), true) ? to_dtype(x, default_dtype()) : x; }
Tensor to_compute(const Tensor& x) { return to_dtype(x, compute_dtype(x.dtype())); }

Index broadcast_index(std::span<const Expr> index, std::span<const Expr> sizes) {
  Index out;
  const size_t extra = index.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) out.push_back(sizes[d].is_const(1) ? Expr(0) : index[extra + d]);
  return out;
}

}  // namespace fl
