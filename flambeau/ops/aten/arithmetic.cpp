#include "flambeau/ops/aten/arithmetic.h"

#include <cmath>
#include <numbers>

#include "flambeau/ops/aten/special.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/division.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr double kPi = std::numbers::pi;

void define_quotients(OpTable& t) {
  t.define(square,
           {.doc = "self * self; bool counts as integer.",
            .decompose =
                [](Tensor self) {
                  const Tensor x = self.dtype() == DType::Bool ? to_dtype(self, DType::Int64) : self;
                  return mul(x, x);
                },
            .samples = samples::unary({.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes})});
  t.define(frac, {.doc = "The fraction of each element, with its sign.",
                  .decompose = [](Tensor self) { return sub(self, trunc(self)); },
                  .samples = samples::unary({.dtypes = dtypes::floats, .low = 0.1, .high = 0.9})});
  t.define(rsub,
           {.doc = "other - alpha * self.",
            .decompose = [](Tensor self, Tensor other,
                            Scalar alpha) { return sub(unwrapped(other), self, alpha); },
            .samples = samples::binary({.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes})});
  t.define(
      div_mode,
      {.doc =
           "self / other; rounded by rounding_mode \"trunc\" or \"floor\", and then in the promoted dtype.",
       .decompose =
           [](Tensor self, Tensor other, std::optional<std::string_view> mode) {
             if (!mode) return div(unwrapped(self), unwrapped(other));
             check_divisor(self, other);
             if (*mode == "trunc") return _div_trunc(unwrapped(self), unwrapped(other));
             FL_CHECK(*mode == "floor", RuntimeError,
                      "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'",
                      *mode);
             return _div_floor(unwrapped(self), unwrapped(other));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             return std::vector<Sample>{{{x(), x(), "trunc"}, "trunc", ""},
                                        {{x(), x(), "floor"}, "floor", ""},
                                        {{x(), 2, "floor"}, "number", ""},
                                        {{x(), x(), Value()}, "none", ""},
                                        {{x(), x(), "up"}, "mode", "RuntimeError: 'up'"}};
           },
           {.dtypes = dtypes::integers | dtypes::floats, .low = 1, .high = 7, .gradient = false})});
}

/// Powers that have a better form than pow; nothing for others.
std::optional<Tensor> simple_power(const Tensor& x, const Scalar& exponent) {
  if (x.dtype() == DType::Bool || exponent.is_complex()) return std::nullopt;
  const bool whole = is_integral(x.dtype());
  if (whole && !exponent.is_integral()) return std::nullopt;
  const double y = exponent.to_double();
  if (y == 1) return alias(x);
  if (y == 2) return mul(x, x);
  if (y == 3) return mul(mul(x, x), x);
  if (whole) return std::nullopt;
  if (y == -1) return reciprocal(x);
  if (y == -2) return reciprocal(mul(x, x));
  if (is_complex(x.dtype())) return std::nullopt;
  if (y == 0.5) return sqrt(x);
  if (y == -0.5) return rsqrt(x);
  return std::nullopt;
}

void define_power(OpTable& t) {
  t.define(
      pow,
      {.doc = "self ^ exponent. Exponents 2, 3, -1, -2, 0.5 and -0.5 become products, quotients and roots. "
              "Raises RuntimeError on integers with a negative exponent.",
       .decompose =
           [](Tensor self, Tensor exponent) {
             const auto number = number_of(exponent);
             if (number && !self.impl()->wrapped_number) {
               FL_CHECK(!is_integral(self.dtype()) || !number->is_integral() || number->to_int() >= 0,
                        RuntimeError, "Integers to negative integer powers are not allowed.");
               if (auto simple = simple_power(self, *number)) return *simple;
             }
             return _pow(unwrapped(self), unwrapped(exponent));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             std::vector<Sample> out{{{x(), x()}, "", ""}, {{2, x()}, "number to a power", ""}};
             for (const int y : {0, 1, 2, 3, 4}) out.push_back({{x(), y}, "integer power", ""});
             if (is_integral(m.dtype())) {
               out.push_back({{x(), -1}, "negative", "RuntimeError: negative integer powers"});
             } else {
               for (const double y : {-2.0, -1.0, -0.5, 0.5, 1.7}) out.push_back({{x(), y}, "power", ""});
             }
             return out;
           },
           {.dtypes = dtypes::integers | dtypes::floats, .low = 0.5, .high = 3})});
}

