// Routines of the operators with library = HostRoutine: opaque work on the host, found by the operator's
// name.
#pragma once
#include <string_view>

#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {

/// Resolves a call; what it returns may run on several threads at once.
using Routine = PreparedCall (*)(const CallArguments& call);

struct NamedRoutine {
  std::string_view op;  ///< the operator's full name
  Routine routine;
};

/// Raises InternalError where no routine has the name.
Routine find_routine(std::string_view op);

/// The tables, one a file: routine_factorization.cpp, ...
std::span<const NamedRoutine> factorization_routines();
std::span<const NamedRoutine> spectrum_routines();
std::span<const NamedRoutine> fft_routines();
/// Of a function in library/special; null where it has none of the name.
Routine find_special_routine(std::string_view op);

}  // namespace fl::runtime
