// Bounds, questions about elements, and conversions.
#include <limits>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether an unsigned dtype can't hold the bound.
bool is_below(const std::optional<Scalar>& bound, DType dtype) {
  return bound && dtype == DType::UInt8 && bound->is_integral() && bound->sym_int() < SymInt(0);
}

void check_max(const Scalar& max, DType dtype) {
  FL_CHECK(!is_below(max, dtype), RuntimeError, "Clamp max value {} is outside the representable range of {}",
           max.str(), name(dtype));
}

/// The dtype of self and the bounds together.
InferResult clamp_rule(const InferCtx& c, int) {
  FL_CHECK(c.has(1) || c.has(2), RuntimeError,
           "torch.clamp: At least one of 'min' or 'max' must not be None");
  check_dtype("clamp", c.spec(0).dtype, Takes::Real);
  if (c.has(2)) check_max(c.arg(2).scalar(), c.spec(0).dtype);
  InferResult r = rule::same_as_input().function(c, 0);
  for (const int bound : {1, 2}) {
    if (!c.has(bound)) continue;
    const Scalar s = c.arg(bound).scalar();
    if (s.category() > category(r[0].dtype)) r[0].dtype = promote(r[0].dtype, s.default_dtype());
  }
  return r;
}

std::vector<Sample> clamp_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = samples::with_arguments(m, o, {{Value(-1), Value(2)}});
  const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
  out.push_back({{x(), 0}, "min", ""});
  out.push_back({{x(), Value(), 1}, "max", ""});
  out.push_back({{x(), 2, 1}, "min above max", ""});
  if (m.dtype() == DType::UInt8)
    out.push_back({{x(), 0, -1}, "negative max", "RuntimeError: outside the representable range"});
  out.push_back({{x(), -0.5, 0.5}, "floats", ""});
  out.push_back({{x()}, "no bound", "RuntimeError: At least one of"});
  return out;
}

void define_clamp(OpTable& t) {
  t.define(clamp, {.doc = "min(max(self, min), max); a bound may be missing. nan stays.",
                   .tags = Tag::Fused,
                   .infer = clamp_rule,
                   .decompose =
                       [](Tensor self, std::optional<Scalar> min, std::optional<Scalar> max) {
                         FL_CHECK(min || max, RuntimeError,
                                  "torch.clamp: At least one of 'min' or 'max' must not be None");
                         if (max) check_max(*max, self.dtype());
                         Tensor x = self;
                         if (min && !is_below(min, self.dtype())) x = clamp_min(x, *min);
                         return max ? clamp_max(x, *max) : min && is_below(min, self.dtype()) ? clone(x) : x;
                       },
                   .saves = saves::in({0}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         const Tensor x = c.in(0);
                         Tensor out = g;
                         if (!c.arg(1).is_none()) out = where(ge(x, c.arg(1).scalar()), out, 0);
                         if (!c.arg(2).is_none()) out = where(le(x, c.arg(2).scalar()), out, 0);
                         return out;
                       },
                   .samples = samples::custom(clamp_samples, {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(clamp_tensor,
           {.doc = "min(max(self, min), max) with tensors as bounds; one may be missing.",
            .decompose =
                [](Tensor self, Tensor min, Tensor max) {
                  FL_CHECK(min || max, RuntimeError,
                           "torch.clamp: At least one of 'min' or 'max' must not be None");
                  const Tensor x = min ? clamp_min(self, min) : self;
                  return max ? clamp_max(x, max) : x;
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({3, 4}), x({4}), x({3, 1})}, "", ""},
                      {{x({3, 4}), x({})}, "min", ""},
                      {{x({3, 4}), Value(), x({3, 4})}, "max", ""},
                      {{x({3}), Value(), Value()}, "no bound", "RuntimeError: At least one of"}};
                },
                {.dtypes = dtypes::integers | dtypes::floats})});
}