void define_complex_parts(OpTable& t) {
  constexpr Tag kView = Tag::NoInPlace | Tag::NoOut;
  const Samples any = samples::unary({.dtypes = dtypes::all});
  t.define(positive, {.doc = "self. Raises NotImplementedError on bool.",
                      .tags = kView,
                      .decompose =
                          [](Tensor self) {
                            FL_CHECK(self.dtype() != DType::Bool, NotImplementedError,
                                     "The `+` operator, on a bool tensor is not supported.");
                            return self;
                          },
                      .samples = samples::unary({.dtypes = dtypes::integers | dtypes::floats})});
  t.define(conj, {.doc = "The complex conjugate; a real tensor itself.",
                  .tags = kView,
                  .decompose = [](Tensor self) { return conj_if_complex(self); },
                  .samples = any});
  t.define(real, {.doc = "The real parts, as a view; a real tensor itself.",
                  .tags = kView,
                  .decompose =
                      [](Tensor self) {
                        return is_complex(self.dtype()) ? select(view_as_real(self), -1, 0) : self;
                      },
                  .samples = any});
  t.define(imag, {.doc = "The imaginary parts, as a view. Raises RuntimeError on real tensors.",
                  .tags = kView,
                  .decompose =
                      [](Tensor self) {
                        FL_CHECK(is_complex(self.dtype()), RuntimeError,
                                 "imag is not implemented for tensors with non-complex dtypes.");
                        return select(view_as_real(self), -1, 1);
                      },
                  .samples = samples::unary({.dtypes = dtypes::complexes})});
  t.define(polar,
           {.doc = "The complex number of a modulus and an angle.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor modulus, Tensor turn) {
                  FL_CHECK(modulus.dtype() == turn.dtype(), RuntimeError,
                           "Expected object of scalar type {} but got scalar type {} for second argument",
                           name(modulus.dtype()), name(turn.dtype()));
                  FL_CHECK(modulus.dtype() == DType::Float32 || modulus.dtype() == DType::Float64,
                           RuntimeError,
                           "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
                           name(modulus.dtype()), name(turn.dtype()));
                  return complex(mul(modulus, cos(turn)), mul(modulus, sin(turn)));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({3, 4}, o.low, o.high), m.make({3, 4}, o.low, o.high)}, "", ""},
                      {{m.make({3, 1}, o.low, o.high), m.make({4}, o.low, o.high)}, "broadcast", ""}};
                },
                {.dtypes = dtypes::full_floats, .gradient = false})});
  t.define(angle,
           {.doc = "The angle of complex numbers; pi of negative real numbers, 0 of others, nan of nan.",
            .decompose =
                [](Tensor self) {
                  if (is_complex(self.dtype())) return atan2(imag(self), real(self));
                  const Tensor x = as_float(self);
                  return where(isnan(x), x, where(lt(x, 0), full_like(x, kPi), 0));
                },
            .samples = samples::unary({.dtypes = dtypes::all, .gradient = false})});
}

void define_scaled(OpTable& t) {
  t.define(deg2rad, {.doc = "Degrees as radians.",
                     .decompose = [](Tensor self) { return mul(self, kPi / 180); },
                     .samples = samples::unary({.dtypes = dtypes::real, .low = -180, .high = 180})});
  t.define(rad2deg, {.doc = "Radians as degrees.",
                     .decompose = [](Tensor self) { return mul(self, 180 / kPi); },
                     .samples = samples::unary({.dtypes = dtypes::real})});
  t.define(
      round_decimals,
      {.doc = "Rounded to a number of decimal places, halves to even; negative ones round left of the point.",
       .tags = Tag::Fused,
       .infer = rule::real(),
       .decompose =
           [](Tensor self, int64_t decimals) {
             check_dtype("round with decimals", self.dtype(), Takes::Floating);
             const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
             return in_compute_dtype(self, [&](const Tensor& x) {
               return decimals >= 0 ? div(round(mul(x, scale)), scale) : mul(round(div(x, scale)), scale);
             });
           },
       .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return samples::with_arguments(m, o, {{Value(1)}, {Value(-1)}, {Value(0)}});
           },
           {.dtypes = dtypes::floats, .low = -30, .high = 30, .gradient = false})});
  t.define(sinc, {.doc = "sin(pi x) / (pi x); 1 at 0.",
                  .tags = Tag::Fused,
                  .infer = rule::real(Promote::IntToFloat),
                  .decompose =
                      [](Tensor self) {
                        return in_compute_dtype(as_float(self), [](const Tensor& x) {
                          const Tensor y = mul(x, kPi);
                          return where(eq(x, 0), 1, div(sin(y), y));
                        });
                      },
                  .saves = saves::in({0}),
                  .grad =
                      [](GradCtx& c, const Tensor& g) {
                        const Tensor x = c.in(0), y = mul(x, kPi);
                        return mul(g, where(eq(x, 0), 0, div(sub(mul(cos(y), y), sin(y)), mul(y, x))));
                      },
                  .samples = samples::unary({.dtypes = dtypes::real, .low = 0.2, .high = 3})});
  t.define(logit, {.doc = "log(x / (1 - x)), with x first clamped to [eps, 1 - eps] if eps is given.",
                   .tags = Tag::Fused,
                   .infer = rule::real(Promote::IntToFloat),
                   .decompose =
                       [](Tensor self, std::optional<double> eps) {
                         return in_compute_dtype(as_float(self), [&](const Tensor& x) {
                           const Tensor inside = eps ? clamp_max(clamp_min(x, *eps), 1 - *eps) : x;
                           return log(div(inside, sub(1, inside)));
                         });
                       },
                   .saves = saves::in({0}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         const Tensor x = c.in(0), slope = div(g, mul(x, sub(1, x)));
                         const bool clamped = !c.arg(1).is_none();
                         const double low = clamped ? c.arg(1).to_double() : 0;
                         const Tensor inside = logical_and(ge(x, low), le(x, 1 - low));
                         return where(inside, slope, clamped ? 0.0 : std::nan(""));
                       },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         return samples::with_arguments(m, o, {{}, {Value(0.2)}});
                       },
                       {.dtypes = dtypes::floats, .low = 0.25, .high = 0.75})});
}

