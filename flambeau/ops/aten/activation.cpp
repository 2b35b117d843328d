#include "flambeau/ops/aten/activation.h"

#include <numbers>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
// sqrt(2 / pi), of the tanh form of gelu.
constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kTanhCubic = 0.044715;

Samples on_floats(double low = -3, double high = 3) {
  return samples::unary({.dtypes = dtypes::floats, .low = low, .high = high});
}

/// f(g, x) in float32 for half-precision x, rounded once.
template <class F>
Tensor slope_in_compute_dtype(const Tensor& g, const Tensor& x, F f) {
  return to_dtype(f(to_compute(g), to_compute(x)), g.dtype());
}

Tensor gelu_erf(const Tensor& x) { return mul(mul(x, 0.5), add(erf(mul(x, kSqrtHalf)), 1)); }
Tensor gelu_tanh(const Tensor& x) {
  const Tensor inner = mul(add(x, mul(mul(mul(x, x), x), kTanhCubic)), kTanhScale);
  return mul(mul(x, 0.5), add(tanh(inner), 1));
}
Tensor gelu_erf_gradient(const Tensor& g, const Tensor& x) {
  const Tensor cumulative = mul(add(erf(mul(x, kSqrtHalf)), 1), 0.5);
  const Tensor density = mul(exp(mul(mul(x, x), -0.5)), kTanhScale / 2);
  return mul(g, add(cumulative, mul(x, density)));
}
Tensor gelu_tanh_gradient(const Tensor& g, const Tensor& x) {
  const Tensor x2 = mul(x, x);
  const Tensor th = tanh(mul(add(x, mul(mul(x2, x), kTanhCubic)), kTanhScale));
  const Tensor inner_slope = mul(add(mul(x2, 3 * kTanhCubic), 1), kTanhScale);
  const Tensor right = mul(mul(mul(x, 0.5), sub(1, mul(th, th))), inner_slope);
  return mul(g, add(mul(add(th, 1), 0.5), right));
}

bool is_tanh_form(std::string_view approximate) {
  FL_CHECK(approximate == "none" || approximate == "tanh", RuntimeError,
           "approximate argument must be either none or tanh, got '{}'", approximate);
  return approximate == "tanh";
}

void define_gelu(OpTable& t) {
  t.define(gelu,
           {.doc = "x times the normal distribution function of x; approximate=\"tanh\" is the form by tanh.",
            .tags = Tag::Fused,
            .infer = rule::floating(),
            .decompose =
                [](Tensor self, std::string_view approximate) {
                  return in_compute_dtype(self, is_tanh_form(approximate) ? gelu_tanh : gelu_erf);
                },
            .saves = saves::in({0}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const bool form = is_tanh_form(c.arg(1).str());
                  return slope_in_compute_dtype(g, c.in(0), form ? gelu_tanh_gradient : gelu_erf_gradient);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  std::vector<Sample> out = samples::with_arguments(m, o, {{}, {Value("tanh")}});
                  out.push_back({{m.make({2}), Value("erf")}, "form", "RuntimeError: either none or tanh"});
                  return out;
                },
                {.dtypes = dtypes::floats})});
}

