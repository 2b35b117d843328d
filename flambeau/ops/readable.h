// Definitions that look at elements: to check them, or because sizes follow from them.
#pragma once
#include "flambeau/op/dispatch.h"

namespace fl {

/// Whether x has elements now: it is neither traced, nor are shapes all that is asked for.
inline bool is_readable(const Tensor& x) {
  return x.has_data() && !dispatch_state().shapes_only && !dispatch_state().tracer;
}

}  // namespace fl
