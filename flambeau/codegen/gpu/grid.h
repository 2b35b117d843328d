// The threads of a kernel on a GPU, around the bodies that BodyEmitter writes.
#pragma once
#include <llvm/IR/Module.h>

#include "flambeau/codegen/common/machine.h"
#include "flambeau/codegen/gpu/grid_plan.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

/// Adds the function "kernel" to the module, with the parameters that codegen/gpu/compile.h lists.
void emit_grid(const loop::Kernel& k, const GridPlan& plan, const Machine& machine, llvm::Module& module);

}  // namespace fl::codegen
