#include "flambeau/ops/prims/complex_functions.h"

#include <limits>
#include <numbers>

namespace fl::complex_functions {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The parts of a complex value.
struct Parts {
  Val re, im;
  Parts(Val r, Val i) : re(r), im(i) {}
  Parts(ScalarOps& s, Val z) : re(s.real(z)), im(s.imag(z)) {}
  Val join(ScalarOps& s) const { return s.complex(re, im); }
};

/// f on a complex64 value runs on complex128 and is rounded once.
template <class F>
Val in_float64(ScalarOps& s, Val z, F f) {
  const DType dtype = z.dtype;
  return s.cast(f(Parts(s, s.cast(z, DType::Complex128))).join(s), dtype);
}

Val half(ScalarOps& s, Val x) { return s.mul(x, s.like(x, 0.5)); }
Val square(ScalarOps& s, Val x) { return s.mul(x, x); }
Val is_zero(ScalarOps& s, Val x) { return s.eq(x, s.like(x, 0.0)); }
/// i z and -i z.
Parts turned(ScalarOps& s, Parts z) { return {s.neg(z.im), z.re}; }
Parts turned_back(ScalarOps& s, Parts z) { return {z.im, s.neg(z.re)}; }

/// e^x (cos y + i sin y), with e^x in two factors so that it overflows only where the result does, and
/// without 0 * inf where y is 0 or e^x is.
Parts exp_of(ScalarOps& s, Parts z) {
  const Val root = s.exp(half(s, z.re)), scale = s.mul(root, root), zero = s.like(z.re, 0.0);
  const auto scaled = [&](Val factor) {
    return s.select(is_zero(s, scale), s.mul(zero, s.select(s.is_nan(factor), zero, factor)),
                    s.mul(s.mul(root, factor), root));
  };
  const Val flat = is_zero(s, z.im);
  return {s.select(flat, scale, scaled(s.cos(z.im))), s.select(flat, z.im, scaled(s.sin(z.im)))};
}

/// log |z|, which near |z| = 1 comes from |z|^2 - 1.
Val log_of_modulus(ScalarOps& s, Parts z) {
  const Val a = s.abs(z.re), b = s.abs(z.im), one = s.like(a, 1.0);
  const Val high = s.maximum(a, b), low = s.minimum(a, b);
  const Val plain = s.log(s.hypot(z.re, z.im));
  const Val beyond = s.fma(s.sub(high, one), s.add(high, one), square(s, low));
  const Val near = s.bit_and(s.lt(s.like(a, 0.5), high), s.lt(s.hypot(z.re, z.im), s.like(a, 2.0)));
  return s.select(near, half(s, s.log1p(beyond)), plain);
}
Parts log_of(ScalarOps& s, Parts z) { return {log_of_modulus(s, z), s.atan2(z.im, z.re)}; }

/// The root with a real part that is not negative (W. Kahan, "Branch cuts for complex elementary functions",
/// 1987, whose formulas the inverse functions below are, too).
Parts sqrt_of(ScalarOps& s, Parts z) {
  const Val zero = s.like(z.re, 0.0), size = s.abs(z.re);
  const Val t = s.sqrt(s.add(half(s, size), half(s, s.hypot(z.re, z.im))));
  const Val other = half(s, s.div(s.abs(z.im), t));
  const Val right = s.le(zero, z.re);
  const Val re = s.select(right, t, other), im = s.copysign(s.select(right, other, t), z.im);
  const Val none = s.bit_and(is_zero(s, z.re), is_zero(s, z.im));
  const Val infinite = s.eq(s.abs(z.im), s.like(z.im, kInfinity));
  return {s.select(none, zero, s.select(infinite, s.abs(z.im), re)),
          s.select(s.bit_or(none, infinite), z.im, im)};
}

Parts sinh_of(ScalarOps& s, Parts z) {
  const Val flat = is_zero(s, z.im);
  return {s.select(flat, s.sinh(z.re), s.mul(s.sinh(z.re), s.cos(z.im))),
          s.select(flat, z.im, s.mul(s.cosh(z.re), s.sin(z.im)))};
}
Parts cosh_of(ScalarOps& s, Parts z) {
  const Val flat = s.bit_or(is_zero(s, z.im), is_zero(s, z.re));
  const Val zero = s.mul(s.copysign(s.like(z.re, 0.0), z.re), s.copysign(s.like(z.re, 1.0), z.im));
  return {s.select(is_zero(s, z.im), s.cosh(z.re), s.mul(s.cosh(z.re), s.cos(z.im))),
          s.select(flat, zero, s.mul(s.sinh(z.re), s.sin(z.im)))};
}
Parts tanh_of(ScalarOps& s, Parts z) {
  const Val one = s.like(z.re, 1.0), t = s.tan(z.im), b = s.add(one, square(s, t));
  const Val h = s.sinh(z.re), r = s.sqrt(s.add(one, square(s, h))), d = s.add(one, s.mul(b, square(s, h)));
  const Val size = s.abs(z.re), far = s.lt(s.like(size, 20.0), size);
  const Val tail = s.mul(s.mul(s.sin(z.im), s.cos(z.im)),
                         s.mul(s.like(size, 4.0), s.exp(s.mul(size, s.like(size, -2.0)))));
  return {s.select(far, s.copysign(one, z.re), s.div(s.mul(s.mul(b, r), h), d)),
          s.select(is_zero(s, z.im), z.im, s.select(far, tail, s.div(t, d)))};
}

Parts plus_one(ScalarOps& s, Parts z) { return {s.add(s.like(z.re, 1.0), z.re), z.im}; }
Parts one_minus(ScalarOps& s, Parts z) { return {s.sub(s.like(z.re, 1.0), z.re), s.neg(z.im)}; }
/// Re(a b) and Im(conj(a) b).
Val real_of_product(ScalarOps& s, Parts a, Parts b) { return s.sub(s.mul(a.re, b.re), s.mul(a.im, b.im)); }
Val imag_of_turned(ScalarOps& s, Parts a, Parts b) { return s.sub(s.mul(a.re, b.im), s.mul(a.im, b.re)); }

Parts asin_of(ScalarOps& s, Parts z) {
  const Parts below = sqrt_of(s, one_minus(s, z)), above = sqrt_of(s, plus_one(s, z));
  return {s.atan2(z.re, real_of_product(s, below, above)), s.asinh(imag_of_turned(s, below, above))};
}
Parts acos_of(ScalarOps& s, Parts z) {
  const Parts below = sqrt_of(s, one_minus(s, z)), above = sqrt_of(s, plus_one(s, z));
  return {s.mul(s.like(z.re, 2.0), s.atan2(below.re, above.re)), s.asinh(imag_of_turned(s, above, below))};
}
Parts acosh_of(ScalarOps& s, Parts z) {
  const Parts below = sqrt_of(s, {s.sub(z.re, s.like(z.re, 1.0)), z.im}), above = sqrt_of(s, plus_one(s, z));
  const Val along = s.add(s.mul(below.re, above.re), s.mul(below.im, above.im));
  return {s.asinh(along), s.mul(s.like(z.re, 2.0), s.atan2(below.im, above.re))};
}
/// The real part of the half plane where it is positive, with its sign: no cancellation near -1.
Parts atanh_of(ScalarOps& s, Parts z) {
  const Val one = s.like(z.re, 1.0), size = s.abs(z.re), gap = s.sub(one, size), y2 = square(s, z.im);
  const Val ratio = s.div(s.mul(s.like(size, 4.0), size), s.add(square(s, gap), y2));
  const Val turn = s.atan2(s.add(z.im, z.im), s.sub(s.mul(gap, s.add(one, size)), y2));
  return {s.copysign(s.mul(s.like(size, 0.25), s.log1p(ratio)), z.re), half(s, turn)};
}

Val scaled(ScalarOps& s, Parts z, double factor) {
  const Val f = s.like(z.re, factor);
  return Parts(s.mul(z.re, f), s.mul(z.im, f)).join(s);
}
Val log_by(ScalarOps& s, Val z, double factor) {
  return in_float64(s, z, [&](Parts p) { return Parts(s, scaled(s, log_of(s, p), factor)); });
}

}  // namespace

