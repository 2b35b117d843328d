// Library calls on GPUs.
#pragma once
#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime::cuda {

/// The routine for operands and results on cuda:`device`; it runs in the current stream. What no library of
/// the GPU has runs by its definition, or on the CPU, between copies, and the host waits for it.
PreparedCall prepare_call(const CallArguments& call, int device);
/// Whether a library has the operator for operands like these, apart from some sizes.
bool has_routine(const OpInfo& op, const Value* args);
/// That way for any call.
PreparedCall prepare_on_host(const CallArguments& call, int device);

}  // namespace fl::runtime::cuda
