#include "flambeau/ops/aten/special.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr Tag kRoutine = Tag::Elementwise | Tag::ComputeIntensive;
/// Dtypes whose samples are worth a test: integers and halves go through the same conversion.
constexpr DTypeSet kTested = dtypes::full_floats | DTypeSet{DType::Int32, DType::BFloat16};

Samples on(double low, double high, bool gradient = true) {
  return samples::unary({.dtypes = kTested, .low = low, .high = high, .gradient = gradient});
}

/// An operator that a routine computes, with floats from integers.
#define FL_FUNCTION(name, about, domain, saved, gradient)                       \
  t.define(name, {.doc = about,                                                 \
                  .tags = kRoutine,                                             \
                  .infer = rule::real(Promote::IntToFloat),                     \
                  .library = LibraryCall::HostRoutine,                          \
                  .saves = saved,                                               \
                  .grad = [](GradCtx& c, const Tensor& g) { return gradient; }, \
                  .samples = domain})

/// f(x) / x, and `limit` at 0.
Tensor over(const Tensor& y, const Tensor& x, double limit) { return where(eq(x, 0), limit, div(y, x)); }

void define_bessel(OpTable& t) {
  const auto in_out = saves::in({0}) | saves::out({0});
  FL_FUNCTION(special_bessel_j0, "Bessel function J0 of the first kind; 1e-15 of its envelope.", on(-6, 6),
              saves::in({0}), neg(mul(g, special_bessel_j1(c.in(0)))));
  FL_FUNCTION(special_bessel_j1, "Bessel function J1 of the first kind; 1e-15 of its envelope.", on(-6, 6),
              in_out, mul(g, sub(special_bessel_j0(c.in(0)), over(c.out(0), c.in(0), 0.5))));
  FL_FUNCTION(special_bessel_y0, "Bessel function Y0 of the second kind; -inf at 0, nan below.", on(0.5, 6),
              saves::in({0}), neg(mul(g, special_bessel_y1(c.in(0)))));
  FL_FUNCTION(special_bessel_y1, "Bessel function Y1 of the second kind; -inf at 0, nan below.", on(0.5, 6),
              in_out, mul(g, sub(special_bessel_y0(c.in(0)), div(c.out(0), c.in(0)))));
  FL_FUNCTION(special_i0, "Modified Bessel function I0 of the first kind.", on(-4, 4), saves::in({0}),
              mul(g, special_i1(c.in(0))));
  FL_FUNCTION(special_i1, "Modified Bessel function I1 of the first kind.", on(-4, 4), in_out,
              mul(g, sub(special_i0(c.in(0)), over(c.out(0), c.in(0), 0.5))));
  FL_FUNCTION(special_modified_bessel_i0, "`i0`.", on(-4, 4), saves::in({0}), mul(g, special_i1(c.in(0))));
  FL_FUNCTION(special_modified_bessel_i1, "`special_i1`.", on(-4, 4), in_out,
              mul(g, sub(special_i0(c.in(0)), over(c.out(0), c.in(0), 0.5))));
  FL_FUNCTION(special_i0e, "e^-|x| I0(x).", on(0.2, 4), in_out,
              mul(g, sub(special_i1e(c.in(0)), mul(sgn(c.in(0)), c.out(0)))));
  FL_FUNCTION(
      special_i1e, "e^-|x| I1(x).", on(0.2, 4), in_out,
      mul(g, sub(sub(special_i0e(c.in(0)), mul(sgn(c.in(0)), c.out(0))), over(c.out(0), c.in(0), 0.5))));
  FL_FUNCTION(special_modified_bessel_k0,
              "Modified Bessel function K0 of the second kind; inf at 0, nan below.", on(0.5, 4),
              saves::in({0}), neg(mul(g, special_modified_bessel_k1(c.in(0)))));
  FL_FUNCTION(special_modified_bessel_k1,
              "Modified Bessel function K1 of the second kind; inf at 0, nan below.", on(0.5, 4), in_out,
              neg(mul(g, add(special_modified_bessel_k0(c.in(0)), div(c.out(0), c.in(0))))));
  FL_FUNCTION(special_scaled_modified_bessel_k0, "e^x K0(x).", on(0.5, 4), in_out,
              mul(g, sub(c.out(0), special_scaled_modified_bessel_k1(c.in(0)))));
  FL_FUNCTION(special_scaled_modified_bessel_k1, "e^x K1(x).", on(0.5, 4), in_out,
              mul(g, sub(sub(c.out(0), special_scaled_modified_bessel_k0(c.in(0))), div(c.out(0), c.in(0)))));
  FL_FUNCTION(special_spherical_bessel_j0, "Spherical Bessel function sin(x) / x; 1 at 0.", on(0.5, 6),
              in_out, mul(g, over(sub(cos(c.in(0)), c.out(0)), c.in(0), 0)));
  t.define(special_airy_ai, {.doc = "Airy function Ai; 0 above 103.9.",
                             .tags = kRoutine | Tag::NonDifferentiable,
                             .infer = rule::real(Promote::IntToFloat),
                             .library = LibraryCall::HostRoutine,
                             .samples = on(-6, 6)});
}

