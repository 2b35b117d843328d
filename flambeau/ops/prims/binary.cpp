#include "flambeau/ops/prims/binary.h"

#include <numbers>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/complex_functions.h"
#include "flambeau/ops/prims/division.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

bool whole(Val x) { return is_integral(x.dtype, true); }

/// The parts of a gradient that are wanted: each is made only then.
template <class A, class B>
Tensors wanted(GradCtx& c, A first, B second) {
  return {c.needs(0) ? first() : Tensor(), c.needs(1) ? second() : Tensor()};
}

Tensors add_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c, [&] { return g; }, [&] { return mul(g, conj_if_complex_number(c.arg(2).scalar())); });
}
Tensors sub_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c, [&] { return g; }, [&] { return neg(mul(g, conj_if_complex_number(c.arg(2).scalar()))); });
}
Tensors mul_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c, [&] { return mul(g, conj_operand(c, 1)); }, [&] { return mul(g, conj_operand(c, 0)); });
}
Tensors div_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c, [&] { return div(g, conj_operand(c, 1)); },
      [&] {
        const Tensor quotient = div(div(operand(c, 0), operand(c, 1)), operand(c, 1));
        return neg(mul(g, conj_if_complex(quotient)));
      });
}
Tensors no_slope(GradCtx&, const Tensor& g) { return {zeros_like(g), zeros_like(g)}; }

void define_sums(OpTable& t) {
  const Samples numbers = samples::binary({.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes});
  t.define(add, {.doc = "self + alpha * other; of bool the logical or.",
                 .tags = Tag::Elementwise,
                 .infer = rule::arithmetic(),
                 .scalar = [](ScalarOps& s, Val a, Val b, Val alpha) { return s.add(a, s.mul(alpha, b)); },
                 .grad = add_gradient,
                 .samples = samples::binary({.dtypes = dtypes::all})});
  t.define(sub, {.doc = "self - alpha * other. Raises NotImplementedError on bool.",
                 .tags = Tag::Elementwise,
                 .infer = rule::subtraction(),
                 .scalar = [](ScalarOps& s, Val a, Val b, Val alpha) { return s.sub(a, s.mul(alpha, b)); },
                 .grad = sub_gradient,
                 .samples = numbers});
  t.define(mul, {.doc = "self * other; of bool the logical and.",
                 .tags = Tag::Elementwise,
                 .infer = rule::elementwise(),
                 .scalar = [](ScalarOps& s, Val a, Val b) { return s.mul(a, b); },
                 .saves = saves::in({0, 1}),
                 .grad = mul_gradient,
                 .samples = samples::binary({.dtypes = dtypes::all})});
}

/// The quotient of integers rounded down.
Val floor_quotient(ScalarOps& s, Val a, Val b) {
  const Val zero = s.like(a, 0), one = s.like(a, 1);
  const Val q = s.div(a, b), r = s.rem(a, b);
  if (!info(a.dtype).is_signed) return q;
  const Val down = s.bit_and(s.ne(r, zero), s.ne(s.lt(r, zero), s.lt(b, zero)));
  return s.sub(q, s.select(down, one, zero));
}

/// Python's a // b for floats: exact where the quotient of the rounded division is not.
Val floor_division(ScalarOps& s, Val a, Val b) {
  if (whole(a)) return floor_quotient(s, a, b);
  const Val zero = s.like(a, 0), one = s.like(a, 1);
  const Val r = s.rem(a, b);
  Val q = s.div(s.sub(a, r), b);
  const Val down = s.bit_and(s.ne(r, zero), s.ne(s.lt(r, zero), s.lt(b, zero)));
  q = s.sub(q, s.select(down, one, zero));
  Val whole_q = s.floor(q);
  whole_q = s.add(whole_q, s.select(s.lt(s.like(a, 0.5), s.sub(q, whole_q)), one, zero));
  const Val signed_zero = s.copysign(zero, s.div(a, b));
  return s.select(s.eq(b, zero), s.div(a, b), s.select(s.ne(q, zero), whole_q, signed_zero));
}

