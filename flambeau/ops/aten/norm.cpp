#include "flambeau/ops/aten/norm.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/reduced_dims.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// Sums over dimensions divided by their count, kept as dimensions of size 1.
Tensor mean_over(const Tensor& x, const Sizes& dims, SymInt count) { return div(sum(x, dims, true), count); }

SymInt count_over(const TensorSpec& s, const Sizes& dims) {
  SymInt n = 1;
  for (const SymInt d : dims) n *= s.sizes[d.expect_int()];
  return n;
}

Sizes wrapped(IntList dims, int rank) {
  return ReducedDims::of(Value(dims), rank, true, false).list_as_sizes();
}

struct Standard {
  Tensor value, mean, var;
};
Standard standardized(const Tensor& x, const Sizes& dims, double eps) {
  const SymInt count = count_over(x.spec(), dims);
  const Tensor mean = mean_over(x, dims, count);
  const Tensor centered = sub(x, mean);
  const Tensor var = mean_over(square(centered), dims, count);
  return {mul(centered, rsqrt(add(var, eps))), mean, var};
}

/// With y the standardized value: (g - mean(g) - y mean(g y)) / deviation. Gradients by the mean and the
/// variance add 1/n and 2 (x - mean)/n.
Tensor standardize_gradient(GradCtx& c, const Tensor&) {
  const Sizes dims = wrapped(c.arg(1).ints(), c.in_spec(0).dim());
  const SymInt count = count_over(c.in_spec(0), dims);
  const Tensor centered = sub(to_compute(c.in(0)), c.out(1));
  Tensor out;
  const auto add_part = [&](const Tensor& part) { out = out.defined() ? add(out, part) : part; };
  if (c.grad_defined(0)) {
    const Tensor g = c.grad(0), scale = rsqrt(add(c.out(2), c.arg(2).to_double())), y = mul(centered, scale);
    const Tensor along = mean_over(mul(g, y), dims, count);
    add_part(mul(sub(sub(g, mean_over(g, dims, count)), mul(y, along)), scale));
  }
  if (c.grad_defined(1)) add_part(expand(div(c.grad(1), count), c.in_spec(0).sizes));
  if (c.grad_defined(2)) add_part(mul(centered, div(mul(c.grad(2), 2), count)));
  return out.defined() ? to_dtype(out, c.in_spec(0).dtype) : out;
}

void define_standardize(OpTable& t) {
  t.define(
      _standardize,
      {.doc = "(self - mean) / sqrt(variance + eps) over dimensions, with the mean and the biased variance; "
              "in float32 for half precision.",
       .tags = Tag::Fused | Tag::NoInPlace | Tag::NoOut,
       .decompose =
           [](Tensor self, IntList dims, double eps) {
             const Standard s = standardized(to_compute(self), wrapped(dims, self.dim()), eps);
             return std::tuple(s.value, s.mean, s.var);
           },
       .saves = saves::in({0}) | saves::out({1, 2}),
       .grad = standardize_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({3, 4}, o.low, o.high), Sizes{1}, 1e-5}, "", ""},
                 {{m.make_transposed({2, 3, 4}, o.low, o.high), Sizes{0, 2}, 1e-3}, "two", ""}};
           },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

/// The last dimensions, which have the given sizes.
Sizes normalized_dims(const TensorSpec& input, IntList shape, const char* op) {
  const int first = input.dim() - static_cast<int>(shape.size());
  bool equal = first >= 0 && !shape.empty();
  for (size_t k = 0; equal && k < shape.size(); ++k) equal = input.sizes[first + k] == shape[k];
  FL_CHECK(
      equal, RuntimeError,
      "{}: Given normalized_shape={}, expected input with that shape in its last dimensions, but got input "
      "of size {}",
      op, to_string(shape), to_string(input.sizes));
  Sizes out;
  for (int d = first; d < input.dim(); ++d) out.push_back(d);
  return out;
}
void check_parameter(const Tensor& p, IntList shape, const char* op, const char* which) {
  if (!p.defined()) return;
  bool equal = p.sizes().size() == shape.size();
  for (size_t k = 0; equal && k < shape.size(); ++k) equal = p.sizes()[k] == shape[k];
  FL_CHECK(equal, RuntimeError,
           "{}: Expected {} to be of same shape as normalized_shape, but got {} of shape {} and "
           "normalized_shape = {}",
           op, which, which, to_string(p.sizes()), to_string(shape));
}

