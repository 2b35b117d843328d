#include "flambeau/codegen/common/engine.h"

#include "flambeau/base/option.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "flambeau/base/error.h"
#include "flambeau/codegen/common/section_memory.h"

namespace fl::codegen {
namespace {

void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // Strength reduction takes a quarter of the time and finds little: address arithmetic is already hoisted,
    // and x86's addressing modes take the rest.
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find("disable-lsr"); it != options.end())
      it->second->addOccurrence(0, "disable-lsr", "true");
  });
}

// One a thread: making one takes longer than compiling a small kernel.
llvm::TargetMachine& target_machine(const Machine& m) {
  initialise();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  auto& entry = machines[m.cpu + m.features];
  if (!entry) {
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(m.triple, error);
    FL_CHECK(target, RuntimeError, "LLVM has no code generator for {}: {}", m.triple, error);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    entry.reset(target->createTargetMachine(m.triple, m.cpu, m.features, options, llvm::Reloc::PIC_,
                                            llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
  }
  return *entry;
}

// What the emitter leaves to LLVM: registers for loop-carried values, and equal expressions once. Loops,
// vectors and addresses are written as they should be.
void optimise(llvm::Module& module, llvm::TargetMachine& target, bool has_vectors) {
  llvm::FunctionAnalysisManager analyses;
  analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  analyses.registerPass([] { return llvm::AssumptionAnalysis(); });
  analyses.registerPass([] { return llvm::TargetLibraryAnalysis(); });
  analyses.registerPass([&] { return target.getTargetIRAnalysis(); });
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    llvm::PromotePass().run(f, analyses);
    // Machines without vector registers do better from scalars than from what instruction selection makes of
    // vectors.
    if (!has_vectors) llvm::ScalarizerPass().run(f, analyses);
    llvm::EarlyCSEPass().run(f, analyses);
    analyses.clear(f, f.getName());
  }
}

class Resolver : public llvm::LegacyJITSymbolResolver {
 public:
  explicit Resolver(void* (*resolve)(std::string_view)) : resolve_(resolve) {}
  llvm::JITSymbol findSymbol(const std::string& name) override {
    void* address = resolve_(name);
    if (!address) return nullptr;
    return {reinterpret_cast<uint64_t>(address), llvm::JITSymbolFlags::Exported};
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }

 private:
  void* (*resolve_)(std::string_view);
};

class Loaded : public LoadedObject {
 public:
  Loaded(const std::string& object, void* (*resolve)(std::string_view))
      : resolver_(resolve), linker_(memory_, resolver_) {
    const llvm::MemoryBufferRef buffer(llvm::StringRef(object), "kernel");
    auto file = llvm::object::ObjectFile::createObjectFile(buffer);
    if (!file) FL_RAISE(RuntimeError, "an object cannot be read: {}", llvm::toString(file.takeError()));
    linker_.loadObject(**file);
    linker_.resolveRelocations();
    FL_CHECK(!linker_.hasError(), RuntimeError, "an object cannot be linked: {}",
             linker_.getErrorString().str());
    std::string error;
    FL_CHECK(!memory_.finalizeMemory(&error), RuntimeError, "machine code cannot be made executable: {}",
             error);
  }
  void* address(std::string_view name) const override {
    const uint64_t at = linker_.getSymbol(llvm::StringRef(name.data(), name.size())).getAddress();
    FL_ASSERT(at, "the object has no {}", name);
    return reinterpret_cast<void*>(at);
  }

 private:
  SectionMemory memory_;
  Resolver resolver_;
  llvm::RuntimeDyld linker_;
};

}  // namespace

void prepare_module(llvm::Module& module, const Machine& machine) {
  module.setTargetTriple(machine.triple);
  module.setDataLayout(target_machine(machine).createDataLayout());
}

namespace {

std::string emit(llvm::Module& module, const Machine& machine, llvm::CodeGenFileType type) {
  llvm::SmallString<0> out;
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  FL_CHECK(!target_machine(machine).addPassesToEmitFile(passes, stream, nullptr, type, true), RuntimeError,
           "LLVM writes no code for {}", machine.triple);
  passes.run(module);
  return std::string(out);
}

void run_passes(llvm::Module& module, const Machine& machine) {
  optimise(module, target_machine(machine), machine.has_vector_memory);
  if (option_lists("FLAMBEAU_DUMP", "llvm")) module.print(llvm::errs(), nullptr);
}

}  // namespace

std::string make_object(llvm::Module& module, const Machine& machine) {
  const std::string width = std::to_string(8 * machine.vector_bytes);
  for (llvm::Function& f : module) {
    f.setDoesNotThrow();
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
  }
  run_passes(module, machine);
  if (option_lists("FLAMBEAU_DUMP", "asm"))
    llvm::errs() << emit(*llvm::CloneModule(module), machine, llvm::CodeGenFileType::AssemblyFile);
  return emit(module, machine, llvm::CodeGenFileType::ObjectFile);
}

std::string make_assembly(llvm::Module& module, const Machine& machine) {
  for (llvm::Function& f : module) f.setDoesNotThrow();
  run_passes(module, machine);
  std::string out = emit(module, machine, llvm::CodeGenFileType::AssemblyFile);
  if (option_lists("FLAMBEAU_DUMP", "asm")) llvm::errs() << out;
  return out;
}

std::unique_ptr<LoadedObject> load_object(const std::string& object,
                                          void* (*resolve)(std::string_view name)) {
  initialise();
  return std::make_unique<Loaded>(object, resolve);
}

std::string engine_version() { return "llvm " LLVM_VERSION_STRING; }

}  // namespace fl::codegen
