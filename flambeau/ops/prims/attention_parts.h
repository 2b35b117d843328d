// Steps of attention that its forms share.
#pragma once
#include "flambeau/tensor/tensor.h"

namespace fl::attention {

/// Keys or values of fewer heads than the query has, each for a run of the query's heads.
Tensor for_heads(const Tensor& x, SymInt heads);
/// query key^T scale, -inf where a query may not look: behind itself if causal, where a bool mask does not
/// hold. Another mask is added.
Tensor scores(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal, double scale);

}  // namespace fl::attention
