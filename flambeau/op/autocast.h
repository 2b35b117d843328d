// Autocast: in a scope, operators that gain by it compute in half precision, and those that lose in float32.
#pragma once
#include <optional>

#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// What of autocast a captured program depends on: off, or on with a dtype.
using AutocastMode = std::optional<DType>;

/// Autocast of this thread, on the CPU.
struct AutocastState {
  bool enabled = false;
  DType dtype = DType::BFloat16;
  bool caches = true;  ///< float32 leaves that require grad (parameters) are cast once in a scope
  int depth = 0;       ///< nested scopes; leaving the outermost clears the cache

  AutocastMode mode() const { return enabled ? AutocastMode(dtype) : std::nullopt; }
};
AutocastState& autocast_state();
void clear_autocast_cache();

/// Whether the operator's arguments are cast.
bool is_autocast_operator(const OpInfo& op);
/// Runs the call with its arguments cast, autocast being off inside.
void dispatch_autocast(const OpInfo& op, Value* args, Value* outs);

}  // namespace fl
