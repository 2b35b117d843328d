// Scalar operations and loads computed at once, for one point of an operator's output.
#pragma once
#include <cstring>
#include <vector>

#include "flambeau/loop/evaluate.h"
#include "flambeau/op/op.h"

namespace fl::testing {

using loop::ScalarBits;

inline char* element(const Tensor& t, std::span<const Expr> index) {
  int64_t at = t.offset().expect_int();
  for (size_t d = 0; d < index.size(); ++d) at += index[d].value() * t.strides()[d].expect_int();
  return static_cast<char*>(t.storage()->data()) + at * size_of(t.dtype());
}
inline ScalarBits read(const Tensor& t, std::span<const Expr> index) {
  ScalarBits v;
  std::memcpy(v.bytes, element(t, index), size_of(t.dtype()));
  return v;
}
inline ScalarBits converted(const ScalarBits& v, DType from, DType to) {
  if (from == to) return v;
  if (is_complex(from) && !is_complex(to))
    return converted(loop::evaluate(ScalarOp::Real, real_dtype(from), from, v), real_dtype(from), to);
  return loop::evaluate(ScalarOp::Cast, to, from, v);
}

class Evaluator final : public BodyOps {
 public:
  explicit Evaluator(const Value* args) : args_(args) {}

  Val push(DType d, const ScalarBits& b) {
    values_.push_back(b);
    return {static_cast<int32_t>(values_.size()) - 1, d};
  }
  const ScalarBits& bits(Val v) const { return values_[v.id]; }
  void clear() { values_.clear(); }

  Val emit(ScalarOp op, DType dtype, Val a, Val b, Val c) override;
  Val constant(DType dtype, Literal value) override { return push(dtype, ScalarBits::of(dtype, value)); }
  Val index(const Expr& e) override { return push(DType::Int64, ScalarBits::of(e.value())); }
  Val load(int arg, std::span<const Expr> index, Val mask, int item) override;
  Expr indirect(Val v, const Expr& size, std::string_view name, Val* valid) override;
  Expr as_index(Val v) override { return bits(v).get<int64_t>(); }
  Val number(int arg, DType dtype) override;

 private:
  const Value* args_;
  std::vector<ScalarBits> values_;
};

}  // namespace fl::testing
