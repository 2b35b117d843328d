#include "flambeau/loop/expansion.h"

namespace fl::loop {

std::optional<Val> expand_operation(ScalarOps& s, ScalarOp op, Val a, Val b, WideFunctions wide) {
  if (op == ScalarOp::Abs && is_complex(a.dtype)) return s.hypot(s.real(a), s.imag(a));
  if (needs_expansion(op, a.dtype, wide)) return expand(s, op, a, b, wide);
  return std::nullopt;
}

}  // namespace fl::loop