void define_normal(OpTable& t) {
  FL_FUNCTION(special_erfcx, "e^(x^2) erfc(x).", on(-3, 6), saves::in({0}) | saves::out({0}),
              mul(g, sub(mul(mul(c.in(0), c.out(0)), 2), 2 * std::numbers::inv_sqrtpi)));
  FL_FUNCTION(special_ndtri, "The inverse of the standard normal distribution function; nan outside [0, 1].",
              on(0.1, 0.9), saves::out({0}), mul(g, mul(exp(div(square(c.out(0)), 2)), std::sqrt(2 * kPi))));
  t.define(special_ndtr, {.doc = "The standard normal distribution function.",
                          .tags = Tag::NoInPlace,
                          .decompose =
                              [](Tensor x) {
                                return in_compute_dtype(as_float(x), [](const Tensor& z) {
                                  return mul(erfc(mul(z, -1 / std::numbers::sqrt2)), 0.5);
                                });
                              },
                          .samples = samples::unary({.dtypes = kTested})});
  t.define(special_log_ndtr,
           {.doc = "The logarithm of the standard normal distribution function, exact in both tails.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor x) {
                  return in_compute_dtype(as_float(x), [](const Tensor& z) {
                    // Each form sees only arguments of its own side, so that none gives nan to the gradient.
                    const Tensor low = lt(z, -1), below = where(low, z, -1), above = where(low, -1, z);
                    const Tensor scaled = mul(special_erfcx(mul(below, -1 / std::numbers::sqrt2)), 0.5);
                    const Tensor left = sub(log(scaled), mul(square(below), 0.5));
                    const Tensor right = log1p(mul(erfc(mul(above, 1 / std::numbers::sqrt2)), -0.5));
                    return where(low, left, right);
                  });
                },
            .samples = samples::unary({.dtypes = kTested, .low = -5, .high = 3})});
  t.define(special_entr, {.doc = "-x log(x); 0 at 0, -inf below.",
                          .tags = Tag::NoInPlace,
                          .decompose =
                              [](Tensor x) {
                                const Tensor y = as_float(x);
                                const double infinity = std::numeric_limits<double>::infinity();
                                return where(lt(y, 0), -infinity, neg(xlogy(y, y)));
                              },
                          .samples = samples::unary({.dtypes = kTested, .low = 0.2, .high = 4})});
}

InferResult zeta_rule(const InferCtx& c, int p) {
  FL_CHECK(c.is_tensor(0) || c.is_tensor(1), TypeError, "special.zeta: expected a tensor, got two numbers");
  return rule::real(static_cast<Promote>(p)).function(c, p);
}

void check_no_gradient_by_first(GradCtx& c, const char* op) {
  FL_CHECK(!c.needs(0), NotImplementedError,
           "{} has no gradient by its first argument, and that one requires it: detach it first", op);
}

/// x^(a-1) e^-x / gamma(a), the slope of the incomplete gamma functions by x.
Tensor gamma_density(GradCtx& c, const char* op) {
  check_no_gradient_by_first(c, op);
  const Tensor x = c.in(1), a = tensor_operand(c, 0, x.dtype());
  return exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)));
}