Val exp(ScalarOps& s, Val z) { return exp_of(s, Parts(s, z)).join(s); }
Val exp2(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return exp_of(s, Parts(s, scaled(s, p, std::numbers::ln2))); });
}
Val expm1(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) {
    const Val sine = s.sin(half(s, p.im)), less = s.mul(s.like(p.re, 2.0), square(s, sine));
    const Val re = s.sub(s.mul(s.expm1(p.re), s.cos(p.im)), less);
    return Parts(re, s.mul(s.exp(p.re), s.sin(p.im)));
  });
}
Val log(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return log_of(s, p); });
}
Val log2(ScalarOps& s, Val z) { return log_by(s, z, std::numbers::log2e); }
Val log10(ScalarOps& s, Val z) { return log_by(s, z, std::numbers::log10e); }
Val log1p(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) {
    const Val beyond = s.fma(p.re, s.add(p.re, s.like(p.re, 2.0)), square(s, p.im));
    const Parts plain = log_of(s, plus_one(s, p));
    const Val near = s.lt(s.hypot(p.re, p.im), s.like(p.re, 0.5));
    return Parts(s.select(near, half(s, s.log1p(beyond)), plain.re), plain.im);
  });
}
Val sqrt(ScalarOps& s, Val z) { return sqrt_of(s, Parts(s, z)).join(s); }
Val rsqrt(ScalarOps& s, Val z) { return s.div(s.like(z, 1), sqrt(s, z)); }
// sin z = -i sinh(i z), cos z = cosh(i z).
Val sin(ScalarOps& s, Val z) { return turned_back(s, sinh_of(s, turned(s, Parts(s, z)))).join(s); }
Val cos(ScalarOps& s, Val z) { return cosh_of(s, turned(s, Parts(s, z))).join(s); }
Val tan(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return turned_back(s, tanh_of(s, turned(s, p))); });
}
Val sinh(ScalarOps& s, Val z) { return sinh_of(s, Parts(s, z)).join(s); }
Val cosh(ScalarOps& s, Val z) { return cosh_of(s, Parts(s, z)).join(s); }
Val tanh(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return tanh_of(s, p); });
}
Val asin(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return asin_of(s, p); });
}
Val acos(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return acos_of(s, p); });
}
Val acosh(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return acosh_of(s, p); });
}
Val atanh(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return atanh_of(s, p); });
}
// asinh z = -i asin(i z), atan z = -i atanh(i z).
Val asinh(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return turned_back(s, asin_of(s, turned(s, p))); });
}
Val atan(ScalarOps& s, Val z) {
  return in_float64(s, z, [&](Parts p) { return turned_back(s, atanh_of(s, turned(s, p))); });
}
Val sigmoid(ScalarOps& s, Val z) {
  const Val wide = s.cast(z, DType::Complex128), one = s.like(wide, 1);
  return s.cast(s.div(one, s.add(one, exp(s, s.neg(wide)))), z.dtype);
}

Val pow(ScalarOps& s, Val a, Val b) {
  const DType dtype = a.dtype;
  const Val wide = s.cast(b, DType::Complex128), zero = s.like(wide, 0), one = s.like(wide, 1);
  const Val base = s.cast(a, DType::Complex128);
  const Val power = exp_of(s, Parts(s, s.mul(wide, log_of(s, Parts(s, base)).join(s)))).join(s);
  const Val vanishes = s.bit_and(s.eq(base, zero), s.lt(s.like(s.real(wide), 0.0), s.real(wide)));
  return s.cast(s.select(s.eq(wide, zero), one, s.select(vanishes, zero, power)), dtype);
}

}  // namespace fl::complex_functions
