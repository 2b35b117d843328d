// Hooks for saved tensors without a scope, for languages that have scopes of their own.
#pragma once
#include "flambeau/autograd/autograd.h"

namespace fl {

/// From here on in this thread, as in the scope of SavedTensorHooks. What is never popped ends with the
/// thread.
void push_saved_tensor_hooks(SavedTensorHooks::Pack pack, SavedTensorHooks::Unpack unpack);
void pop_saved_tensor_hooks();
/// Whether there are hooks in this thread.
bool saved_tensors_are_hooked();

}  // namespace fl