/// x * weight + bias, each if given.
Tensor affine(Tensor x, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) x = mul(x, to_compute(weight));
  return bias.defined() ? add(x, to_compute(bias)) : x;
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_of(Tensor input, IntList shape, Tensor weight, Tensor bias,
                                                 double eps) {
  const Sizes dims = normalized_dims(input.spec(), shape, "layer_norm");
  check_parameter(weight, shape, "layer_norm", "weight");
  check_parameter(bias, shape, "layer_norm", "bias");
  const Tensor x = to_compute(contiguous(input));
  const SymInt count = count_over(x.spec(), dims);
  const Tensor mean = mean_over(x, dims, count), centered = sub(x, mean);
  const Tensor rstd = rsqrt(add(mean_over(square(centered), dims, count), eps));
  return {to_dtype(affine(mul(centered, rstd), weight, bias), input.dtype()), mean, rstd};
}

/// Sums over all dimensions but the last ones of a parameter.
Tensor over_rows(const Tensor& x, int parameter_rank) {
  Sizes rows;
  for (int d = 0; d < x.dim() - parameter_rank; ++d) rows.push_back(d);
  return rows.empty() ? x : sum(x, rows);
}

/// rstd (gw - mean(gw) - y mean(gw y)) with y = (x - mean) rstd and gw = g weight.
Tensors layer_norm_gradient(GradCtx& c, const Tensor&) {
  const TensorSpec& in = c.in_spec(0);
  const int rank = static_cast<int>(c.arg(1).ints().size());
  const Sizes dims = normalized_dims(in, c.arg(1).ints(), "layer_norm");
  const SymInt count = count_over(in, dims);
  const Tensor mean = c.out(1), rstd = c.out(2), centered = sub(to_compute(c.in(0)), mean);
  const Tensor y = mul(centered, rstd);
  Tensors out(3);
  if (c.grad_defined(0)) {
    const Tensor g = to_compute(c.grad(0));
    if (c.needs(0)) {
      const Tensor gw = c.is_tensor(2) ? mul(g, to_compute(c.in(2))) : g;
      const Tensor along = mean_over(mul(gw, y), dims, count);
      out[0] = mul(sub(sub(gw, mean_over(gw, dims, count)), mul(y, along)), rstd);
    }
    if (c.needs(2)) out[1] = to_dtype(over_rows(mul(g, y), rank), c.in_spec(2).dtype);
    if (c.needs(3)) out[2] = to_dtype(over_rows(g, rank), c.in_spec(3).dtype);
  }
  const auto add_part = [&](const Tensor& part) { out[0] = out[0].defined() ? add(out[0], part) : part; };
  if (c.needs(0) && c.grad_defined(1)) add_part(expand(div(c.grad(1), count), in.sizes));
  if (c.needs(0) && c.grad_defined(2)) add_part(neg(mul(mul(y, square(rstd)), div(c.grad(2), count))));
  if (out[0].defined()) out[0] = to_dtype(out[0], in.dtype);
  return out;
}

std::vector<Sample> layer_samples(SampleMaker& m, const Samples& o, const std::vector<Value>& more) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  std::vector<Sample> out{
      {{x({3, 5}), Sizes{5}, x({5}), x({5})}, "", ""},
      {{x({2, 3, 4}), Sizes{3, 4}, x({3, 4}), Value()}, "two, no bias", ""},
      {{m.make_transposed({2, 3, 4}, o.low, o.high), Sizes{4}, Value(), Value()}, "plain", ""},
      {{x({0, 4}), Sizes{4}, x({4}), x({4})}, "size 0", ""},
      {{x({3, 5}), Sizes{4}, Value(), Value()}, "shape", "RuntimeError: normalized_shape"}};
  for (Sample& s : out) s.args.insert(s.args.end(), more.begin(), more.end());
  return out;
}

