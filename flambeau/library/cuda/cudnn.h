// cuDNN's graph API, loaded by name when it is first asked for.
#pragma once
#include <cudnn_graph.h>

#include <mutex>
#include <string>

namespace fl::library::cuda {

// clang-format off
#define FL_CUDNN_FUNCTIONS(X) \
  X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString) X(cudnnCreate) X(cudnnSetStream) \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendSetAttribute) \
  X(cudnnBackendGetAttribute) X(cudnnBackendFinalize) X(cudnnBackendExecute)
// clang-format on

struct Cudnn {
#define FL_CUDNN_MEMBER(function) decltype(&::function) function;
  FL_CUDNN_FUNCTIONS(FL_CUDNN_MEMBER)
#undef FL_CUDNN_MEMBER
};

/// Null where the library is not there; why_no_cudnn() says why.
const Cudnn* find_cudnn();
const std::string& why_no_cudnn();
/// "cuDNN 9.19.0", or "none".
std::string cudnn_version();

/// A device's handle, for one thread at a time. The device's context is the current one.
class CudnnHandle {
 public:
  explicit CudnnHandle(int device);
  cudnnHandle_t get() const { return handle_; }

 private:
  std::unique_lock<std::mutex> lock_;
  cudnnHandle_t handle_;
};

/// Raises RuntimeError with the library's own explanation.
[[noreturn]] void raise_error(cudnnStatus_t status, const char* call);

}  // namespace fl::library::cuda

/// Calls a function of cuDNN that is there: FL_CUDNN(cudnnSetStream, handle, stream).
#define FL_CUDNN(function, ...)                                                                   \
  do {                                                                                            \
    if (const cudnnStatus_t fl_status = ::fl::library::cuda::find_cudnn()->function(__VA_ARGS__); \
        fl_status != CUDNN_STATUS_SUCCESS) [[unlikely]]                                           \
      ::fl::library::cuda::raise_error(fl_status, #function);                                     \
  } while (0)
