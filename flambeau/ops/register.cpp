// The order in which operators enter the table.
#include "flambeau/op/op.h"

namespace fl {

#define FL_DEFINITIONS(X)    \
  X(unary)                   \
  X(number)                  \
  X(binary)                  \
  X(comparison)              \
  X(ternary)                 \
  X(view)                    \
  X(strided_view)            \
  X(scatter_view)            \
  X(shape)                   \
  X(pad)                     \
  X(factory)                 \
  X(random)                  \
  X(sampling)                \
  X(distribution)            \
  X(reduce)                  \
  X(matmul)                  \
  X(arithmetic)              \
  X(predicates)              \
  X(activation)              \
  X(shrink)                  \
  X(view_composites)         \
  X(split)                   \
  X(rearrange)               \
  X(statistics)              \
  X(norm_of_elements)        \
  X(softmax)                 \
  X(scan)                    \
  X(index)                   \
  X(convolution)             \
  X(linear)                  \
  X(indexing)                \
  X(class_loss)              \
  X(loss)                    \
  X(norm)                    \
  X(channel_norm)            \
  X(pool_prim)               \
  X(sort)                    \
  X(convolutions)            \
  X(pool)                    \
  X(attention_prim)          \
  X(attention)               \
  X(image)                   \
  X(random_slope)            \
  X(resize)                  \
  X(grid_sample)             \
  X(choice_pool)             \
  X(margin_loss)             \
  X(ctc_loss)                \
  X(embedding_bag)           \
  X(einsum)                  \
  X(sequence)                \
  X(columns)                 \
  X(copies)                  \
  X(stacking)                \
  X(diagonals_and_triangles) \
  X(numbers)                 \
  X(quantile)                \
  X(histogram)               \
  X(calculus)                \
  X(lookup)                  \
  X(chunks)                  \
  X(spacing)                 \
  X(segments)                \
  X(positions)               \
  X(factorization)           \
  X(spectrum)                \
  X(linalg_factors)          \
  X(linalg_solve)            \
  X(linalg_det)              \
  X(linalg_spectrum)         \
  X(linalg_norm)             \
  X(linalg_product)          \
  X(fft)                     \
  X(spectrogram)             \
  X(special)                 \
  X(recurrent_step)          \
  X(recurrent_layer)         \
  X(recurrent_cell)          \
  X(recurrent)

#define FL_DECLARE(name) void define_##name(OpTable& t);
FL_DEFINITIONS(FL_DECLARE)
#undef FL_DECLARE

void define_operators(OpTable& t) {
#define FL_CALL(name) define_##name(t);
  FL_DEFINITIONS(FL_CALL)
#undef FL_CALL
}

}  // namespace fl
