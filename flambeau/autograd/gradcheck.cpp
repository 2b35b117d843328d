#include "flambeau/autograd/gradcheck.h"

#include <cmath>

#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/autograd/meta.h"

namespace fl {
namespace {

/// Address of the element with row-major number n.
double* element(const Tensor& t, int64_t n) {
  int64_t at = 0;
  for (int d = t.dim(); d-- > 0;) {
    const int64_t size = t.sizes()[d].expect_int();
    at += n % size * t.strides()[d].expect_int();
    n /= size;
  }
  return t.data_as<double>() + at;
}

int64_t count(const Tensor& t) { return t.numel().expect_int(); }

bool is_checked(const Tensor& t) { return t.defined() && t.requires_grad(); }

void check_inputs(const Tensors& inputs) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_checked(inputs[i])) continue;
    any = true;
    FL_CHECK(!is_complex(inputs[i].dtype()), NotImplementedError,
             "gradcheck: input {} is complex; only real inputs can be checked", i);
    FL_CHECK(inputs[i].dtype() == DType::Float64, ValueError,
             "gradcheck: input {} is {}, but finite differences need float64", i, name(inputs[i].dtype()));
  }
  FL_CHECK(any, ValueError,
           "gradcheck expects at least one input tensor to require gradient, but none of them have "
           "requires_grad=True.");
}

/// The outputs that have a gradient.
Tensors differentiable_outputs(const DifferentiableFn& f, const Tensors& inputs) {
  Tensors r;
  for (const Tensor& t : f(inputs)) {
    if (!t.defined() || !is_differentiable(t.dtype())) continue;
    FL_CHECK(!is_complex(t.dtype()), NotImplementedError, "gradcheck: complex outputs can't be checked");
    r.push_back(t);
  }
  return r;
}

/// Each output's elements, with nothing recorded.
std::vector<std::vector<double>> values(const DifferentiableFn& f, const Tensors& inputs) {
  NoGradGuard no_grad;
  std::vector<std::vector<double>> r;
  for (const Tensor& t : differentiable_outputs(f, inputs)) r.push_back(t.to_vector<double>());
  return r;
}

/// [input element][output][output element]
using Jacobian = std::vector<std::vector<std::vector<double>>>;

Jacobian numerical(const DifferentiableFn& f, const Tensors& inputs, const Tensor& by, double step) {
  Jacobian rows;
  for (int64_t n = 0; n < count(by); ++n) {
    double* x = element(by, n);
    const double at = *x;
    *x = at + step;
    auto high = values(f, inputs);
    *x = at - step;
    const auto low = values(f, inputs);
    *x = at;
    for (size_t o = 0; o < high.size(); ++o)
      for (size_t k = 0; k < high[o].size(); ++k) high[o][k] = (high[o][k] - low[o][k]) / (2 * step);
    rows.push_back(std::move(high));
  }
  return rows;
}

std::string describe_error(size_t input, int64_t n, size_t output, int64_t k, double expected, double got) {
  return fmt::format(
      "Jacobian mismatch for output {} with respect to input {}: the derivative of element {} by element {} "
      "is "
      "{:.9g} by finite differences, but backward gives {:.9g}",
      output, input, k, n, expected, got);
}

