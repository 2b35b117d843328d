// Symbols whose values only a run knows.
#pragma once
#include "flambeau/sym/shape_env.h"

namespace fl::sym {

/// Whether it is a symbol that ShapeEnv::create_unbacked() made.
bool is_unbacked(const Expr& e);
/// Whether a guard speaks of such symbols: a call's inputs don't tell.
bool follows_from_elements(const Guard& g);
/// Whether a guard is satisfied by these values of its sides.
bool holds(const Guard& g, int64_t lhs, int64_t rhs);

}  // namespace fl::sym
