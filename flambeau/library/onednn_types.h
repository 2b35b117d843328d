// Names of this folder in oneDNN's words. Included after dnnl.hpp, by the .cpp files that talk to it.
#pragma once
#include <cstring>

#include "flambeau/base/error.h"
#include "flambeau/library/recipe.h"

namespace fl::library {

inline dnnl::memory::data_type library_type(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F32:
      return dnnl::memory::data_type::f32;
    case ScalarKind::BF16:
      return dnnl::memory::data_type::bf16;
    case ScalarKind::F16:
      return dnnl::memory::data_type::f16;
    case ScalarKind::F64:
      return dnnl::memory::data_type::f64;
  }
  return dnnl::memory::data_type::undef;
}

/// A handle to the engine that lives for ever.
inline dnnl::engine library_engine() {
  dnnl::engine engine;
  engine.reset(cpu_engine(), true);
  return engine;
}

/// The library's plain loops: correct, and far slower than a generated kernel.
inline bool is_reference(const dnnl::primitive_desc_base& desc) {
  return std::strstr(desc.impl_info_str(), "ref") != nullptr;
}

/// What `build` makes. Null where the library throws, as it does on layouts that it has no words for
/// (matrices of a batch that overlap, say): nothing of its own leaves this folder.
template <class F>
std::unique_ptr<Recipe> unless_refused(F build) {
  try {
    return build();
  } catch (const dnnl::error& e) {
    FL_CHECK(e.status != dnnl_out_of_memory, OutOfMemoryError, "oneDNN found no memory: {}", e.what());
    return nullptr;
  }
}

}  // namespace fl::library
