#include "flambeau/autograd/observed_grad.h"

#include "flambeau/op/dispatch.h"

namespace fl {

// To a trace, as if something was going to be added to it.
Tensor observed_grad(const Tensor& t) {
  if (Tracer* tracer = dispatch_state().tracer) tracer->before_grad_change(t, true);
  return t.grad();
}

}  // namespace fl
