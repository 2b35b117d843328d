// GPUs as devices of programs and eager calls.
#pragma once

namespace fl::runtime::cuda {

/// Makes "cuda" a kind of device. The driver is loaded with the first tensor there.
void install();

}  // namespace fl::runtime::cuda
