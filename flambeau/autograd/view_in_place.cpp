#include "flambeau/autograd/view_in_place.h"

#include "flambeau/autograd/meta.h"
#include "flambeau/op/dispatch.h"

namespace fl {

Tensor before_view_in_place(const Tensor& self) {
  FL_CHECK(!(dispatch_state().grad_enabled && self.requires_grad() && self.is_leaf()), RuntimeError,
           "a leaf Variable that requires grad is being used in an in-place operation.");
  Tensor before = shallow_copy(self);
  before.impl()->autograd = self.impl()->autograd;
  return before;
}

void become_view(const Tensor& self, const Tensor& view) {
  FL_CHECK(view.storage() == self.storage(), RuntimeError,
           "expected a view of the tensor that is changed in place, got one of another storage");
  TensorImpl& impl = *self.impl();
  // What autograd knows nothing of needs no note that it is a view of itself.
  const bool known = meta(self) && (meta(self)->view || self.requires_grad());
  impl.spec = view.spec();
  impl.trace = view.impl()->trace;
  if (known) impl.autograd = view.impl()->autograd;
}

}  // namespace fl
