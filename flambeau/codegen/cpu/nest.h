// The loops of a kernel on a CPU, around the bodies that BodyEmitter writes.
#pragma once
#include <llvm/IR/Module.h>

#include "flambeau/codegen/common/machine.h"
#include "flambeau/codegen/cpu/nest_facts.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

/// Adds two functions to the module:
///   kernel(buffers, sizes, params, error, begin, end)  runs points [begin, end) of the flattened outer
///   loops; plan(sizes, out)  gives {number of points, machine operations a point}.
void emit_loops(const loop::Kernel& k, const Machine& machine, llvm::Module& module);

}  // namespace fl::codegen
