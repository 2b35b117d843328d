// Operators that a routine of the host computes as a whole.
#pragma once
#include "flambeau/op/op_def.h"

namespace fl {

/// An opaque routine, which runtime/ finds by the operator's name; its results are as inferred.
inline constexpr LibraryCall kHostRoutine =
    static_cast<LibraryCall>(static_cast<int>(LibraryCall::Nonzero) + 1);

}  // namespace fl
