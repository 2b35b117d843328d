#include "flambeau/library/cuda/dynamic_library.h"

#include <dlfcn.h>

namespace fl::library {

DynamicLibrary::DynamicLibrary(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle_) continue;
    name_ = name;
    return;
  }
}

void* DynamicLibrary::find(const char* function) const {
  return handle_ ? dlsym(handle_, function) : nullptr;
}

}  // namespace fl::library
