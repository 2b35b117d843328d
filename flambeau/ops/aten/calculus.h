// Integrals and slopes of sampled functions, covariances.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"> trapezoid_at;
inline constexpr Op<"trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"> trapezoid;
inline constexpr Op<"trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"> trapz_at;
inline constexpr Op<"trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor"> trapz;
inline constexpr Op<"cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor">
    cumulative_trapezoid_at;
inline constexpr Op<"cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor">
    cumulative_trapezoid;
inline constexpr Op<
    "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]">
    gradient;
inline constexpr Op<
    "gradient.scalararray(Tensor self, *, Scalar? spacing=None, int[] dim, int edge_order=1) -> Tensor[]">
    gradient_along;
inline constexpr Op<
    "gradient.scalarrayint(Tensor self, *, float[]? spacing, int? dim=None, int edge_order=1) -> Tensor[]">
    gradient_spaced;
inline constexpr Op<
    "gradient.scalarrayarray(Tensor self, *, float[]? spacing, int[] dim, int edge_order=1) -> Tensor[]">
    gradient_spaced_along;
inline constexpr Op<
    "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]">
    gradient_at;
inline constexpr Op<
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]">
    gradient_at_along;
inline constexpr Op<
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor">
    cov;
inline constexpr Op<"corrcoef(Tensor self) -> Tensor"> corrcoef;
inline constexpr Op<"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor"> renorm;

}  // namespace fl
