#include "flambeau/ops/prims/unary.h"

#include <numbers>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/complex_functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kLn2 = std::numbers::ln2;
constexpr double kLn10 = std::numbers::ln10;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_whole(Val x) { return is_integral(x.dtype, true); }

/// Of every real dtype, on a domain; and of complex ones.
Samples real_on(double low, double high) {
  return samples::unary({.dtypes = dtypes::real, .low = low, .high = high});
}
Samples any_on(double low, double high) {
  return samples::unary({.dtypes = dtypes::all, .low = low, .high = high});
}

void define_rounding(OpTable& t) {
  const Samples steps = samples::unary({.dtypes = dtypes::integers | dtypes::floats, .gradient = false});
  t.define(ceil, {.doc = "The smallest integer not below each element; integers stay.",
                  .tags = Tag::Elementwise,
                  .infer = rule::real_number(),
                  .scalar = [](ScalarOps& s, Val x) { return is_whole(x) ? x : s.ceil(x); },
                  .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
                  .samples = steps});
  t.define(floor, {.doc = "The largest integer not above each element; integers stay.",
                   .tags = Tag::Elementwise,
                   .infer = rule::real_number(),
                   .scalar = [](ScalarOps& s, Val x) { return is_whole(x) ? x : s.floor(x); },
                   .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
                   .samples = steps});
  t.define(round, {.doc = "The nearest integer, halves to the even one; integers stay.",
                   .tags = Tag::Elementwise,
                   .infer = rule::real_number(),
                   .scalar = [](ScalarOps& s, Val x) { return is_whole(x) ? x : s.round(x); },
                   .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
                   .samples = steps});
  t.define(trunc, {.doc = "Each element without its fraction; integers stay.",
                   .tags = Tag::Elementwise,
                   .infer = rule::real_number(),
                   .scalar = [](ScalarOps& s, Val x) { return is_whole(x) ? x : s.trunc(x); },
                   .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
                   .samples = steps});
}

InferResult neg_rule(const InferCtx& c, int p) {
  FL_CHECK(c.spec(0).dtype != DType::Bool, NotImplementedError,
           "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
           "mask, use the `~` or `logical_not()` operator instead.");
  return rule::elementwise_result(c, static_cast<Promote>(p));
}

Val sign_of(ScalarOps& s, Val x) {
  if (x.dtype == DType::Bool) return x;
  const Val zero = s.like(x, 0);
  return s.sub(s.cast(s.lt(zero, x), x.dtype), s.cast(s.lt(x, zero), x.dtype));
}

Val sgn_of(ScalarOps& s, Val x) {
  if (!is_complex(x.dtype)) return sign_of(s, x);
  const Val zero = s.like(x, 0);
  const Val modulus = s.abs(x);
  return s.select(s.eq(x, zero), zero, s.div(x, s.complex(modulus, s.like(modulus, 0))));
}

/// d/dx of x / |x| along the direction g: what of g is at right angles to sgn(x), divided by |x|.
Tensor sgn_gradient(GradCtx& c, const Tensor& g) {
  if (!is_complex(c.in_spec(0).dtype)) return zeros_like(g);
  const Tensor sgn = c.out(0), modulus = abs(c.in(0));
  const Tensor along = mul(sgn, real(mul(g, conj_physical(sgn))));
  return where(eq(modulus, 0), zeros_like(g), div(sub(g, along), modulus));
}

