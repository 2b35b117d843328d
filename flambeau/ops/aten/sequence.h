// Differences of neighbours, membership, positions.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor">
    diff;
inline constexpr Op<
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) "
    "-> Tensor">
    isin;
inline constexpr Op<"argwhere(Tensor self) -> Tensor"> argwhere;
inline constexpr Op<"nonzero_numpy(Tensor self) -> Tensor[]"> nonzero_numpy;
inline constexpr Op<"trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"> trapezoid;
inline constexpr Op<
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor">
    linalg_norm;
inline constexpr Op<"frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor">
    frobenius_norm;

}  // namespace fl
