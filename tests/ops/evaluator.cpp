#include "evaluator.h"

#include "flambeau/loop/expansion.h"

namespace fl::testing {

Val Evaluator::emit(ScalarOp op, DType dtype, Val a, Val b, Val c) {
  if (const auto expanded = loop::expand_operation(*this, op, a, b)) return *expanded;
  // Copies: push() may move the values.
  const auto get = [&](Val v) { return v.id < 0 ? ScalarBits() : values_[v.id]; };
  const ScalarBits x = get(a), y = get(b), z = get(c);
  if (op == ScalarOp::Select) {
    FL_ASSERT(a.dtype == DType::Bool && b.dtype == c.dtype, "select of {}, {} and {}", name(a.dtype),
              name(b.dtype), name(c.dtype));
    return push(b.dtype, loop::evaluate(op, b.dtype, b.dtype, x, y, z));
  }
  if (arity(op) == 2)
    FL_ASSERT(a.dtype == b.dtype, "{} of {} and {}", fl::name(op), name(a.dtype), name(b.dtype));
  const DType result = loop::result_dtype(op, dtype, a.dtype, b.id < 0 ? a.dtype : b.dtype);
  return push(result, loop::evaluate(op, result, a.dtype, x, y, z));
}

Val Evaluator::load(int arg, std::span<const Expr> index, Val mask, int item) {
  const Tensor& t = args_[arg].is_tensor() ? args_[arg].tensor() : args_[arg].tensors()[item];
  FL_ASSERT(static_cast<int>(index.size()) == t.dim(), "{} indices for {} dimensions", index.size(), t.dim());
  ScalarBits v;
  if (mask.id < 0 || bits(mask).get<bool>()) {
    for (int d = 0; d < t.dim(); ++d) {
      FL_ASSERT(index[d].value() >= 0 && index[d].value() < t.sizes()[d].expect_int(),
                "a load of argument {} leaves dimension {}: {} of {}", arg, d, index[d].value(),
                t.sizes()[d]);
    }
    v = read(t, index);
  }
  const DType computed = compute_dtype(t.dtype());
  return push(computed, converted(v, t.dtype(), computed));
}

Expr Evaluator::indirect(Val v, const Expr& size, std::string_view name, Val* valid) {
  const int64_t i = bits(v).get<int64_t>(), n = size.value();
  FL_CHECK(i >= -n && i < n, IndexError, "{}: index {} is out of range for size {}", name, i, n);
  if (valid) *valid = push(DType::Bool, ScalarBits::of(true));
  return i < 0 ? i + n : i;
}

Val Evaluator::number(int arg, DType dtype) {
  const Scalar s = args_[arg].scalar();
  if (s.is_complex()) return constant(dtype, Literal(s.to_complex()));
  return constant(dtype, s.is_float() ? Literal(s.to_double()) : Literal(s.to_int()));
}

}  // namespace fl::testing