void define_signs(OpTable& t) {
  const Samples numbers = samples::unary({.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes});
  t.define(neg, {.doc = "-x. Raises NotImplementedError on bool.",
                 .tags = Tag::Elementwise,
                 .infer = Infer(neg_rule, static_cast<int>(Promote::Default)),
                 .scalar = [](ScalarOps& s, Val x) { return s.neg(x); },
                 .grad = [](GradCtx&, const Tensor& g) { return neg(g); },
                 .samples = numbers});
  t.define(abs, {.doc = "|x|; of complex numbers the modulus, in the real dtype.",
                 .tags = Tag::Elementwise,
                 .infer = rule::number(Promote::ComplexToFloat),
                 .scalar = [](ScalarOps& s, Val x) { return info(x.dtype).is_signed ? s.abs(x) : x; },
                 .saves = saves::in({0}),
                 .grad = [](GradCtx& c, const Tensor& g) { return mul(g, sgn(c.in(0))); },
                 .samples = numbers});
  t.define(sign, {.doc = "-1, 0 or 1 by the sign of each element; 0 for nan.",
                  .tags = Tag::Elementwise,
                  .infer = rule::real(),
                  .scalar = sign_of,
                  .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
                  .samples = samples::unary({.dtypes = dtypes::real, .gradient = false})});
  t.define(sgn, {.doc = "As sign; of complex numbers x / |x|, and 0 of 0.",
                 .tags = Tag::Elementwise,
                 .infer = rule::elementwise(),
                 .scalar = sgn_of,
                 .saves = saves::in({0}) | saves::out({0}),
                 .grad = sgn_gradient,
                 .samples = samples::unary({.dtypes = dtypes::all, .gradient = false})});
  t.define(conj_physical,
           {.doc = "The complex conjugate in memory of its own; real elements as they are.",
            .tags = Tag::Elementwise,
            .infer = rule::elementwise(),
            .scalar = [](ScalarOps& s,
                         Val x) { return is_complex(x.dtype) ? s.complex(s.real(x), s.neg(s.imag(x))) : x; },
            .grad = [](GradCtx&, const Tensor& g) { return conj_if_complex(g); },
            .samples = samples::unary({.dtypes = dtypes::all})});
}

void define_powers(OpTable& t) {
  t.define(sqrt,
           {.doc = "Square root, correctly rounded; nan below 0.",
            .tags = Tag::Elementwise,
            .infer = rule::elementwise(Promote::IntToFloat),
            .scalar = [](ScalarOps& s,
                         Val x) { return is_complex(x.dtype) ? complex_functions::sqrt(s, x) : s.sqrt(x); },
            .saves = saves::out({0}),
            .grad = [](GradCtx& c, const Tensor& g) { return div(g, mul(conj_if_complex(c.out(0)), 2)); },
            .samples = any_on(0.1, 5)});
  t.define(rsqrt, {.doc = "1 / sqrt(x).",
                   .tags = Tag::Elementwise,
                   .infer = rule::elementwise(Promote::IntToFloat),
                   .scalar =
                       [](ScalarOps& s, Val x) {
                         return is_complex(x.dtype) ? complex_functions::rsqrt(s, x)
                                                    : s.div(s.like(x, 1), s.sqrt(x));
                       },
                   .saves = saves::out({0}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         const Tensor r = conj_if_complex(c.out(0));
                         return mul(mul(g, -0.5), mul(mul(r, r), r));
                       },
                   .samples = any_on(0.5, 5)});
  t.define(reciprocal,
           {.doc = "1 / x.",
            .tags = Tag::Elementwise,
            .infer = rule::elementwise(Promote::IntToFloat),
            .scalar = [](ScalarOps& s, Val x) { return s.div(s.like(x, 1), x); },
            .saves = saves::out({0}),
            .grad = [](GradCtx& c,
                       const Tensor& g) { return neg(mul(g, conj_if_complex(mul(c.out(0), c.out(0))))); },
            .samples = samples::unary({.dtypes = dtypes::all, .low = 0.5, .high = 4})});
}

/// An operator that one scalar operation computes, with floats from integers.
#define FL_FUNCTION(name, about, domain, saved, gradient)                       \
  t.define(name, {.doc = about,                                                 \
                  .tags = Tag::Elementwise,                                     \
                  .infer = rule::real(Promote::IntToFloat),                     \
                  .scalar = [](ScalarOps& s, Val x) { return s.name(x); },      \
                  .saves = saved,                                               \
                  .grad = [](GradCtx& c, const Tensor& g) { return gradient; }, \
                  .samples = domain})

/// The same for complex numbers, too; slope is the derivative, of which complex gradients are by the
/// conjugate.
#define FL_ANALYTIC(name, about, domain, saved, slope)                                                       \
  t.define(name,                                                                                             \
           {.doc = about,                                                                                    \
            .tags = Tag::Elementwise,                                                                        \
            .infer = rule::elementwise(Promote::IntToFloat),                                                 \
            .scalar = [](ScalarOps& s,                                                                       \
                         Val x) { return is_complex(x.dtype) ? complex_functions::name(s, x) : s.name(x); }, \
            .saves = saved,                                                                                  \
            .grad = [](GradCtx& c, const Tensor& g) { return mul(g, conj_if_complex(slope)); },              \
            .samples = domain})

