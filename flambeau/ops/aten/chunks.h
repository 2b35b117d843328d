// Chunks of several tensors joined; parts and places given one at a time.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)">
    narrow_from;
inline constexpr Op<"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)"> movedim_one;
inline constexpr Op<"_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor"> _chunk_cat;

}  // namespace fl
