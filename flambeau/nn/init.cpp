#include "flambeau/nn/init.h"

#include <cmath>

#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"

namespace fl::nn::init {

Fans fans(const Tensor& weight) {
  FL_CHECK(weight.dim() >= 2, ValueError,
           "fan in and fan out need a tensor of 2 or more dimensions, got sizes {}",
           to_string(weight.sizes()));
  int64_t receptive_field = 1;
  for (int d = 2; d < weight.dim(); ++d) receptive_field *= weight.size(d).expect_int();
  return {weight.size(1).expect_int() * receptive_field, weight.size(0).expect_int() * receptive_field};
}

double gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::Linear:
    case Nonlinearity::Sigmoid:
      return 1;
    case Nonlinearity::Tanh:
      return 5.0 / 3;
    case Nonlinearity::Relu:
      return std::sqrt(2.0);
    case Nonlinearity::LeakyRelu:
      return std::sqrt(2.0 / (1 + slope * slope));
    case Nonlinearity::Selu:
      return 0.75;
  }
  __builtin_unreachable();
}

void uniform_(const Tensor& t, double low, double high) {
  NoGradGuard no_grad;
  uniform.in_place(t, low, high);
}

void normal_(const Tensor& t, double mean, double std) {
  NoGradGuard no_grad;
  normal.in_place(t, mean, std);
}

void trunc_normal_(const Tensor& t, double mean, double std, double low, double high) {
  FL_CHECK(low < high && std > 0, ValueError, "expected low < high and std > 0, got low {}, high {}, std {}",
           low, high, std);
  NoGradGuard no_grad;
  const auto distribution = [&](double x) { return 0.5 * (1 + std::erf((x - mean) / std / std::sqrt(2.0))); };
  uniform.in_place(t, 2 * distribution(low) - 1, 2 * distribution(high) - 1);
  const Tensor values = add(mul(erfinv(t), std * std::sqrt(2.0)), mean);
  copy.in_place(t, clamp(values, Scalar(low), Scalar(high)));
}

void constant_(const Tensor& t, double value) {
  NoGradGuard no_grad;
  fill.in_place(t, value);
}
void zeros_(const Tensor& t) { constant_(t, 0); }
void ones_(const Tensor& t) { constant_(t, 1); }

void xavier_uniform_(const Tensor& t, double gain) {
  const Fans f = fans(t);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(f.in + f.out));
  uniform_(t, -bound, bound);
}

void xavier_normal_(const Tensor& t, double gain) {
  const Fans f = fans(t);
  normal_(t, 0, gain * std::sqrt(2.0 / static_cast<double>(f.in + f.out)));
}

/// The standard deviation that keeps the variance from layer to layer.
static double kaiming_std(const Tensor& t, double a, FanMode mode, Nonlinearity nonlinearity) {
  const Fans f = fans(t);
  return gain(nonlinearity, a) / std::sqrt(static_cast<double>(mode == FanMode::In ? f.in : f.out));
}

void kaiming_uniform_(const Tensor& t, double a, FanMode mode, Nonlinearity nonlinearity) {
  if (t.numel() == 0) return;
  const double bound = std::sqrt(3.0) * kaiming_std(t, a, mode, nonlinearity);
  uniform_(t, -bound, bound);
}

void kaiming_normal_(const Tensor& t, double a, FanMode mode, Nonlinearity nonlinearity) {
  if (t.numel() == 0) return;
  normal_(t, 0, kaiming_std(t, a, mode, nonlinearity));
}

}  // namespace fl::nn::init
