// Whether a library computes an operator as a whole: what a composite asks that means the same without.
#pragma once
#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// args: the operator's, tensors with elements or traced.
using HasRoutine = bool (*)(const OpInfo& op, const Value* args);

/// Called once, by a device's backend, before the first tensor there. Devices without have no routines.
void install_routine_query(DeviceType type, HasRoutine f);

/// Whether the device that the first argument is on has a routine for operands like these. It may still
/// refuse some sizes: then the operator's decomposition runs in its place.
bool has_routine(const OpInfo& op, const Value* args);

}  // namespace fl