/// a - b * floor(a / b): the sign of the divisor.
Val floor_remainder(ScalarOps& s, Val a, Val b) {
  const Val zero = s.like(a, 0);
  const Val r = s.rem(a, b);
  if (!info(a.dtype).is_signed) return r;
  const Val other_sign = s.bit_and(s.ne(r, zero), s.ne(s.lt(r, zero), s.lt(b, zero)));
  return s.select(other_sign, s.add(r, b), r);
}

InferResult division_rule(const InferCtx& c, int p) {
  InferResult r = rule::real(static_cast<Promote>(p)).function(c, p);
  const Value& divisor = c.arg(1);
  FL_CHECK(!(is_integral(r[0].dtype, true) && divisor.is_number() && divisor.scalar() == Scalar(0)),
           RuntimeError, "ZeroDivisionError: an integer tensor divided by 0");
  return r;
}

void define_division(OpTable& t) {
  const Samples away_from_zero =
      samples::binary({.dtypes = dtypes::integers | dtypes::floats, .low = 1, .high = 7});
  const Samples steps =
      samples::binary({.dtypes = dtypes::integers | dtypes::floats, .low = 1, .high = 7, .gradient = false});
  const Infer division(division_rule, static_cast<int>(Promote::Default));
  t.define(div, {.doc = "self / other in floating point; integers become the default dtype.",
                 .tags = Tag::Elementwise,
                 .infer = rule::elementwise(Promote::IntToFloat),
                 .scalar = [](ScalarOps& s, Val a, Val b) { return s.div(a, b); },
                 .saves = saves::in({0, 1}),
                 .grad = div_gradient,
                 .samples = samples::binary({.dtypes = dtypes::all, .low = 0.5, .high = 4})});
  t.define(
      _div_trunc,
      {.doc = "The quotient without its fraction; integers stay integers, x / 0 of them is 0.",
       .tags = Tag::Elementwise,
       .infer = division,
       .scalar = [](ScalarOps& s, Val a, Val b) { return whole(a) ? s.div(a, b) : s.trunc(s.div(a, b)); },
       .grad = no_slope,
       .samples = steps});
  t.define(_div_floor, {.doc = "The quotient rounded down; integers stay integers, x / 0 of them is 0.",
                        .tags = Tag::Elementwise,
                        .infer = division,
                        .scalar = floor_division,
                        .grad = no_slope,
                        .samples = steps});
  t.define(_remainder, {.doc = "`remainder` where x % 0 of integers is x.",
                        .tags = Tag::Elementwise,
                        .infer = division,
                        .scalar = floor_remainder,
                        .saves = saves::in({0, 1}),
                        .grad =
                            [](GradCtx& c, const Tensor& g) {
                              return wanted(
                                  c, [&] { return g; },
                                  [&] { return neg(mul(g, _div_floor(operand(c, 0), operand(c, 1)))); });
                            },
                        .samples = away_from_zero});
  t.define(_fmod, {.doc = "`fmod` where x % 0 of integers is 0.",
                   .tags = Tag::Elementwise,
                   .infer = division,
                   .scalar = [](ScalarOps& s, Val a, Val b) { return s.rem(a, b); },
                   .saves = saves::in({0, 1}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         return wanted(
                             c, [&] { return g; },
                             [&] { return neg(mul(g, _div_trunc(operand(c, 0), operand(c, 1)))); });
                       },
                   .samples = away_from_zero});
}

}  // namespace

void check_divisor(const Tensor& self, const Tensor& other) {
  const bool whole = is_integral(self.dtype(), true) && is_integral(other.dtype(), true);
  if (!whole || other.impl()->wrapped_number || !is_readable(other)) return;
  FL_CHECK(!any_all(eq(other, 0)).item().to_bool(), RuntimeError,
           "ZeroDivisionError: an integer tensor divided by 0");
}

