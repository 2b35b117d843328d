// Bags of rows of a table.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

/// mode: 0 sum, 1 mean, 2 max. The second to fourth result: each index's bag, the bags' sizes, and of the
/// maximum the rows that it was taken from.
inline constexpr Op<
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int "
    "mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, "
    "Tensor, Tensor, Tensor)">
    embedding_bag;

}  // namespace fl
