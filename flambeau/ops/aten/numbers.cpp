#include "flambeau/ops/aten/numbers.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/division.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// Steps of Euclid's algorithm on numbers of a dtype, at most: consecutive Fibonacci numbers take the most.
int euclid_steps(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return 13;
    case 2:
      return 24;
    case 4:
      return 46;
    default:
      return 92;
  }
}

/// Of numbers that are not negative.
Tensor common_divisor(Tensor a, Tensor b) {
  for (int k = euclid_steps(a.dtype()); k > 0; --k) {
    const Tensor rest = _fmod(a, b), done = eq(b, 0);
    a = where(done, a, b);
    b = where(done, b, rest);
  }
  return a;
}

InferResult whole_rule(const InferCtx& c, int) {
  InferResult r = rule::integral().function(c, static_cast<int>(Promote::Default));
  check_dtype(c.op().schema.name, r[0].dtype, Takes::Integer);
  return r;
}

/// The larger and the smaller magnitude, in the promoted dtype and the layout of the result.
std::pair<Tensor, Tensor> magnitudes(const Tensor& self, const Tensor& other) {
  const auto group = [](const Tensor& x, bool zero_dim) -> std::optional<DType> {
    return (x.dim() == 0) == zero_dim && !x.impl()->wrapped_number ? std::optional(x.dtype()) : std::nullopt;
  };
  const auto both = [&](bool zero_dim) -> std::optional<DType> {
    const auto a = group(self, zero_dim), b = group(other, zero_dim);
    return a && b ? std::optional(promote(*a, *b)) : a ? a : b;
  };
  std::optional<DType> number;
  for (const Tensor& x : {self, other})
    if (x.impl()->wrapped_number) number = number ? promote(*number, x.dtype()) : x.dtype();
  const DType dtype = result_type(both(false), both(true), number);
  const Tensor a = abs(to_dtype(self, dtype)), b = abs(to_dtype(other, dtype));
  return {maximum(a, b), minimum(a, b)};
}

void define_divisors(OpTable& t) {
  const Samples whole = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
        const bool narrow = size_of(m.dtype()) < 4;
        return std::vector<Sample>{
            {{x({3, 5}), x({5})}, "", ""},
            {{m.make_transposed({2, 3, 4}, o.low, o.high), x({2, 3, 4})}, "transposed", ""},
            {{x({3}), m.make({3}, narrow ? DType::Int32 : DType::Int16, 0, 9)}, "dtypes", ""},
            {{x({}), x({4})}, "0-dim", ""},
            {{x({0, 2}), x({2})}, "size 0", ""},
            {{x({3}), m.make({3}, DType::Float32, 0, 9)}, "floats", "NotImplementedError: not implemented"}};
      },
      {.dtypes = dtypes::integers, .low = -60, .high = 60});
  t.define(gcd, {.doc = "The greatest common divisor, not negative; of 0 and 0 it is 0. Integers only.",
                 .tags = Tag::Fused | Tag::NonDifferentiable,
                 .infer = whole_rule,
                 .decompose =
                     [](Tensor self, Tensor other) {
                       const auto [a, b] = magnitudes(self, other);
                       return common_divisor(a, b);
                     },
                 .samples = whole});
  t.define(lcm, {.doc = "The least common multiple, not negative; 0 if either is. Integers only.",
                 .tags = Tag::Fused | Tag::NonDifferentiable,
                 .infer = whole_rule,
                 .decompose =
                     [](Tensor self, Tensor other) {
                       const auto [a, b] = magnitudes(self, other);
                       const Tensor g = common_divisor(a, b);
                       const Tensor product = mul(_div_trunc(a, where(eq(g, 0), 1, g)), b);
                       // As C's abs of an int: shorter products wrap after it.
                       return size_of(a.dtype()) < 4 ? product : abs(product);
                     },
                 .samples = whole});
}

