// Autocast: in a scope, operators that gain by it compute in half precision, and those that lose in float32.
#pragma once
#include <optional>

#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// Autocast for tensors of one kind of device.
struct DeviceAutocast {
  bool enabled = false;
  DType dtype;
  std::optional<DType> mode() const { return enabled ? std::optional(dtype) : std::nullopt; }
};

/// What of autocast a captured program depends on: by kind of device, off, or on with a dtype.
struct AutocastMode {
  std::optional<DType> cpu, cuda;
  bool operator==(const AutocastMode&) const = default;
};

/// Autocast of this thread.
struct AutocastState {
  DeviceAutocast cpu{false, DType::BFloat16}, cuda{false, DType::Float16};
  bool caches = true;  ///< float32 leaves that require grad (parameters) are cast once in a scope
  int depth = 0;       ///< nested scopes; leaving the outermost clears the cache

  bool any() const { return cpu.enabled || cuda.enabled; }
  AutocastMode mode() const { return {cpu.mode(), cuda.mode()}; }
};
AutocastState& autocast_state();
void clear_autocast_cache();

/// Off in a scope: where operators run that have their casts, or are the inside of another.
class NoAutocast {
 public:
  NoAutocast() : state_(autocast_state()), cpu_(state_.cpu.enabled), cuda_(state_.cuda.enabled) {
    state_.cpu.enabled = state_.cuda.enabled = false;
  }
  ~NoAutocast() {
    state_.cpu.enabled = cpu_;
    state_.cuda.enabled = cuda_;
  }
  NoAutocast(const NoAutocast&) = delete;

 private:
  AutocastState& state_;
  bool cpu_, cuda_;
};

/// Runs a call while autocast is on: with its arguments cast where PyTorch's lists name the operator.
/// Autocast is off inside, but for operators that PyTorch, too, has as compositions of others.
void dispatch_autocast(const OpInfo& op, Value* args, Value* outs);

}  // namespace fl
