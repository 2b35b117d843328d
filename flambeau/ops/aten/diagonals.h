// Diagonals and triangles of matrices, and products of vectors with their neighbours.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"diag(Tensor self, int diagonal=0) -> Tensor"> diag;
inline constexpr Op<"diagflat(Tensor self, int offset=0) -> Tensor"> diagflat;
inline constexpr Op<
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    tril_indices;
inline constexpr Op<
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    triu_indices;
inline constexpr Op<"vander(Tensor x, int? N=None, bool increasing=False) -> Tensor"> vander;
inline constexpr Op<"cross(Tensor self, Tensor other, int? dim=None) -> Tensor"> cross;
inline constexpr Op<"H(Tensor(a) self) -> Tensor(a)"> H;
inline constexpr Op<"mH(Tensor(a) self) -> Tensor(a)"> mH;
inline constexpr Op<"adjoint(Tensor(a) self) -> Tensor(a)"> adjoint;

}  // namespace fl