/// Recurrence up to an argument of 10 and more, then the asymptotic series; below 1/2 by reflection.
Tensor trigamma(const Tensor& input) {
  const Tensor reflects = lt(input, 0.5);
  Tensor x = where(reflects, sub(1, input), input);
  Tensor sum = zeros_like(x);
  for (int k = 0; k < 10; ++k) {
    sum = add(sum, reciprocal(mul(x, x)));
    x = add(x, 1);
  }
  const Tensor r = reciprocal(x), r2 = mul(r, r);
  // 1/x + 1/(2x^2) + 1/(6x^3) - 1/(30x^5) + 1/(42x^7) - 1/(30x^9)
  const Tensor series =
      mul(r2, sub(1.0 / 6, mul(r2, sub(1.0 / 30, mul(r2, sub(1.0 / 42, mul(r2, 1.0 / 30)))))));
  sum = add(sum, mul(r, add(add(1, mul(r, 0.5)), series)));
  const Tensor s = sin(mul(input, kPi));
  return where(reflects, sub(div(kPi * kPi, mul(s, s)), sum), sum);
}

void define_special_composites(OpTable& t) {
  t.define(polygamma,
           {.doc = "The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x) for n > 1.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](int64_t n, Tensor self) {
                  FL_CHECK(n >= 0, RuntimeError, "polygamma(n, x) does not support negative n, got {}", n);
                  const Tensor x = as_float(self);
                  if (n > 1) return mul(special_zeta(n + 1, x), (n % 2 ? 1 : -1) * std::tgamma(n + 1.0));
                  return n == 0 ? digamma(x) : in_compute_dtype(x, trigamma);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{0, m.make({3, 4}, o.low, o.high)}, "digamma", ""},
                                             {{1, m.make({3, 4}, o.low, o.high)}, "trigamma", ""},
                                             {{1, m.make({}, -1.7, -1.3)}, "negative", ""},
                                             {{4, m.make({3, 4}, o.low, o.high)}, "fourth", ""},
                                             {{-1, m.make({2})}, "order", "RuntimeError: negative n"}};
                },
                {.low = 0.3, .high = 5})});
  t.define(logaddexp2, {.doc = "log2(2^self + 2^other) without overflow on the way.",
                        .decompose =
                            [](Tensor self, Tensor other) {
                              const double ln2 = std::numbers::ln2;
                              const auto scaled = [ln2](const Tensor& x) -> schema::Operand {
                                if (const auto n = number_of(x)) return Scalar(n->to_double() * ln2);
                                return mul(x, ln2);
                              };
                              return div(logaddexp(scaled(self), scaled(other)), ln2);
                            },
                        .samples = samples::binary({.dtypes = dtypes::full_floats})});
}

}  // namespace

void define_arithmetic(OpTable& t) {
  define_quotients(t);
  define_power(t);
  define_complex_parts(t);
  define_scaled(t);
  define_special_composites(t);
}

}  // namespace fl
