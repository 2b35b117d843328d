// The algebra of a product's layouts: equal descriptions with fewer batches, or of the transpose.
#pragma once
#include "flambeau/library/matmul.h"

namespace fl::library {

/// The product as its transpose: c^T = b^T a^T.
MatmulDesc transposed(MatmulDesc desc);

/// Moves batch dimensions that matter to the end, and makes one of two that can be walked as one. Batch
/// strides over a dimension of size 1 become 0.
void merge_batch(MatmulDesc& desc);

/// One tall matrix instead of a batch of them that meets one b.
void merge_batch_into_rows(MatmulDesc& desc);

/// Strides over a dimension of size 1 mean nothing: makes them those of a plain matrix.
void settle_strides(MatrixStrides& strides, int64_t rows, int64_t columns);

/// One stride is 1, and rows (or columns) do not overlap.
bool is_matrix(const MatrixStrides& strides, int64_t rows, int64_t columns);

}  // namespace fl::library