void define_gamma(OpTable& t) {
  const Samples pairs =
      samples::binary({.dtypes = dtypes::full_floats, .low = 0.5, .high = 5, .gradient = false});
  t.define(igamma,
           {.doc = "The regularised lower incomplete gamma function P(self, other). No gradient by self.",
            .tags = kRoutine,
            .infer = rule::real(Promote::IntToFloat),
            .library = LibraryCall::HostRoutine,
            .saves = saves::in({0, 1}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return Tensors{Tensor(), mul(g, gamma_density(c, "igamma"))};
                },
            .samples = pairs});
  t.define(igammac,
           {.doc = "The regularised upper incomplete gamma function Q(self, other). No gradient by self.",
            .tags = kRoutine,
            .infer = rule::real(Promote::IntToFloat),
            .library = LibraryCall::HostRoutine,
            .saves = saves::in({0, 1}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return Tensors{Tensor(), neg(mul(g, gamma_density(c, "igammac")))};
                },
            .samples = pairs});
  t.define(
      special_zeta,
      {.doc =
           "Hurwitz' zeta function: the sum of (other + k)^-self over k >= 0. inf at self = 1, nan below. No "
           "gradient by self.",
       .tags = kRoutine,
       .infer = Infer(zeta_rule, static_cast<int>(Promote::IntToFloat)),
       .library = LibraryCall::HostRoutine,
       .saves = saves::in({0, 1}),
       .grad =
           [](GradCtx& c, const Tensor& g) {
             check_no_gradient_by_first(c, "special_zeta");
             const Tensor q = c.in(1), s = tensor_operand(c, 0, q.dtype());
             return Tensors{Tensor(), neg(mul(g, mul(s, special_zeta(add(s, 1), q))))};
           },
       .samples =
           samples::binary({.dtypes = dtypes::full_floats, .low = 1.5, .high = 6, .gradient = false})});
  t.define(mvlgamma,
           {.doc = "The logarithm of the multivariate gamma function of p dimensions; nan where an element "
                   "is not above (p - 1) / 2.",
            .decompose =
                [](Tensor x, int64_t p) {
                  FL_CHECK(p >= 1, RuntimeError, "p has to be greater than or equal to 1");
                  const Tensor y = as_float(x);
                  const double d = static_cast<double>(p);
                  const Tensor steps = mul(arange(0, p, 1, compute_dtype(y.dtype()), y.device()), -0.5);
                  return in_compute_dtype(y, [&](const Tensor& z) {
                    return add(sum(lgamma(add(unsqueeze(z, -1), steps)), IntList{-1}),
                               d * (d - 1) / 4 * std::log(kPi));
                  });
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  std::vector<Sample> out = samples::with_arguments(m, o, {{1}, {3}});
                  out.push_back({{m.make({2}, o.low, o.high), 0}, "p", "RuntimeError: p has to be"});
                  return out;
                },
                {.dtypes = dtypes::full_floats, .low = 2, .high = 5, .tolerance = 1e-4})});
}

#define FL_POLYNOMIAL(name, about)                                                            \
  t.define(special_##name,                                                                    \
           {.doc = about " of degree n (its fraction cut off; 0 where it is negative) at x.", \
            .tags = kRoutine | Tag::NonDifferentiable,                                        \
            .infer = rule::real(Promote::IntToFloat),                                         \
            .library = LibraryCall::HostRoutine,                                              \
            .samples =                                                                        \
                samples::binary({.dtypes = dtypes::full_floats, .low = 0.1, .high = 5, .gradient = false})})

void define_polynomials(OpTable& t) {
  FL_POLYNOMIAL(chebyshev_polynomial_t, "Chebyshev's polynomial of the first kind");
  FL_POLYNOMIAL(chebyshev_polynomial_u, "Chebyshev's polynomial of the second kind");
  FL_POLYNOMIAL(chebyshev_polynomial_v, "Chebyshev's polynomial of the third kind");
  FL_POLYNOMIAL(chebyshev_polynomial_w, "Chebyshev's polynomial of the fourth kind");
  FL_POLYNOMIAL(shifted_chebyshev_polynomial_t, "Chebyshev's polynomial of the first kind, of 2 x - 1,");
  FL_POLYNOMIAL(shifted_chebyshev_polynomial_u, "Chebyshev's polynomial of the second kind, of 2 x - 1,");
  FL_POLYNOMIAL(shifted_chebyshev_polynomial_v, "Chebyshev's polynomial of the third kind, of 2 x - 1,");
  FL_POLYNOMIAL(shifted_chebyshev_polynomial_w, "Chebyshev's polynomial of the fourth kind, of 2 x - 1,");
  FL_POLYNOMIAL(hermite_polynomial_h, "The physicists' Hermite polynomial");
  FL_POLYNOMIAL(hermite_polynomial_he, "The probabilists' Hermite polynomial");
  FL_POLYNOMIAL(laguerre_polynomial_l, "Laguerre's polynomial");
  FL_POLYNOMIAL(legendre_polynomial_p, "Legendre's polynomial");
}
#undef FL_POLYNOMIAL
#undef FL_FUNCTION

}  // namespace

void define_special(OpTable& t) {
  define_bessel(t);
  define_normal(t);
  define_gamma(t);
  define_polynomials(t);
}

}  // namespace fl
