// Filling parameters with numbers, as torch.nn.init does. All work in place and without a gradient, and draw
// from the default generator.
#pragma once
#include "flambeau/tensor/tensor.h"

namespace fl::nn::init {

enum class FanMode { In, Out };
enum class Nonlinearity { Linear, Sigmoid, Tanh, Relu, LeakyRelu, Selu };

struct Fans {
  int64_t in = 0, out = 0;
};
/// Of a weight (out, in, kernel...). Raises ValueError under two dimensions.
Fans fans(const Tensor& weight);
/// The factor by which the nonlinearity's variance is made up for; `slope` is that of LeakyRelu.
double gain(Nonlinearity nonlinearity, double slope = 0.01);

void uniform_(const Tensor& t, double low = 0, double high = 1);
void normal_(const Tensor& t, double mean = 0, double std = 1);
/// Normal numbers drawn again until they lie in [low, high] (by the inverse distribution function).
void trunc_normal_(const Tensor& t, double mean = 0, double std = 1, double low = -2, double high = 2);
void constant_(const Tensor& t, double value);
void zeros_(const Tensor& t);
void ones_(const Tensor& t);
/// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
void xavier_uniform_(const Tensor& t, double gain = 1);
void xavier_normal_(const Tensor& t, double gain = 1);
/// He et al., "Delving deep into rectifiers", 2015. `a` is the slope of LeakyRelu.
void kaiming_uniform_(const Tensor& t, double a = 0, FanMode mode = FanMode::In,
                      Nonlinearity nonlinearity = Nonlinearity::LeakyRelu);
void kaiming_normal_(const Tensor& t, double a = 0, FanMode mode = FanMode::In,
                     Nonlinearity nonlinearity = Nonlinearity::LeakyRelu);

}  // namespace fl::nn::init
