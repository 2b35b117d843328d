// Whether float32 may be computed in TF32 (10 bits of mantissa, on tensor cores): PyTorch's switches.
#pragma once

namespace fl::library::cuda {

enum class Tf32 {
  Matmul,       ///< torch.backends.cuda.matmul.allow_tf32; off at first
  Convolution,  ///< torch.backends.cudnn.allow_tf32; on at first
};

/// For the whole process; a call looks when it runs.
bool tf32_allowed(Tf32 part);
void allow_tf32(Tf32 part, bool allowed);

}  // namespace fl::library::cuda
