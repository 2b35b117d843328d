// The routines of library calls on GPUs, one a file: library_matmul.cpp, library_convolution.cpp,
// library_attention.cpp, library_join.cpp. They run in the device's current stream. Each is empty where the
// GPU's libraries do not have the call: the dtype, say.
#pragma once
#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime::cuda {

PreparedCall prepare_cuda_matmul(const CallArguments& call, int device);
PreparedCall prepare_cuda_convolution(const CallArguments& call, int device);
PreparedCall prepare_cuda_attention(const CallArguments& call, int device);
PreparedCall prepare_cuda_join(const CallArguments& call, int device);

/// Whether attention of operands like these has a routine for most sizes. args as _attention's.
bool has_cuda_attention(const OpInfo& op, const Value* args);

}  // namespace fl::runtime::cuda