void define_sigmoids(OpTable& t) {
  t.define(silu, {.doc = "x * sigmoid(x).",
                  .tags = Tag::Fused,
                  .infer = rule::floating(),
                  .decompose =
                      [](Tensor self) {
                        return in_compute_dtype(self,
                                                [](const Tensor& x) { return div(x, add(exp(neg(x)), 1)); });
                      },
                  .saves = saves::in({0}),
                  .grad =
                      [](GradCtx& c, const Tensor& g) {
                        return slope_in_compute_dtype(g, c.in(0), [](const Tensor& d, const Tensor& x) {
                          const Tensor s = sigmoid(x);
                          return mul(d, mul(s, add(mul(x, sub(1, s)), 1)));
                        });
                      },
                  .samples = on_floats()});
  t.define(mish, {.doc = "x * tanh(softplus(x)).",
                  .tags = Tag::Fused,
                  .infer = rule::floating(),
                  .decompose =
                      [](Tensor self) {
                        return in_compute_dtype(self,
                                                [](const Tensor& x) { return mul(x, tanh(softplus(x))); });
                      },
                  .saves = saves::in({0}),
                  .grad =
                      [](GradCtx& c, const Tensor& g) {
                        return slope_in_compute_dtype(g, c.in(0), [](const Tensor& d, const Tensor& x) {
                          const Tensor th = tanh(softplus(x));
                          const Tensor slope = mul(mul(x, sigmoid(x)), sub(1, mul(th, th)));
                          return mul(d, add(th, slope));
                        });
                      },
                  .samples = on_floats()});
  t.define(softplus, {.doc = "log(1 + e^(beta x)) / beta; x where beta x is above threshold.",
                      .tags = Tag::Fused,
                      .infer = rule::floating(),
                      .decompose =
                          [](Tensor self, Scalar beta, Scalar threshold) {
                            return in_compute_dtype(self, [&](const Tensor& x) {
                              const Tensor scaled = mul(x, beta);
                              return where(gt(scaled, threshold), x, div(log1p(exp(scaled)), beta));
                            });
                          },
                      .saves = saves::in({0}),
                      .grad =
                          [](GradCtx& c, const Tensor& g) {
                            const Scalar beta = c.arg(1).scalar(), threshold = c.arg(2).scalar();
                            return slope_in_compute_dtype(g, c.in(0), [&](const Tensor& d, const Tensor& x) {
                              const Tensor scaled = mul(x, beta);
                              return where(gt(scaled, threshold), d, mul(d, sigmoid(scaled)));
                            });
                          },
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples& o) {
                            return samples::with_arguments(m, o, {{}, {Value(2), Value(1)}});
                          },
                          {.dtypes = dtypes::floats})});
  t.define(log_sigmoid,
           {.doc = "log(sigmoid(x)), without underflow.",
            .tags = Tag::Fused,
            .infer = rule::floating(),
            .decompose =
                [](Tensor self) {
                  return in_compute_dtype(
                      self, [](const Tensor& x) { return sub(clamp_max(x, 0), log1p(exp(neg(abs(x))))); });
                },
            .saves = saves::in({0}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return slope_in_compute_dtype(
                      g, c.in(0), [](const Tensor& d, const Tensor& x) { return mul(d, sigmoid(neg(x))); });
                },
            .samples = on_floats()});
}

Tensor exponential_unit(const Tensor& self, const Scalar& alpha, const Scalar& scale,
                        const Scalar& input_scale) {
  const double negative = alpha.to_double() * scale.to_double();
  return in_compute_dtype(self, [&](const Tensor& x) {
    return where(gt(x, 0), mul(x, scale), mul(expm1(mul(x, input_scale)), negative));
  });
}

void define_exponential_units(OpTable& t) {
  t.define(elu,
           {.doc = "scale * x above 0, alpha * scale * (e^(input_scale x) - 1) below.",
            .tags = Tag::Fused,
            .infer = rule::floating(),
            .decompose = [](Tensor self, Scalar alpha, Scalar scale,
                            Scalar input_scale) { return exponential_unit(self, alpha, scale, input_scale); },
            .saves = saves::in({0}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const double alpha = c.arg(1).to_double(), scale = c.arg(2).to_double(),
                               in = c.arg(3).to_double();
                  return slope_in_compute_dtype(g, c.in(0), [&](const Tensor& d, const Tensor& x) {
                    return where(gt(x, 0), mul(d, scale), mul(d, mul(exp(mul(x, in)), in * alpha * scale)));
                  });
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return samples::with_arguments(m, o, {{}, {Value(0.5), Value(2), Value(1.5)}});
                },
                {.dtypes = dtypes::floats})});
  t.define(selu, {.doc = "elu with the constants that keep mean and variance.",
                  .decompose =
                      [](Tensor self) {
                        return elu(self, 1.6732632423543772848170429916717,
                                   1.0507009873554804934193349852946);
                      },
                  .samples = on_floats()});
  t.define(celu, {.doc = "elu whose slope is continuous at 0.",
                  .decompose =
                      [](Tensor self, Scalar alpha) {
                        FL_CHECK(alpha.to_double() != 0, RuntimeError,
                                 "ZeroDivisionError: alpha cannot be 0 for CELU");
                        return elu(self, alpha, 1.0, 1 / alpha.to_double());
                      },
                  .samples = on_floats()});
}

}  // namespace

void define_activation(OpTable& t) {
  define_gelu(t);
  define_sigmoids(t);
  define_exponential_units(t);
}

}  // namespace fl
