#include "flambeau/library/cuda/cudnn.h"

#include <map>

#include "flambeau/base/error.h"
#include "flambeau/library/cuda/cublaslt.h"
#include "flambeau/library/cuda/toolkit.h"

namespace fl::library::cuda {
namespace {

std::string load(Cudnn& f) {
  // cuDNN opens these by their names; once they are open it finds them wherever they lie.
  find_cublaslt();
  open_toolkit_library(fmt::format("libnvrtc.so.{}", CUBLAS_VER_MAJOR));
  const std::string file = fmt::format("libcudnn.so.{}", CUDNN_MAJOR);
  const DynamicLibrary library = open_toolkit_library(file);
  if (!library.is_open())
    return fmt::format("the library {} is not found (FLAMBEAU_CUDA_LIBRARIES lists folders)", file);
#define FL_CUDNN_LOAD(function)                                                 \
  f.function = reinterpret_cast<decltype(f.function)>(library.find(#function)); \
  if (!f.function) return fmt::format("{} lacks " #function, file);
  FL_CUDNN_FUNCTIONS(FL_CUDNN_LOAD)
#undef FL_CUDNN_LOAD
  return "";
}

const LoadedFunctions<Cudnn>& loaded() { return loaded_functions<Cudnn, load>(); }

struct SharedHandle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

SharedHandle& shared_handle(int device) {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::map<int, SharedHandle>;
  std::lock_guard lock(*mutex);
  return (*handles)[device];
}

}  // namespace

const Cudnn* find_cudnn() { return loaded().find(); }

const std::string& why_no_cudnn() { return loaded().problem; }

std::string cudnn_version() {
  if (!find_cudnn()) return "none";
  const size_t v = find_cudnn()->cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

CudnnHandle::CudnnHandle(int device) {
  SharedHandle& shared = shared_handle(device);
  lock_ = std::unique_lock(shared.mutex);
  if (!shared.handle) FL_CUDNN(cudnnCreate, &shared.handle);
  handle_ = shared.handle;
}

void raise_error(cudnnStatus_t status, const char* call) {
  char text[1024] = "";
  find_cudnn()->cudnnGetLastErrorString(text, sizeof(text));
  FL_RAISE(RuntimeError, "{} failed: {} ({})", call, find_cudnn()->cudnnGetErrorString(status), text);
}

}  // namespace fl::library::cuda
