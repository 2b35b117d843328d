// NVIDIA's driver, loaded by name when it is first asked for.
#pragma once
#include <cuda.h>

#include <string>

#include "flambeau/base/error.h"

namespace fl::library::cuda {

// The functions that are used. cuda.h renames some to their newest version; the names below follow it.
// clang-format off
#define FL_CUDA_FUNCTIONS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) X(cuDeviceGet) \
  X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceGetUuid) X(cuDeviceGetPCIBusId) \
  X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuCtxGetCurrent) \
  X(cuCtxSynchronize) X(cuCtxEnablePeerAccess) X(cuCtxGetStreamPriorityRange) X(cuMemAlloc) X(cuMemFree) \
  X(cuMemGetInfo) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuPointerGetAttribute) X(cuMemcpyAsync) \
  X(cuMemcpyPeerAsync) X(cuMemcpy2DAsync) X(cuMemsetD8Async) X(cuMemsetD2D8Async) \
  X(cuStreamCreateWithPriority) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) X(cuLaunchHostFunc) \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) \
  X(cuEventElapsedTime) X(cuModuleLoadDataEx) X(cuModuleUnload) X(cuModuleGetFunction) \
  X(cuFuncSetAttribute) X(cuFuncGetAttribute) X(cuLaunchKernel) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuStreamBeginCapture) X(cuStreamEndCapture) \
  X(cuStreamIsCapturing) X(cuStreamGetCaptureInfo) X(cuThreadExchangeStreamCaptureMode) \
  X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphGetNodes) X(cuGraphExecKernelNodeSetParams) \
  X(cuGraphDebugDotPrint) X(cuGraphDestroy) X(cuGraphExecDestroy)
// clang-format on

struct Driver {
#define FL_CUDA_MEMBER(function) decltype(&::function) function;
  FL_CUDA_FUNCTIONS(FL_CUDA_MEMBER)
#undef FL_CUDA_MEMBER
  int version = 0;       ///< 13000: 13.0
  int device_count = 0;  ///< 1 or more
};

/// Null where there is no driver, or no device that it may use. Loaded once; FLAMBEAU_CUDA_DRIVER names
/// another library.
const Driver* find_driver();
/// The driver; raises RuntimeError with the reason where there is none.
const Driver& driver();
/// Why find_driver() is null: no library, an old one, no device.
const std::string& why_no_driver();

/// Raises OutOfMemoryError for CUDA_ERROR_OUT_OF_MEMORY, RuntimeError with the error's name otherwise.
[[noreturn]] void raise_error(CUresult error, const char* call);

}  // namespace fl::library::cuda

/// Calls a function of the driver: FL_CUDA(cuCtxSetCurrent, context).
#define FL_CUDA(function, ...)                                                         \
  do {                                                                                 \
    if (const CUresult fl_error = ::fl::library::cuda::driver().function(__VA_ARGS__); \
        fl_error != CUDA_SUCCESS) [[unlikely]]                                         \
      ::fl::library::cuda::raise_error(fl_error, #function);                           \
  } while (0)