void define_layer_norm(OpTable& t) {
  const Samples with_eps =
      samples::custom([](SampleMaker& m, const Samples& o) { return layer_samples(m, o, {Value(1e-5)}); },
                      {.dtypes = dtypes::floats, .tolerance = 1e-4});
  const Samples by_default =
      samples::custom([](SampleMaker& m, const Samples& o) { return layer_samples(m, o, {}); },
                      {.dtypes = dtypes::floats, .tolerance = 1e-4});
  t.define(
      native_layer_norm,
      {.doc = "(input - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, the mean and "
              "1 / sqrt(variance + eps), these with size 1 there and in float32 for half precision.",
       .tags = Tag::Fused | Tag::NoInPlace | Tag::NoOut,
       .decompose = layer_norm_of,
       .saves = saves::in({0, 2}) | saves::out({1, 2}),
       .grad = layer_norm_gradient,
       .samples = with_eps});
  t.define(layer_norm,
           {.doc = "(input - mean) / sqrt(variance + eps) * weight + bias over the last dimensions.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = [](Tensor input, IntList shape, Tensor weight, Tensor bias, double eps,
                            bool) { return std::get<0>(native_layer_norm(input, shape, weight, bias, eps)); },
            .samples = by_default});
}

std::tuple<Tensor, Tensor> rms_norm_of(Tensor input, IntList shape, Tensor weight,
                                       std::optional<double> eps) {
  const Sizes dims = normalized_dims(input.spec(), shape, "rms_norm");
  check_parameter(weight, shape, "rms_norm", "weight");
  const double least = eps.value_or(epsilon_of(input.dtype()));
  const Tensor x = to_compute(input);
  const Tensor rstd = rsqrt(add(mean_over(square(x), dims, count_over(x.spec(), dims)), least));
  return {to_dtype(affine(mul(x, rstd), weight, {}), input.dtype()), rstd};
}

/// rstd (gw - y mean(gw y)) with y = x rstd and gw = g weight.
Tensors rms_norm_gradient(GradCtx& c, const Tensor&) {
  const TensorSpec& in = c.in_spec(0);
  const int rank = static_cast<int>(c.arg(1).ints().size());
  const Sizes dims = normalized_dims(in, c.arg(1).ints(), "rms_norm");
  const SymInt count = count_over(in, dims);
  const Tensor rstd = c.out(1), y = mul(to_compute(c.in(0)), rstd);
  Tensors out(2);
  if (c.grad_defined(0)) {
    const Tensor g = to_compute(c.grad(0));
    if (c.needs(0)) {
      const Tensor gw = c.is_tensor(2) ? mul(g, to_compute(c.in(2))) : g;
      out[0] = mul(sub(gw, mul(y, mean_over(mul(gw, y), dims, count))), rstd);
    }
    if (c.needs(2)) out[1] = to_dtype(over_rows(mul(g, y), rank), c.in_spec(2).dtype);
  }
  if (c.needs(0) && c.grad_defined(1)) {
    const Tensor part = neg(mul(mul(y, square(rstd)), div(c.grad(1), count)));
    out[0] = out[0].defined() ? add(out[0], part) : part;
  }
  if (out[0].defined()) out[0] = to_dtype(out[0], in.dtype);
  return out;
}

void define_rms_norm(OpTable& t) {
  const Samples options = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
        return std::vector<Sample>{
            {{x({3, 5}), Sizes{5}, x({5}), 1e-5}, "", ""},
            {{x({2, 3, 4}), Sizes{3, 4}, Value(), Value()}, "two, plain", ""},
            {{x({3, 5}), Sizes{4}, Value(), Value()}, "shape", "RuntimeError: normalized_shape"}};
      },
      {.dtypes = dtypes::floats, .low = 0.2, .high = 3, .tolerance = 1e-4});
  t.define(_fused_rms_norm,
           {.doc = "input / sqrt(mean(input^2) + eps) * weight over the last dimensions, and "
                   "the factor 1 / sqrt(...). eps is the dtype's epsilon unless given.",
            .tags = Tag::Fused | Tag::NoInPlace | Tag::NoOut,
            .decompose = rms_norm_of,
            .saves = saves::in({0, 2}) | saves::out({1}),
            .grad = rms_norm_gradient,
            .samples = options});
  t.define(rms_norm, {.doc = "input / sqrt(mean(input^2) + eps) * weight over the last dimensions.",
                      .tags = Tag::NoInPlace | Tag::NoOut,
                      .decompose =
                          [](Tensor input, IntList shape, Tensor weight, std::optional<double> eps) {
                            return std::get<0>(_fused_rms_norm(input, shape, weight, eps));
                          },
                      .samples = options});
}

}  // namespace

void define_norm(OpTable& t) {
  define_standardize(t);
  define_layer_norm(t);
  define_rms_norm(t);
}

}  // namespace fl
