// Many tensors one after the other along a dimension: a copy of each into its part of the result.
#include "flambeau/runtime/convolution_call.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/library_routines.h"
#include "flambeau/runtime/cuda/strided_copy.h"
#include "flambeau/runtime/join_pieces.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime::cuda {

PreparedCall prepare_cuda_join(const CallArguments& call, int device) {
  auto pieces = std::make_shared<const std::vector<JoinPiece>>(join_pieces(call));
  return [pieces, device](void* const* operands, void* const* results) {
    const Device place{DeviceType::CUDA, static_cast<int8_t>(device)};
    for (const JoinPiece& p : *pieces) {
      char* const to = static_cast<char*>(results[0]) + p.offset;
      const bool block = p.from.dtype == p.to.dtype && is_row_major(p.from) && is_row_major(p.to);
      if (block)
        copy_bytes(current_stream(device), to, operands[p.operand],
                   element_count(p.to.sizes) * size_of(p.to.dtype));
      else
        copy_strided(place, p.to, to, p.from, operands[p.operand]);
    }
  };
}

}  // namespace fl::runtime::cuda
