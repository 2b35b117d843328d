// Facts about a kernel that fix the order in which it computes, read by the interpreter and code generation.
#pragma once
#include "flambeau/loop/ir.h"

namespace fl::loop {

/// Whether the points of the stage run strictly one after the other: it scans, its loop is not cut
/// into partial results, or a point may see or overwrite what another point of it stored.
bool is_sequential(const Kernel& k, const Stage& stage);

/// Whether iterations of the outer loops may store to the same element, so that they must run in order.
bool has_colliding_stores(const Kernel& k);
/// The same for one store of a stage.
bool may_collide(const Kernel& k, const Stage& stage, const Store& store);

/// Whether iterations of the last outer loop may run side by side as the lanes of a vector: they store to
/// different elements and have the same inner loops.
bool has_independent_lanes(const Kernel& k);

/// Roughly how many machine operations a value takes where it is computed or loaded.
int64_t operation_cost(const Inst& i);
/// Roughly how many machine operations one point of the stage takes.
int64_t point_cost(const Kernel& k, const Stage& stage);

}  // namespace fl::loop
