#include "flambeau/loop/expansion.h"

#include "flambeau/loop/math.h"

namespace fl::loop {

std::optional<Val> expand_operation(ScalarOps& s, ScalarOp op, Val a, Val b) {
  if (op == ScalarOp::Abs && is_complex(a.dtype)) return s.hypot(s.real(a), s.imag(a));
  if (needs_expansion(op, a.dtype)) return expand(s, op, a, b);
  return std::nullopt;
}

}  // namespace fl::loop