class Check {
 public:
  Check(const DifferentiableFn& f, const Tensors& inputs, const GradcheckOptions& options)
      : f_(f), inputs_(inputs), options_(options), outputs_(differentiable_outputs(f, inputs)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_checked(inputs[i])) continue;
      numbers_.push_back(i);
      checked_.push_back(inputs[i]);
      jacobians_.push_back(numerical(f, inputs, inputs[i], options.step));
    }
  }

  void run() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (!outputs_[o].requires_grad()) {
        expect_constant(o);
        continue;
      }
      for (int64_t k = 0; k < count(outputs_[o]); ++k) check_element(o, k);
    }
    if (options_.undefined_grads && outputs_.size() > 1) check_undefined();
  }

 private:
  void expect(bool equal, size_t i, int64_t n, size_t o, int64_t k, double expected, double got) const {
    FL_CHECK(equal, RuntimeError, "{}", describe_error(numbers_[i], n, o, k, expected, got));
  }
  bool close(double expected, double got) const {
    if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
    return std::abs(expected - got) <= options_.absolute + options_.relative * std::abs(expected);
  }
  void expect_constant(size_t o) const {
    for (size_t i = 0; i < checked_.size(); ++i)
      for (int64_t n = 0; n < count(checked_[i]); ++n)
        for (int64_t k = 0; k < count(outputs_[o]); ++k)
          expect(close(jacobians_[i][n][o][k], 0), i, n, o, k, jacobians_[i][n][o][k], 0);
  }
  /// One row of every Jacobian: the gradient of element k of output o.
  void check_element(size_t o, int64_t k) const {
    std::vector<double> unit(count(outputs_[o]));
    unit[k] = 1;
    Tensor g = empty_tensor(outputs_[o].sizes(), DType::Float64);
    for (int64_t n = 0; n < count(g); ++n) *element(g, n) = unit[n];
    BackwardOptions keep;
    keep.retain_graph = true;
    const Tensors grads = fl::grad({outputs_[o]}, checked_, {g}, keep, true);
    for (size_t i = 0; i < checked_.size(); ++i) {
      const std::vector<double> got =
          grads[i].defined() ? grads[i].to_vector<double>() : std::vector<double>(count(checked_[i]));
      FL_CHECK(!grads[i].defined() || gradient_ops::same_sizes(grads[i].sizes(), checked_[i].sizes()),
               RuntimeError, "the gradient by input {} has sizes {}, but the input has {}", numbers_[i],
               to_string(grads[i].sizes()), to_string(checked_[i].sizes()));
      for (int64_t n = 0; n < count(checked_[i]); ++n)
        expect(close(jacobians_[i][n][o][k], got[n]), i, n, o, k, jacobians_[i][n][o][k], got[n]);
    }
  }
  /// Each output alone must give what it gives beside outputs with a gradient of zero.
  void check_undefined() const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (!outputs_[o].requires_grad()) continue;
      Tensors outputs, grads;
      for (size_t p = 0; p < outputs_.size(); ++p) {
        if (!outputs_[p].requires_grad()) continue;
        outputs.push_back(outputs_[p]);
        grads.push_back(gradient_ops::filled(outputs_[p].spec(), p == o ? 1.0 : 0.0));
      }
      BackwardOptions keep;
      keep.retain_graph = true;
      const Tensors with_zeros = fl::grad(outputs, checked_, grads, keep, true);
      const Tensors alone =
          fl::grad({outputs_[o]}, checked_, {gradient_ops::filled(outputs_[o].spec(), 1.0)}, keep, true);
      for (size_t i = 0; i < checked_.size(); ++i) {
        const auto zero = std::vector<double>(count(checked_[i]));
        const auto a = with_zeros[i].defined() ? with_zeros[i].to_vector<double>() : zero;
        const auto b = alone[i].defined() ? alone[i].to_vector<double>() : zero;
        for (size_t n = 0; n < a.size(); ++n)
          FL_CHECK(close(a[n], b[n]), RuntimeError,
                   "gradient {} of output {} is {} beside gradients of zero, but {} beside undefined ones",
                   numbers_[i], o, a[n], b[n]);
      }
    }
  }

  const DifferentiableFn& f_;
  const Tensors& inputs_;
  const GradcheckOptions& options_;
  Tensors outputs_, checked_;
  std::vector<size_t> numbers_;  ///< of checked_ among the inputs
  std::vector<Jacobian> jacobians_;
};

}  // namespace

void gradcheck(const DifferentiableFn& f, const Tensors& inputs, const GradcheckOptions& options) {
  check_inputs(inputs);
  EnableGradGuard grad;
  Check(f, inputs, options).run();
}

void gradgradcheck(const DifferentiableFn& f, const Tensors& inputs, const GradcheckOptions& options) {
  check_inputs(inputs);
  EnableGradGuard grad;
  Tensors all = inputs;
  const size_t input_count = inputs.size();
  double value = 0.5;
  for (const Tensor& t : differentiable_outputs(f, inputs)) {
    if (!t.requires_grad()) continue;
    Tensor g = empty_tensor(t.sizes(), DType::Float64);
    // Numbers without a pattern that a wrong formula could hide behind.
    for (int64_t n = 0; n < count(g); ++n) *element(g, n) = value = std::fmod(value * 1.7 + 0.37, 2.0) - 0.9;
    all.push_back(g.set_requires_grad(true));
  }
  auto gradient = [&](const Tensors& in) {
    EnableGradGuard grad_on;
    const Tensors arguments(in.begin(), in.begin() + static_cast<int64_t>(input_count));
    Tensors outputs, checked;
    for (const Tensor& t : differentiable_outputs(f, arguments))
      if (t.requires_grad()) outputs.push_back(t);
    for (const Tensor& t : arguments)
      if (is_checked(t)) checked.push_back(t);
    BackwardOptions create;
    create.create_graph = true;
    return fl::grad(outputs, checked, Tensors(in.begin() + static_cast<int64_t>(input_count), in.end()),
                    create, true);
  };
  gradcheck(gradient, all, options);
}

}  // namespace fl
