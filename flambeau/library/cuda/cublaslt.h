// cuBLASLt, loaded by name when it is first asked for.
#pragma once
#include <cublasLt.h>

#include <string>

namespace fl::library::cuda {

// clang-format off
#define FL_CUBLASLT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtGetVersion) X(cublasLtGetStatusName) X(cublasLtMatmul) \
  X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulAlgoConfigGetAttribute) \
  X(cublasLtMatmulDescInit_internal) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatrixLayoutInit_internal) X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceInit_internal) X(cublasLtMatmulPreferenceSetAttribute)
// clang-format on

struct CublasLt {
#define FL_CUBLASLT_MEMBER(function) decltype(&::function) function;
  FL_CUBLASLT_FUNCTIONS(FL_CUBLASLT_MEMBER)
#undef FL_CUBLASLT_MEMBER
};

/// Null where the library is not there; why_no_cublaslt() says why.
const CublasLt* find_cublaslt();
const std::string& why_no_cublaslt();
/// "cuBLASLt 13.1.0", or "none".
std::string cublaslt_version();

/// The device's, shared by all threads; its context is the current one.
cublasLtHandle_t cublaslt_handle(int device);

[[noreturn]] void raise_error(cublasStatus_t status, const char* call);

}  // namespace fl::library::cuda

/// Calls a function of cuBLASLt that is there: FL_CUBLASLT(cublasLtCreate, &handle).
#define FL_CUBLASLT(function, ...)                                                                    \
  do {                                                                                                \
    if (const cublasStatus_t fl_status = ::fl::library::cuda::find_cublaslt()->function(__VA_ARGS__); \
        fl_status != CUBLAS_STATUS_SUCCESS) [[unlikely]]                                              \
      ::fl::library::cuda::raise_error(fl_status, #function);                                         \
  } while (0)
