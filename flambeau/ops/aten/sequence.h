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
inline constexpr Op<
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor">
    isin_number;
inline constexpr Op<
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor">
    number_isin;
inline constexpr Op<"equal(Tensor self, Tensor other) -> bool"> equal;
inline constexpr Op<
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool">
    allclose;
inline constexpr Op<"argwhere(Tensor self) -> Tensor"> argwhere;
inline constexpr Op<"nonzero_numpy(Tensor self) -> Tensor[]"> nonzero_numpy;
inline constexpr Op<
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor">
    linalg_norm;
inline constexpr Op<"frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor">
    frobenius_norm;

}  // namespace fl
