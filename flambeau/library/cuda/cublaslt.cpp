#include "flambeau/library/cuda/cublaslt.h"

#include <map>
#include <mutex>

#include "flambeau/base/error.h"
#include "flambeau/library/cuda/toolkit.h"

namespace fl::library::cuda {
namespace {

std::string load(CublasLt& f) {
  const std::string file = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  const DynamicLibrary library = open_toolkit_library(file);
  if (!library.is_open())
    return fmt::format("the library {} is not found (FLAMBEAU_CUDA_LIBRARIES lists folders)", file);
#define FL_CUBLASLT_LOAD(function)                                              \
  f.function = reinterpret_cast<decltype(f.function)>(library.find(#function)); \
  if (!f.function) return fmt::format("{} lacks " #function, file);
  FL_CUBLASLT_FUNCTIONS(FL_CUBLASLT_LOAD)
#undef FL_CUBLASLT_LOAD
  return "";
}

const LoadedFunctions<CublasLt>& loaded() { return loaded_functions<CublasLt, load>(); }

}  // namespace

const CublasLt* find_cublaslt() { return loaded().find(); }

const std::string& why_no_cublaslt() { return loaded().problem; }

std::string cublaslt_version() {
  if (!find_cublaslt()) return "none";
  const size_t v = find_cublaslt()->cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

cublasLtHandle_t cublaslt_handle(int device) {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::map<int, cublasLtHandle_t>;
  std::lock_guard lock(*mutex);
  cublasLtHandle_t& handle = (*handles)[device];
  if (!handle) FL_CUBLASLT(cublasLtCreate, &handle);
  return handle;
}

void raise_error(cublasStatus_t status, const char* call) {
  FL_RAISE(RuntimeError, "{} failed: {}", call, find_cublaslt()->cublasLtGetStatusName(status));
}

}  // namespace fl::library::cuda
