// Views taken in place: x.unsqueeze_(0) makes x the view of what it was.
#pragma once
#include "flambeau/tensor/tensor.h"

namespace fl {

/// self as it is, for a view to be taken of; raises RuntimeError on a leaf that requires grad.
Tensor before_view_in_place(const Tensor& self);
/// Makes self the view, which was taken of what before_view_in_place(self) gave.
void become_view(const Tensor& self, const Tensor& view);

}  // namespace fl