void define_exponentials(OpTable& t) {
  FL_ANALYTIC(exp, "e^x.", any_on(-3, 3), saves::out({0}), c.out(0));
  FL_ANALYTIC(exp2, "2^x.", any_on(-3, 3), saves::out({0}), mul(c.out(0), kLn2));
  FL_ANALYTIC(expm1, "e^x - 1, exact near 0.", any_on(-3, 3), saves::out({0}), add(c.out(0), 1));
  FL_ANALYTIC(log, "Natural logarithm; -inf at 0, nan below.", any_on(0.1, 5), saves::in({0}),
              reciprocal(c.in(0)));
  FL_ANALYTIC(log2, "Logarithm to base 2.", any_on(0.1, 5), saves::in({0}), reciprocal(mul(c.in(0), kLn2)));
  FL_ANALYTIC(log10, "Logarithm to base 10.", any_on(0.1, 5), saves::in({0}),
              reciprocal(mul(c.in(0), kLn10)));
  FL_ANALYTIC(log1p, "log(1 + x), exact near 0.", any_on(-0.8, 3), saves::in({0}),
              reciprocal(add(c.in(0), 1)));
}

void define_trigonometry(OpTable& t) {
  const Samples wide = any_on(-3, 3), unit = any_on(-0.9, 0.9);
  FL_ANALYTIC(sin, "Sine.", wide, saves::in({0}), cos(c.in(0)));
  FL_ANALYTIC(cos, "Cosine.", wide, saves::in({0}), neg(sin(c.in(0))));
  FL_ANALYTIC(tan, "Tangent.", any_on(-1.4, 1.4), saves::out({0}), add(square(c.out(0)), 1));
  FL_ANALYTIC(asin, "Inverse sine on [-1, 1]; nan outside.", unit, saves::in({0}),
              rsqrt(sub(1, square(c.in(0)))));
  FL_ANALYTIC(acos, "Inverse cosine on [-1, 1]; nan outside.", unit, saves::in({0}),
              neg(rsqrt(sub(1, square(c.in(0))))));
  FL_ANALYTIC(atan, "Inverse tangent.", wide, saves::in({0}), reciprocal(add(square(c.in(0)), 1)));
  FL_ANALYTIC(sinh, "Hyperbolic sine.", wide, saves::in({0}), cosh(c.in(0)));
  FL_ANALYTIC(cosh, "Hyperbolic cosine.", wide, saves::in({0}), sinh(c.in(0)));
  FL_ANALYTIC(tanh, "Hyperbolic tangent.", wide, saves::out({0}), sub(1, square(c.out(0))));
  FL_ANALYTIC(asinh, "Inverse hyperbolic sine.", wide, saves::in({0}), rsqrt(add(square(c.in(0)), 1)));
  // The product of two roots has the branches of acosh; the root of a product has not.
  FL_ANALYTIC(acosh, "Inverse hyperbolic cosine on [1, inf); nan below.", any_on(1.2, 5), saves::in({0}),
              is_complex(c.in_spec(0).dtype) ? mul(rsqrt(sub(c.in(0), 1)), rsqrt(add(c.in(0), 1)))
                                             : rsqrt(sub(square(c.in(0)), 1)));
  FL_ANALYTIC(atanh, "Inverse hyperbolic tangent on [-1, 1]; nan outside.", unit, saves::in({0}),
              reciprocal(sub(1, square(c.in(0)))));
}

