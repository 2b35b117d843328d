// Products of tensors of any rank over the products of matrices.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"matmul(Tensor self, Tensor other) -> Tensor"> matmul;
inline constexpr Op<"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"> linear;
inline constexpr Op<"mv(Tensor self, Tensor vec) -> Tensor"> mv;
inline constexpr Op<"dot(Tensor self, Tensor tensor) -> Tensor"> dot;
inline constexpr Op<"vdot(Tensor self, Tensor other) -> Tensor"> vdot;
inline constexpr Op<"outer(Tensor self, Tensor vec2) -> Tensor"> outer;
inline constexpr Op<"inner(Tensor self, Tensor other) -> Tensor"> inner;
inline constexpr Op<
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor">
    addmm;
inline constexpr Op<
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor">
    baddbmm;
inline constexpr Op<"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor">
    addmv;
inline constexpr Op<"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor">
    addr;
inline constexpr Op<
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor">
    addbmm;
inline constexpr Op<"trace(Tensor self) -> Tensor"> trace_of;
inline constexpr Op<"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor">
    tensordot;
inline constexpr Op<"einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor"> einsum;
inline constexpr Op<
    "cdist(Tensor x1, Tensor x2, float p=2., str compute_mode='use_mm_for_euclid_dist_if_necessary') -> "
    "Tensor">
    cdist;

}  // namespace fl