namespace {

void define_checked_division(OpTable& t) {
  const auto make = [](SampleMaker& m, const Samples& o) {
    const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
    std::vector<Sample> out{{{x({3, 5}), x({5})}, "", ""},
                            {{x({3, 5}), 2}, "number", ""},
                            {{7, x({4})}, "number first", ""},
                            {{m.make_transposed({4, 6}, o.low, o.high), x({4, 6})}, "transposed", ""}};
    if (is_integral(m.dtype()))
      out.push_back({{x({3}), m.make({3}, 0, 0)}, "by 0", "RuntimeError: ZeroDivisionError"});
    return out;
  };
  const Samples whole_and_floats =
      samples::custom(make, {.dtypes = dtypes::integers | dtypes::floats, .low = 1, .high = 7});
  Samples steps = whole_and_floats;
  steps.gradient = false;
  t.define(floor_divide, {.doc = "The quotient rounded down. Raises RuntimeError on integers divided by 0.",
                          .decompose =
                              [](Tensor self, Tensor other) {
                                check_divisor(self, other);
                                return _div_floor(unwrapped(self), unwrapped(other));
                              },
                          .samples = steps});
  t.define(remainder,
           {.doc = "self - other * floor(self / other): has the sign of other, as Python's %. Raises "
                   "RuntimeError on integers divided by 0.",
            .decompose =
                [](Tensor self, Tensor other) {
                  check_divisor(self, other);
                  return _remainder(unwrapped(self), unwrapped(other));
                },
            .samples = whole_and_floats});
  t.define(fmod,
           {.doc = "self - other * trunc(self / other), exact: has the sign of self, as C's fmod. Raises "
                   "RuntimeError on integers divided by 0.",
            .decompose =
                [](Tensor self, Tensor other) {
                  check_divisor(self, other);
                  return _fmod(unwrapped(self), unwrapped(other));
                },
            .samples = whole_and_floats});
}

/// Numbers are also checked in pow: eager calls of a kind share one shape rule's answer, whatever their
/// numbers.
InferResult power_rule(const InferCtx& c, int p) {
  InferResult r = rule::elementwise_result(c, static_cast<Promote>(p));
  check_dtype("pow", r[0].dtype, Takes::Number);
  const Value& exponent = c.arg(1);
  FL_CHECK(!(is_integral(r[0].dtype) && exponent.is_number() && exponent.scalar().to_int() < 0), RuntimeError,
           "Integers to negative integer powers are not allowed.");
  return r;
}

/// x^y: y x^(y-1), 0 where y is 0; and x^y log x, 0 where x is 0 and y is not negative.
Tensors power_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c,
      [&] {
        const Tensor y = tensor_operand(c, 1, g.dtype());
        const Tensor slope = mul(_pow(operand(c, 0), sub(y, 1)), y);
        return mul(g, where(eq(y, 0), 0.0, conj_if_complex(slope)));
      },
      [&] {
        Tensor x = tensor_operand(c, 0, g.dtype());
        if (is_complex(g.dtype())) x = to_dtype(x, complex_dtype(x.dtype()));
        const Tensor slope = mul(c.out(0), log(x)), y = tensor_operand(c, 1, g.dtype());
        const Tensor flat = logical_and(eq(x, 0), ge(is_complex(y.dtype()) ? real(y) : y, 0));
        return mul(g, where(flat, 0.0, conj_if_complex(slope)));
      });
}

Val log_add_exp(ScalarOps& s, Val a, Val b) {
  const Val high = s.maximum(a, b);
  const Val sum = s.add(high, s.log1p(s.exp(s.neg(s.abs(s.sub(a, b))))));
  return s.select(s.eq(a, b), s.add(high, s.like(a, std::numbers::ln2)), sum);
}