/// The bits of a float, as an integer of its size.
struct FloatBits {
  DType whole;
  int fraction;  ///< bits of the fraction
  int64_t mask;  ///< of the exponent, after the shift
};
FloatBits bits_of(DType d) {
  return d == DType::Float64 ? FloatBits{DType::Int64, 52, 0x7FF} : FloatBits{DType::Int32, 23, 0xFF};
}

/// 2^n, made from its bits; n within the range of exponents.
Tensor power_of_two(const Tensor& n, DType dtype) {
  const FloatBits b = bits_of(dtype);
  return view_dtype(bitwise_left_shift(to_dtype(add(n, b.mask / 2), b.whole), b.fraction), dtype);
}

/// x = mantissa 2^exponent with a mantissa in [0.5, 1); subnormal numbers are scaled up first.
std::tuple<Tensor, Tensor> taken_apart(Tensor self) {
  FL_CHECK(is_floating(self.dtype()), RuntimeError,
           "torch.frexp() only supports floating-point dtypes, got {}", name(self.dtype()));
  const Tensor x = to_compute(self);
  const FloatBits b = bits_of(x.dtype());
  constexpr int kScale = 64;
  const Tensor value = detach(x), small = lt(abs(value), b.whole == DType::Int64 ? 0x1p-1000 : 0x1p-100);
  const Tensor scaled = clone(where(small, mul(value, 0x1p64), value), MemoryFormat::Contiguous);
  const Tensor field = bitwise_and(bitwise_right_shift(view_dtype(scaled, b.whole), b.fraction), b.mask);
  const Tensor plain = sub(sub(field, b.mask / 2 - 1), where(small, kScale, 0));
  const Tensor has_none = logical_or(eq(value, 0), logical_not(isfinite(value)));
  const Tensor exponent = to_dtype(where(has_none, 0, plain), DType::Int32);
  const Tensor half = _div_trunc(neg(exponent), 2);
  const Tensor mantissa =
      mul(mul(x, power_of_two(half, x.dtype())), power_of_two(sub(neg(exponent), half), x.dtype()));
  return {to_dtype(mantissa, self.dtype()), exponent};
}

void define_exponents(OpTable& t) {
  t.define(ldexp, {.doc = "self * 2^other.",
                   .decompose =
                       [](Tensor self, Tensor other) {
                         if (const auto n = number_of(other)) return mul(self, std::exp2(n->to_double()));
                         return mul(self, pow(2.0, other));
                       },
                   .samples = samples::binary({.dtypes = dtypes::integers | dtypes::full_floats})});
  t.define(frexp, {.doc = "The mantissa, in [0.5, 1) without its sign, and the exponent of 2 (int32) of each "
                          "number; 0, inf and nan stay, with exponent 0.",
                   .tags = Tag::NoInPlace,
                   .decompose = taken_apart,
                   .samples = samples::unary({.dtypes = dtypes::floats, .low = 0.6, .high = 0.9})});
}

Tensor in_double(const Tensor& x, bool with_complex) {
  return to_dtype(x, with_complex ? DType::Complex128 : DType::Float64);
}

void define_float_power(OpTable& t) {
  t.define(float_power,
           {.doc = "self ^ exponent in float64, or complex128.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, Tensor exponent) {
                  const bool any_complex = is_complex(self.dtype()) || is_complex(exponent.dtype());
                  if (const auto number = number_of(exponent)) {
                    const Scalar y = number->is_complex() ? *number : Scalar(number->to_double());
                    return pow(in_double(self, any_complex), y);
                  }
                  if (const auto number = number_of(self)) {
                    const Scalar x = number->is_complex() ? *number : Scalar(number->to_double());
                    return pow(x, in_double(exponent, any_complex));
                  }
                  return pow(in_double(self, any_complex), in_double(exponent, any_complex));
                },
            .samples =
                samples::binary({.dtypes = dtypes::integers | dtypes::full_floats, .low = 0.5, .high = 3})});
}

}  // namespace

void define_numbers(OpTable& t) {
  define_divisors(t);
  define_exponents(t);
  define_float_power(t);
}

}  // namespace fl
