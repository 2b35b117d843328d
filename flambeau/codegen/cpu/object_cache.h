// Object files of kernels on disk, shared by processes.
#pragma once
#include <optional>
#include <string>

#include "flambeau/base/hash.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

/// Part of every key: changes where generated code does.
inline constexpr int kCodeVersion = 12;

/// The folder is FLAMBEAU_CACHE_DIR, else XDG_CACHE_HOME/flambeau, else HOME/.cache/flambeau;
/// FLAMBEAU_CACHE=0 turns it off. Whatever is wrong with the folder or a file in it, load() finds nothing and
/// store() does nothing: the kernel is compiled again.
class ObjectCache {
 public:
  ObjectCache();
  std::optional<std::string> load(const Hash128& key) const;
  void store(const Hash128& key, const std::string& object) const;
  const std::string& folder() const { return folder_; }  ///< Empty: off.
  std::string path(const Hash128& key) const;

 private:
  std::string folder_;
};

/// Prints the kernel to stderr where FLAMBEAU_DUMP asks for kernels.
void dump_kernel(const loop::Kernel& k);

}  // namespace fl::codegen
