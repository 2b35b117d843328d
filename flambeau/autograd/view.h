// Views: how each is made from its base, and its node after the base changed.
#pragma once
#include "flambeau/autograd/meta.h"

namespace fl {

/// Notes that `view` was made from args[0] by a view operator.
void note_view(const OpInfo& op, const Value* args, const Tensor& view, ViewOrigin origin);
/// Notes that a custom function returned a view.
void note_opaque_view(const Tensor& input, const Tensor& view);
/// The view that the steps make of another base.
Tensor replay_view(const Tensor& base, const ViewStep& last);
/// base with the elements of its view replaced; a new tensor.
Tensor write_view_back(const Tensor& base, const Tensor& view, const ViewStep& last);
/// Renews the view's node if its base (or another view of that) has changed in place since it was made.
void refresh_view(const Tensor& view);
/// Raises the error of changing this view in place (indirectly: through its base) where that isn't allowed.
void check_view_change(const Tensor& view, bool indirect);

}  // namespace fl
