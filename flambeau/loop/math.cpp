#include "flambeau/loop/math.h"

#include "flambeau/base/error.h"
#include "flambeau/loop/math_functions.h"

namespace fl::loop {
namespace {

using math::Num;
using Unary = Num (*)(const Num&);
using Binary = Num (*)(const Num&, const Num&);

struct Expansion {
  Unary unary = nullptr;
  Binary binary = nullptr;
};

Expansion expansion_f32(ScalarOp op) {
  switch (op) {
    case ScalarOp::Exp:
      return {math::exp_f32};
    case ScalarOp::Exp2:
      return {math::exp2_f32};
    case ScalarOp::Expm1:
      return {math::expm1_f32};
    case ScalarOp::Log:
      return {math::log_f32};
    case ScalarOp::Log2:
      return {math::log2_f32};
    case ScalarOp::Log10:
      return {math::log10_f32};
    case ScalarOp::Log1p:
      return {math::log1p_f32};
    case ScalarOp::Sin:
      return {math::sin_f32};
    case ScalarOp::Cos:
      return {math::cos_f32};
    case ScalarOp::Tan:
      return {math::tan_f32};
    case ScalarOp::Asin:
      return {math::asin_f32};
    case ScalarOp::Acos:
      return {math::acos_f32};
    case ScalarOp::Atan:
      return {math::atan_f32};
    case ScalarOp::Sinh:
      return {math::sinh_f32};
    case ScalarOp::Cosh:
      return {math::cosh_f32};
    case ScalarOp::Tanh:
      return {math::tanh_f32};
    case ScalarOp::Asinh:
      return {math::asinh_f32};
    case ScalarOp::Acosh:
      return {math::acosh_f32};
    case ScalarOp::Atanh:
      return {math::atanh_f32};
    case ScalarOp::Erf:
      return {math::erf_f32};
    case ScalarOp::Erfc:
      return {math::erfc_f32};
    case ScalarOp::Erfinv:
      return {math::erfinv_f32};
    case ScalarOp::Lgamma:
      return {math::lgamma_f32};
    case ScalarOp::Digamma:
      return {math::digamma_f32};
    case ScalarOp::Pow:
      return {nullptr, math::pow_f32};
    case ScalarOp::Atan2:
      return {nullptr, math::atan2_f32};
    case ScalarOp::Hypot:
      return {nullptr, math::hypot_f32};
    case ScalarOp::Nextafter:
      return {nullptr, math::nextafter_f32};
    case ScalarOp::Rem:
      return {nullptr, math::rem_f32};
    default:
      return {};
  }
}

Expansion expansion(ScalarOp op, DType dtype) {
  if (dtype == DType::Float32) return expansion_f32(op);
  if (dtype == DType::Float64 && op == ScalarOp::Erfinv) return {math::erfinv_f64};
  if (dtype == DType::Float64 && op == ScalarOp::Digamma) return {math::digamma_f64};
  return {};
}

}  // namespace

bool needs_expansion(ScalarOp op, DType dtype) {
  const Expansion e = expansion(op, dtype);
  return e.unary || e.binary;
}

Val expand(ScalarOps& s, ScalarOp op, Val a, Val b) {
  const Expansion e = expansion(op, a.dtype);
  FL_CHECK(e.unary || e.binary, InternalError, "expected an operation that needs expansion, got {} of {}",
           name(op), name(a.dtype));
  if (e.unary) return e.unary(Num(s, a)).value();
  return e.binary(Num(s, a), Num(s, b)).value();
}

Val decay(ScalarOps& s, Val x) {
  if (x.dtype == DType::Float32) return math::decay_f32(Num(s, x)).value();
  return s.exp(s.neg(s.abs(x)));
}

}  // namespace fl::loop
