#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "flambeau/base/error.h"
#include "flambeau/codegen/common/engine.h"
#include "flambeau/codegen/cpu/compile.h"
#include "flambeau/codegen/cpu/nest.h"

namespace fl::codegen {

std::string make_kernel_object(const loop::Kernel& k, Isa isa) {
  const Machine& machine = machine_for(isa);
  llvm::LLVMContext context;
  llvm::Module module(k.name, context);
  prepare_module(module, machine);
  emit_loops(k, machine, module);
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  FL_ASSERT(!llvm::verifyModule(module, &stream), "{}\n{}", problem, k.str());
#endif
  return make_object(module, machine);
}

}  // namespace fl::codegen
