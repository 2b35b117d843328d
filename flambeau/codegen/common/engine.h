// LLVM in this process: optimises a module, makes an object of it, and links objects into memory.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "flambeau/codegen/common/machine.h"

namespace llvm {
class Module;
}

namespace fl::codegen {

/// A linked object; its functions live as long as it.
class LoadedObject {
 public:
  virtual ~LoadedObject() = default;
  /// The address of a function; raises InternalError where the object lacks it.
  virtual void* address(std::string_view name) const = 0;
};

/// Sets the module up for the machine, before functions are added to it.
void prepare_module(llvm::Module& module, const Machine& machine);
/// Runs the passes and writes the object file. Texts of the steps go to stderr where FLAMBEAU_DUMP asks.
std::string make_object(llvm::Module& module, const Machine& machine);
/// The same with the text of the machine's assembly language.
std::string make_assembly(llvm::Module& module, const Machine& machine);
/// Links an object. resolve gives the addresses of what it calls (null: unknown, which raises RuntimeError).
std::unique_ptr<LoadedObject> load_object(const std::string& object, void* (*resolve)(std::string_view name));

/// LLVM's version and the library that it is, for cache keys.
std::string engine_version();

}  // namespace fl::codegen