void define_powers_of_two(OpTable& t) {
  t.define(
      _pow,
      {.doc = "self ^ other as C's pow; of integers by repeated squaring, with wrapping.",
       .tags = Tag::Elementwise,
       .infer = Infer(power_rule, static_cast<int>(Promote::Default)),
       .scalar = [](ScalarOps& s, Val a,
                    Val b) { return is_complex(a.dtype) ? complex_functions::pow(s, a, b) : s.pow(a, b); },
       .saves = saves::in({0, 1}) | saves::out({0}),
       .grad = power_gradient,
       .samples = samples::binary(
           {.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes, .low = 0.5, .high = 3})});
  t.define(atan2, {.doc = "The angle of the point (other, self), in [-pi, pi].",
                   .tags = Tag::Elementwise,
                   .infer = rule::real(Promote::IntToFloat),
                   .scalar = [](ScalarOps& s, Val y, Val x) { return s.atan2(y, x); },
                   .saves = saves::in({0, 1}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         const Tensor y = tensor_operand(c, 0, g.dtype()),
                                      x = tensor_operand(c, 1, g.dtype());
                         const Tensor scaled = div(g, add(square(y), square(x)));
                         return wanted(
                             c, [&] { return mul(scaled, x); }, [&] { return neg(mul(scaled, y)); });
                       },
                   .samples = samples::binary({.dtypes = dtypes::real, .low = 0.5, .high = 3})});
  t.define(hypot, {.doc = "sqrt(self^2 + other^2) without overflow on the way.",
                   .tags = Tag::Elementwise,
                   .infer = rule::real(),
                   .scalar = [](ScalarOps& s, Val a, Val b) { return s.hypot(a, b); },
                   .saves = saves::in({0, 1}) | saves::out({0}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         return wanted(
                             c, [&] { return mul(g, div(operand(c, 0), c.out(0))); },
                             [&] { return mul(g, div(operand(c, 1), c.out(0))); });
                       },
                   .samples = samples::binary({.dtypes = dtypes::floats, .low = 0.5, .high = 3})});
  t.define(logaddexp, {.doc = "log(e^self + e^other) without overflow on the way.",
                       .tags = Tag::Elementwise,
                       .infer = rule::real(),
                       .scalar = log_add_exp,
                       .saves = saves::in({0, 1}),
                       .grad =
                           [](GradCtx& c, const Tensor& g) {
                             return wanted(
                                 c, [&] { return mul(g, sigmoid(sub(operand(c, 0), operand(c, 1)))); },
                                 [&] { return mul(g, sigmoid(sub(operand(c, 1), operand(c, 0)))); });
                           },
                       .samples = samples::binary({.dtypes = dtypes::floats})});
}

Val x_log_y(ScalarOps& s, Val x, Val y) {
  const Val zero = s.like(x, 0);
  return s.select(s.is_nan(y), y, s.select(s.eq(x, zero), zero, s.mul(x, s.log(y))));
}

Tensors x_log_y_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c,
      [&] {
        const Tensor x = tensor_operand(c, 0, g.dtype()), y = tensor_operand(c, 1, g.dtype());
        return masked_fill(mul(g, log(y)), logical_and(eq(x, 0), le(y, 0)), 0);
      },
      [&] { return div(mul(g, operand(c, 0)), operand(c, 1)); });
}

Val x_log1p_y(ScalarOps& s, Val x, Val y) {
  const Val zero = s.like(x, 0);
  return s.select(s.is_nan(y), y, s.select(s.eq(x, zero), zero, s.mul(x, s.log1p(y))));
}

Tensors x_log1p_y_gradient(GradCtx& c, const Tensor& g) {
  return wanted(
      c,
      [&] {
        const Tensor x = tensor_operand(c, 0, g.dtype()), y = tensor_operand(c, 1, g.dtype());
        return masked_fill(mul(g, log1p(y)), logical_and(eq(x, 0), le(y, -1)), 0);
      },
      [&] { return div(mul(g, operand(c, 0)), add(tensor_operand(c, 1, g.dtype()), 1)); });
}

