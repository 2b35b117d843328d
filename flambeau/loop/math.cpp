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
    case ScalarOp::Tanh:
      return {math::tanh_f32};
    case ScalarOp::Erf:
      return {math::erf_f32};
    case ScalarOp::Erfc:
      return {math::erfc_f32};
    case ScalarOp::Pow:
      return {nullptr, math::pow_f32};
    default:
      return {};
  }
}

Expansion expansion(ScalarOp op, DType dtype) {
  if (dtype == DType::Float32) return expansion_f32(op);
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

}  // namespace fl::loop
