#include "flambeau/loop/constant.h"

#include "flambeau/loop/evaluate.h"

namespace fl::loop {

ScalarBits constant_bits(const Inst& i) {
  if (is_integral(i.dtype, true)) return ScalarBits::of(i.dtype, Literal(i.integer));
  return ScalarBits::of(i.dtype, Literal(i.number));
}

Inst constant_inst(DType dtype, const ScalarBits& bits) {
  Inst i;
  i.kind = InstKind::Constant;
  i.op = ScalarOp::Constant;
  i.dtype = dtype;
  if (is_integral(dtype, true))
    i.integer = evaluate(ScalarOp::Cast, DType::Int64, dtype, bits).get<int64_t>();
  else
    i.number = evaluate(ScalarOp::Cast, DType::Complex128, dtype, bits).get<std::complex<double>>();
  return i;
}

}  // namespace fl::loop