InferResult heaviside_rule(const InferCtx& c, int p) {
  const bool both = c.is_tensor(0) && c.is_tensor(1) && c.spec(0).dim() > 0 && c.spec(1).dim() > 0;
  FL_CHECK(!both || c.spec(0).dtype == c.spec(1).dtype, RuntimeError,
           "heaviside is not yet implemented for tensors with different dtypes: got {} and {}",
           name(c.spec(0).dtype), name(c.spec(1).dtype));
  return rule::real().function(c, p);
}

void define_sign_and_steps(OpTable& t) {
  t.define(xlog1py, {.doc = "self * log1p(other); 0 where self is 0, nan where other is.",
                     .tags = Tag::Elementwise,
                     .infer = rule::real(Promote::IntToFloat),
                     .scalar = x_log1p_y,
                     .saves = saves::in({0, 1}),
                     .grad = x_log1p_y_gradient,
                     .samples = samples::binary({.dtypes = dtypes::real, .low = 0.5, .high = 3})});
  t.define(xlogy, {.doc = "self * log(other); 0 where self is 0, nan where other is.",
                   .tags = Tag::Elementwise,
                   .infer = rule::real(Promote::IntToFloat),
                   .scalar = x_log_y,
                   .saves = saves::in({0, 1}),
                   .grad = x_log_y_gradient,
                   .samples = samples::binary({.dtypes = dtypes::real, .low = 0.5, .high = 3})});
  t.define(copysign, {.doc = "The magnitude of self with the sign of other.",
                      .tags = Tag::Elementwise,
                      .infer = rule::real(Promote::IntToFloat),
                      .scalar = [](ScalarOps& s, Val a, Val b) { return s.copysign(a, b); },
                      .saves = saves::in({0}) | saves::out({0}),
                      .grad =
                          [](GradCtx& c, const Tensor& g) {
                            return wanted(
                                c, [&] { return mul(g, mul(sgn(c.in(0)), sgn(c.out(0)))); },
                                [&] { return zeros_like(g); });
                          },
                      .samples = samples::binary({.dtypes = dtypes::real, .low = 0.5, .high = 3})});
  t.define(nextafter,
           {.doc = "The next floating-point number after self towards other.",
            .tags = Tag::Elementwise,
            .infer = rule::real(),
            .scalar = [](ScalarOps& s, Val a, Val b) { return s.nextafter(a, b); },
            .saves = saves::in({0, 1}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return wanted(
                      c, [&] { return where(ne(operand(c, 0), operand(c, 1)), g, 0); },
                      [&] { return zeros_like(g); });
                },
            .samples = samples::binary({.dtypes = dtypes::full_floats, .tolerance = 0, .gradient = false})});
  t.define(heaviside,
           {.doc = "0 where self is negative, 1 where it is positive, values where it is 0.",
            .tags = Tag::Elementwise | Tag::NonDifferentiable,
            .infer = Infer(heaviside_rule, static_cast<int>(Promote::Default)),
            .scalar =
                [](ScalarOps& s, Val x, Val values) {
                  const Val zero = s.like(x, 0);
                  return s.select(s.eq(x, zero), values, s.cast(s.lt(zero, x), x.dtype));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  const DType other = m.dtype() == DType::Int32 ? DType::Int64 : DType::Int32;
                  return std::vector<Sample>{
                      {{x({3, 5}), x({3, 5})}, "", ""},
                      {{x({3, 1}), x({5})}, "broadcast", ""},
                      {{m.make_transposed({3, 5}, o.low, o.high), Value(1)}, "number", ""},
                      {{x({0}), x({0})}, "size 0", ""},
                      {{x({2}), m.make({2}, other, 0, 2)}, "dtypes", "RuntimeError: different dtypes"}};
                },
                {.dtypes = dtypes::real})});
}

}  // namespace

void define_binary(OpTable& t) {
  define_sums(t);
  define_division(t);
  define_checked_division(t);
  define_powers_of_two(t);
  define_sign_and_steps(t);
}

}  // namespace fl