/// The largest finite number of a floating dtype.
double largest(DType d) {
  switch (d) {
    case DType::Float16:
      return 65504.0;
    case DType::BFloat16:
      return 3.3895313892515355e38;
    case DType::Float64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

void define_finite(OpTable& t) {
  t.define(
      nan_to_num,
      {.doc = "nan replaced by `nan` (0), infinities by `posinf` and `neginf` (the largest finite numbers).",
       .tags = Tag::Fused,
       .infer = rule::real(),
       .decompose =
           [](Tensor self, std::optional<double> nan, std::optional<double> posinf,
              std::optional<double> neginf) {
             if (!is_floating(self.dtype())) return clone(self);
             const double top = largest(self.dtype());
             Tensor x = where(isnan(self), nan.value_or(0), self);
             x = where(eq(x, kInfinity), posinf.value_or(top), x);
             return where(eq(x, -kInfinity), neginf.value_or(-top), x);
           },
       .saves = saves::in({0}),
       .grad = [](GradCtx& c, const Tensor& g) { return where(isfinite(c.in(0)), g, 0); },
       .samples = samples::unary({.dtypes = dtypes::real})});
  const Samples real = samples::unary({.dtypes = dtypes::real, .gradient = false});
  t.define(isposinf, {.doc = "Whether an element is +inf.",
                      .decompose = [](Tensor self) { return logical_and(isinf(self), gt(self, 0)); },
                      .samples = real});
  t.define(isneginf, {.doc = "Whether an element is -inf.",
                      .decompose = [](Tensor self) { return logical_and(isinf(self), lt(self, 0)); },
                      .samples = real});
  t.define(isreal, {.doc = "Whether the imaginary part of an element is 0.",
                    .decompose =
                        [](Tensor self) {
                          if (is_complex(self.dtype())) return eq(imag(self), 0);
                          return full_like(self, true, DType::Bool);
                        },
                    .samples = samples::unary({.dtypes = dtypes::all, .gradient = false})});
}

Tensor close_to(Tensor self, Tensor other, double rtol, double atol, bool equal_nan) {
  FL_CHECK(self.dtype() == other.dtype(), RuntimeError, "{} did not match {}", name(self.dtype()),
           name(other.dtype()));
  FL_CHECK(rtol >= 0 && atol >= 0, RuntimeError,
           "rtol and atol must be greater than or equal to zero, got {} and {}", rtol, atol);
  Tensor close = eq(self, other);
  if (equal_nan && !is_integral(self.dtype(), true))
    close = logical_or(close, logical_and(isnan(self), isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const bool whole = is_integral(self.dtype(), true);
  const Tensor a = whole ? to_dtype(self, DType::Float64) : self,
               b = whole ? to_dtype(other, DType::Float64) : other;
  const Tensor allowed = add(abs(mul(b, rtol)), atol), actual = abs(sub(a, b));
  return logical_or(close, logical_and(isfinite(actual), le(actual, allowed)));
}

void define_isclose(OpTable& t) {
  t.define(
      isclose,
      {.doc = "|self - other| <= atol + rtol |other|; equal infinities are close, nan to nan if equal_nan.",
       .tags = Tag::NoInPlace,
       .decompose = close_to,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             const Tensor same = x();
             return std::vector<Sample>{
                 {{x(), x(), 0.1, 0.5}, "", ""},
                 {{same, same}, "same", ""},
                 {{x(), x(), 0.0, 0.0, true}, "no tolerance", ""},
                 {{x(), x(), -1.0}, "negative", "RuntimeError: greater than or equal to zero"}};
           },
           {.dtypes = dtypes::all, .gradient = false})});
}

void define_conversions(OpTable& t) {
  constexpr Tag kView = Tag::NoInPlace | Tag::NoOut;
  t.define(zero, {.doc = "0 in every place.",
                  .decompose = [](Tensor self) { return full_like(self, 0); },
                  .samples = samples::unary({.dtypes = dtypes::all, .gradient = false})});
  t.define(to, {.doc = "self in another dtype; self itself where nothing changes and no copy is asked for.",
                .tags = kView,
                .decompose =
                    [](Tensor self, DType dtype, bool non_blocking, bool copy,
                       std::optional<MemoryFormat> format) {
                      const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
                      const bool right = f == MemoryFormat::Preserve || self.is_contiguous(f);
                      if (self.dtype() == dtype && !copy && right) return self;
                      return _to_copy(self, dtype, std::nullopt, std::nullopt, non_blocking, f);
                    },
                .samples = samples::custom(
                    [](SampleMaker& m, const Samples& o) {
                      return samples::with_arguments(m, o,
                                                     {{Value(m.dtype())},
                                                      {Value(DType::Float64)},
                                                      {Value(m.dtype()), Value(false), Value(true)}});
                    },
                    {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(
      type_as,
      {.doc = "self in the dtype of other.",
       .tags = kView,
       .decompose = [](Tensor self, Tensor other) { return to_dtype(self, other.dtype()); },
       .samples = samples::custom([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{{{m.make({3}, o.low, o.high), m.make({}, DType::Float64, 0, 1)}, "", ""}};
       })});
  t.define(contiguous,
           {.doc = "self where its layout is that of the memory format, else a copy with that layout.",
            .tags = kView,
            .decompose =
                [](Tensor self, MemoryFormat format) {
                  FL_CHECK(format != MemoryFormat::Preserve, RuntimeError,
                           "preserve memory format is unsupported by the contiguous operator");
                  return self.is_contiguous(format) ? self : clone(self, format);
                },
            .samples = samples::unary({.dtypes = dtypes::all})});
}

}  // namespace

void define_predicates(OpTable& t) {
  define_clamp(t);
  define_finite(t);
  define_isclose(t);
  define_conversions(t);
}

}  // namespace fl
