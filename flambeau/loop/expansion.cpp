#include "flambeau/loop/expansion.h"

#if __has_include("flambeau/loop/math.h")
#include "flambeau/loop/math.h"
#define FL_HAVE_MATH 1
#endif

namespace fl::loop {

std::optional<Val> expand_operation(ScalarOps& s, ScalarOp op, Val a, [[maybe_unused]] Val b) {
  if (op == ScalarOp::Abs && is_complex(a.dtype)) return s.hypot(s.real(a), s.imag(a));
#if FL_HAVE_MATH
  if (needs_expansion(op, a.dtype)) return expand(s, op, a, b);
#endif
  return std::nullopt;
}

}  // namespace fl::loop
