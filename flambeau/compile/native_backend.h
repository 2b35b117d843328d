// The backend that makes machine code: graph -> primitives -> loops -> kernels -> executable.
#pragma once
#include <memory>

#include "flambeau/compile/compile.h"
#include "flambeau/runtime/executable.h"

namespace fl {

/// Compiles a functional graph. Adds what it did to the report (may be null).
GraphRunner compile_graph(const graph::Graph& g, runtime::ExecutableOptions options, const std::string& name,
                          GraphReport* report);

}  // namespace fl
