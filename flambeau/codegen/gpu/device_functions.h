// Functions that generated GPU code calls: each is added to the module when it is first asked for.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "flambeau/codegen/common/machine.h"
#include "flambeau/op/reduce_op.h"
#include "flambeau/op/scalar_ops.h"

namespace fl::codegen {

/// Memory that all threads of the GPU, and those of a block, see.
inline constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3;

/// power(base, exponent) of integers, as loop/library_function.cpp has it.
llvm::Function* integer_power(llvm::Module& module, DType dtype);

/// combine(pointer, re[, im]): the element becomes mode(element, value), as one step for other threads.
/// Raises NotImplementedError for what is wider than the machine's atomic operations.
llvm::Function* atomic_combine(llvm::Module& module, const Machine& machine, DType dtype, StoreMode mode);

/// record(slot, id, check, low, high): takes the GpuErrorSlot, where no one has, for the value whose 16 bytes
/// are low and high.
llvm::Function* record_failure(llvm::Module& module);

}  // namespace fl::codegen