void define_special(OpTable& t) {
  FL_FUNCTION(erf, "Error function.", real_on(-3, 3), saves::in({0}),
              mul(g, mul(exp(neg(square(c.in(0)))), kTwoOverSqrtPi)));
  FL_FUNCTION(erfc, "1 - erf(x), exact for large x.", real_on(-3, 3), saves::in({0}),
              mul(g, mul(exp(neg(square(c.in(0)))), -kTwoOverSqrtPi)));
  FL_FUNCTION(erfinv, "Inverse error function on (-1, 1); +-inf at the ends, nan outside.",
              real_on(-0.9, 0.9), saves::out({0}), mul(g, mul(exp(square(c.out(0))), 1 / kTwoOverSqrtPi)));
  FL_FUNCTION(lgamma, "Logarithm of |gamma(x)|; inf at 0 and the negative integers.", real_on(0.3, 5),
              saves::in({0}), mul(g, digamma(c.in(0))));
  FL_FUNCTION(digamma, "d/dx log gamma(x).", real_on(0.3, 5), saves::in({0}), mul(g, polygamma(1, c.in(0))));
  t.define(sigmoid, {.doc = "1 / (1 + e^-x).",
                     .tags = Tag::Elementwise,
                     .infer = rule::elementwise(Promote::IntToFloat),
                     .scalar =
                         [](ScalarOps& s, Val x) {
                           if (is_complex(x.dtype)) return complex_functions::sigmoid(s, x);
                           const Val one = s.like(x, 1);
                           return s.div(one, s.add(one, s.exp(s.neg(x))));
                         },
                     .saves = saves::out({0}),
                     .grad =
                         [](GradCtx& c, const Tensor& g) {
                           const Tensor y = conj_if_complex(c.out(0));
                           return mul(g, mul(y, sub(1, y)));
                         },
                     .samples = any_on(-6, 6)});
}
#undef FL_FUNCTION
#undef FL_ANALYTIC

Val sign_bit(ScalarOps& s, Val x) {
  if (!info(x.dtype).is_signed || x.dtype == DType::Bool) return s.constant(DType::Bool, 0);
  if (x.dtype == DType::Float64) x = s.bitcast(x, DType::Int64);
  if (x.dtype == DType::Float32) x = s.bitcast(x, DType::Int32);
  return s.lt(x, s.like(x, 0));
}

Val is_infinite(ScalarOps& s, Val x) {
  if (is_whole(x)) return s.constant(DType::Bool, 0);
  if (is_complex(x.dtype)) return s.bit_or(is_infinite(s, s.real(x)), is_infinite(s, s.imag(x)));
  return s.eq(s.abs(x), s.like(x, kInfinity));
}

Val is_finite(ScalarOps& s, Val x) {
  if (is_whole(x)) return s.constant(DType::Bool, 1);
  if (is_complex(x.dtype)) return s.bit_and(is_finite(s, s.real(x)), is_finite(s, s.imag(x)));
  return s.lt(s.abs(x), s.like(x, kInfinity));
}

void define_predicates_of_one(OpTable& t) {
  constexpr Tag kTags = Tag::Elementwise | Tag::NonDifferentiable;
  const Samples any = samples::unary({.dtypes = dtypes::all});
  t.define(logical_not, {.doc = "True where an element is 0.",
                         .tags = kTags,
                         .infer = rule::elementwise(Promote::AlwaysBool),
                         .scalar = [](ScalarOps& s, Val x) { return s.eq(x, s.like(x, 0)); },
                         .samples = any});
  t.define(bitwise_not, {.doc = "All bits inverted; of bool the logical not. Integers and bool only.",
                         .tags = kTags,
                         .infer = rule::integral(),
                         .scalar = [](ScalarOps& s, Val x) { return s.bit_not(x); },
                         .samples = samples::unary({.dtypes = dtypes::integers | dtypes::boolean})});
  t.define(signbit, {.doc = "Whether the sign bit is set, that of -0 and nan included.",
                     .tags = kTags,
                     .infer = rule::real(Promote::AlwaysBool),
                     .scalar = sign_bit,
                     .samples = samples::unary({.dtypes = dtypes::real})});
  t.define(isnan, {.doc = "Whether an element (or a part of a complex one) is nan.",
                   .tags = kTags,
                   .infer = rule::elementwise(Promote::AlwaysBool),
                   .scalar = [](ScalarOps& s,
                                Val x) { return is_whole(x) ? s.constant(DType::Bool, 0) : s.is_nan(x); },
                   .samples = any});
  t.define(isinf, {.doc = "Whether an element (or a part of a complex one) is infinite.",
                   .tags = kTags,
                   .infer = rule::elementwise(Promote::AlwaysBool),
                   .scalar = is_infinite,
                   .samples = any});
  t.define(isfinite, {.doc = "Whether an element is neither infinite nor nan.",
                      .tags = kTags,
                      .infer = rule::elementwise(Promote::AlwaysBool),
                      .scalar = is_finite,
                      .samples = any});
}

}  // namespace

void define_unary(OpTable& t) {
  define_signs(t);
  define_rounding(t);
  define_powers(t);
  define_exponentials(t);
  define_trigonometry(t);
  define_special(t);
  define_predicates_of_one(t);
}

}  // namespace fl
