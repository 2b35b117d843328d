// Special functions beyond those that kernels are made of. By name, torch.special's.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"polar(Tensor abs, Tensor angle) -> Tensor"> polar;
inline constexpr Op<"i0(Tensor self) -> Tensor"> special_i0;
inline constexpr Op<"special_airy_ai(Tensor x) -> Tensor"> special_airy_ai;
inline constexpr Op<"special_bessel_j0(Tensor self) -> Tensor"> special_bessel_j0;
inline constexpr Op<"special_bessel_j1(Tensor self) -> Tensor"> special_bessel_j1;
inline constexpr Op<"special_bessel_y0(Tensor self) -> Tensor"> special_bessel_y0;
inline constexpr Op<"special_bessel_y1(Tensor self) -> Tensor"> special_bessel_y1;
inline constexpr Op<"special_i0e(Tensor self) -> Tensor"> special_i0e;
inline constexpr Op<"special_i1(Tensor self) -> Tensor"> special_i1;
inline constexpr Op<"special_i1e(Tensor self) -> Tensor"> special_i1e;
inline constexpr Op<"special_modified_bessel_i0(Tensor self) -> Tensor"> special_modified_bessel_i0;
inline constexpr Op<"special_modified_bessel_i1(Tensor self) -> Tensor"> special_modified_bessel_i1;
inline constexpr Op<"special_modified_bessel_k0(Tensor self) -> Tensor"> special_modified_bessel_k0;
inline constexpr Op<"special_modified_bessel_k1(Tensor self) -> Tensor"> special_modified_bessel_k1;
inline constexpr Op<"special_scaled_modified_bessel_k0(Tensor x) -> Tensor">
    special_scaled_modified_bessel_k0;
inline constexpr Op<"special_scaled_modified_bessel_k1(Tensor x) -> Tensor">
    special_scaled_modified_bessel_k1;
inline constexpr Op<"special_spherical_bessel_j0(Tensor x) -> Tensor"> special_spherical_bessel_j0;
inline constexpr Op<"special_entr(Tensor self) -> Tensor"> special_entr;
inline constexpr Op<"special_erfcx(Tensor self) -> Tensor"> special_erfcx;
inline constexpr Op<"special_ndtr(Tensor self) -> Tensor"> special_ndtr;
inline constexpr Op<"special_ndtri(Tensor self) -> Tensor"> special_ndtri;
inline constexpr Op<"special_log_ndtr(Tensor self) -> Tensor"> special_log_ndtr;
inline constexpr Op<"special_zeta(Tensor self, Tensor other) -> Tensor"> special_zeta;
inline constexpr Op<"igamma(Tensor self, Tensor other) -> Tensor"> igamma;
inline constexpr Op<"igammac(Tensor self, Tensor other) -> Tensor"> igammac;
inline constexpr Op<"mvlgamma(Tensor self, int p) -> Tensor"> mvlgamma;

// Orthogonal polynomials of degree n at x.
inline constexpr Op<"special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor">
    special_chebyshev_polynomial_t;
inline constexpr Op<"special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor">
    special_chebyshev_polynomial_u;
inline constexpr Op<"special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor">
    special_chebyshev_polynomial_v;
inline constexpr Op<"special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor">
    special_chebyshev_polynomial_w;
inline constexpr Op<"special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor">
    special_shifted_chebyshev_polynomial_t;
inline constexpr Op<"special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor">
    special_shifted_chebyshev_polynomial_u;
inline constexpr Op<"special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor">
    special_shifted_chebyshev_polynomial_v;
inline constexpr Op<"special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor">
    special_shifted_chebyshev_polynomial_w;
inline constexpr Op<"special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor">
    special_hermite_polynomial_h;
inline constexpr Op<"special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor">
    special_hermite_polynomial_he;
inline constexpr Op<"special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor">
    special_laguerre_polynomial_l;
inline constexpr Op<"special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor">
    special_legendre_polynomial_p;

}  // namespace fl
