// Inputs that share memory. Tests: tests/aot/wrapper_test.cpp.
#pragma once
#include "flambeau/trace/trace.h"

namespace fl::aot {

/// Where inputs (or captured tensors) of a graph share a storage and the graph changes one of them, their
/// placeholders become views of one new placeholder, the base: a flat tensor over all of the storage, which
/// program.bases then names. Does nothing otherwise. Raises UnsupportedError if the sharing tensors need
/// gradients or differ in dtype.
void separate_shared_inputs(trace::TracedProgram& program);

}  // namespace fl::aot
