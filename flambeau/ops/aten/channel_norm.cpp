// Normalisation by channel: groups, batches and instances.
#include "flambeau/ops/aten/norm.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

void check_channels(const Tensor& p, SymInt channels, const char* which) {
  FL_CHECK(
      !p.defined() || p.numel() == channels, RuntimeError,
      "Expected {} to be a vector of size equal to the number of channels in input, but got {} of shape {} "
      "and {} channels",
      which, which, p.defined() ? to_string(p.sizes()) : "", channels);
}

/// A vector of channels as a tensor of this rank.
Tensor by_channel(const Tensor& p, int rank) {
  Sizes sizes(rank, SymInt(1));
  sizes[1] = p.sizes()[0];
  return view(p, sizes);
}

/// x * weight + bias with one number a channel, each if given.
Tensor affine(Tensor x, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) x = mul(x, by_channel(to_compute(weight), x.dim()));
  return bias.defined() ? add(x, by_channel(to_compute(bias), x.dim())) : x;
}

std::tuple<Tensor, Tensor, Tensor> group_norm_of(Tensor input, Tensor weight, Tensor bias, SymInt n, SymInt c,
                                                 SymInt, int64_t groups, double eps) {
  FL_CHECK(input.dim() >= 2, RuntimeError, "Expected at least 2 dimensions for input tensor but received {}",
           input.dim());
  FL_CHECK(
      groups > 0 && c % SymInt(groups) == SymInt(0), RuntimeError,
      "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and "
      "num_groups={}",
      to_string(input.sizes()), groups);
  check_channels(weight, c, "weight");
  check_channels(bias, c, "bias");
  // Channels split in (groups, channels of one group), so that no dimension is merged.
  const Tensor split_up = unflatten(input, 1, {SymInt(groups), c / SymInt(groups)});
  Sizes dims;
  for (int d = 2; d < split_up.dim(); ++d) dims.push_back(d);
  const auto [value, mean, var] = _standardize(split_up, dims, eps);
  const Tensor out = affine(flatten(value, 1, 2), weight, bias);
  return {to_dtype(out, input.dtype()), view(mean, {n, SymInt(groups)}),
          view(rsqrt(add(var, eps)), {n, SymInt(groups)})};
}

void define_group_norm(OpTable& t) {
  t.define(
      native_group_norm,
      {.doc = "Each group of channels minus its mean, divided by sqrt(variance + eps), times weight plus "
              "bias by channel; also the means and 1 / sqrt(variance + eps) as (N, group).",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = group_norm_of,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{{{x({2, 6, 5}), x({6}), x({6}), 2, 6, 5, 3, 1e-5}, "", ""}};
           },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
  t.define(
      group_norm,
      {.doc = "Each group of channels (dimension 1) minus its mean, divided by sqrt(variance + eps), times "
              "weight plus bias by channel.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose =
           [](Tensor input, int64_t groups, Tensor weight, Tensor bias, double eps, bool) {
             FL_CHECK(input.dim() >= 2, RuntimeError,
                      "Expected at least 2 dimensions for input tensor but received {}", input.dim());
             SymInt positions = 1;
             for (int d = 2; d < input.dim(); ++d) positions *= input.sizes()[d];
             return std::get<0>(native_group_norm(input, weight, bias, input.sizes()[0], input.sizes()[1],
                                                  positions, groups, eps));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{{{x({2, 6, 5}), 3, x({6}), x({6})}, "", ""},
                                        {{x({2, 4, 3, 2}), 2}, "image, plain", ""},
                                        {{x({3, 4}), 2, x({4})}, "no positions", ""},
                                        {{x({2, 6}), 4}, "groups", "RuntimeError: divisible by num_groups"}};
           },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

Sizes all_but_channels(const Tensor& x) {
  Sizes out{SymInt(0)};
  for (int d = 2; d < x.dim(); ++d) out.push_back(d);
  return out;
}

/// running = (1 - momentum) running + momentum * value, in place.
void update(const Tensor& running, const Tensor& value, double momentum) {
  if (!running.defined()) return;
  const StateGuard<bool> no_grad(&DispatchState::grad_enabled, false);
  const Tensor fresh = reshape(to_dtype(value, running.dtype()), running.sizes());
  copy.in_place(running, add(mul(running, 1 - momentum), mul(fresh, momentum)));
}

/// The variance as an estimate for the whole population.
Tensor unbiased(const Tensor& var, SymInt count) { return div(mul(var, count), count - SymInt(1)); }

std::tuple<Tensor, Tensor, Tensor> batch_norm_of(Tensor input, Tensor weight, Tensor bias,
                                                 Tensor running_mean, Tensor running_var, bool training,
                                                 double momentum, double eps) {
  FL_CHECK(input.dim() >= 2, RuntimeError, "batch_norm: expected at least 2 dimensions, got {}", input.dim());
  const SymInt channels = input.sizes()[1];
  check_channels(weight, channels, "weight");
  check_channels(bias, channels, "bias");
  check_channels(running_mean, channels, "running_mean");
  check_channels(running_var, channels, "running_var");
  if (training) {
    SymInt count = input.sizes()[0];
    for (int d = 2; d < input.dim(); ++d) count *= input.sizes()[d];
    const auto [value, mean, var] = _standardize(input, all_but_channels(input), eps);
    if (count > SymInt(0)) {
      update(running_mean, mean, momentum);
      update(running_var, unbiased(var, count), momentum);
    }
    const Tensor out = affine(value, weight, bias);
    return {to_dtype(out, input.dtype()), reshape(mean, {channels}),
            reshape(rsqrt(add(var, eps)), {channels})};
  }
  FL_CHECK(running_mean.defined() && running_var.defined(), RuntimeError,
           "Expected running_mean and running_var to be defined when training=False");
  const Tensor scale = rsqrt(add(to_compute(running_var), eps));
  const Tensor centered = sub(to_compute(input), by_channel(to_compute(running_mean), input.dim()));
  const Tensor out = affine(mul(centered, by_channel(scale, input.dim())), weight, bias);
  const Tensor none = zeros({SymInt(0)}, out.dtype(), input.device());
  return {to_dtype(out, input.dtype()), none, none};
}

std::vector<Sample> batch_samples(SampleMaker& m, const Samples& o, const std::vector<Value>& more) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto positive = [&](IntList sizes) { return m.make(sizes, 0.5, 2); };
  std::vector<Sample> out{
      {{x({4, 3}), x({3}), x({3}), Value(), Value(), true, 0.1, 1e-5}, "training", ""},
      {{x({4, 3}), x({3}), x({3}), x({3}), positive({3}), false, 0.1, 1e-5}, "evaluation", ""},
      {{x({2, 3, 2, 2}), x({3}), x({3}), Value(), Value(), true, 0.1, 1e-3}, "image", ""},
      {{x({2, 3, 4}), Value(), Value(), x({3}), positive({3}), false, 0.1, 1e-3}, "plain", ""},
      {{x({4, 3}), Value(), Value(), Value(), Value(), false, 0.1, 1e-5},
       "statistics",
       "RuntimeError: running_mean"}};
  for (Sample& s : out) s.args.insert(s.args.end(), more.begin(), more.end());
  return out;
}

void define_batch_norm(OpTable& t) {
  t.define(
      native_batch_norm,
      {.doc = "`batch_norm`, with the batch's means and 1 / sqrt(variance + eps) (empty in evaluation).",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = batch_norm_of,
       .samples = samples::custom([](SampleMaker& m, const Samples& o) { return batch_samples(m, o, {}); },
                                  {.dtypes = dtypes::floats, .tolerance = 1e-4})});
  t.define(
      batch_norm,
      {.doc = "Each channel (dimension 1) minus its mean, divided by sqrt(variance + eps), times weight plus "
              "bias. In training the statistics are the batch's and go into running_mean and running_var "
              "(in place, with the unbiased variance); else those are used.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose =
           [](Tensor input, Tensor weight, Tensor bias, Tensor running_mean, Tensor running_var,
              bool training, double momentum, double eps, bool) {
             return std::get<0>(
                 native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) { return batch_samples(m, o, {Value(true)}); },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

Tensor instance_norm_of(Tensor input, Tensor weight, Tensor bias, Tensor running_mean, Tensor running_var,
                        bool use_input_stats, double momentum, double eps, bool) {
  if (!use_input_stats)
    return batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps, true);
  FL_CHECK(input.dim() >= 3, RuntimeError, "instance_norm: expected at least 3 dimensions, got {}",
           input.dim());
  Sizes positions;
  SymInt count = 1;
  for (int d = 2; d < input.dim(); ++d) {
    positions.push_back(d);
    count *= input.sizes()[d];
  }
  const auto [value, mean, var] = _standardize(input, positions, eps);
  if (running_mean.defined()) update(running_mean, fl::mean(mean, IntList{SymInt(0)}), momentum);
  if (running_var.defined())
    update(running_var, fl::mean(unbiased(var, count), IntList{SymInt(0)}), momentum);
  return to_dtype(affine(value, weight, bias), input.dtype());
}

}  // namespace

void define_channel_norm(OpTable& t) {
  define_group_norm(t);
  define_batch_norm(t);
  t.define(
      instance_norm,
      {.doc = "Each channel of each instance minus its mean, divided by sqrt(variance + eps), times weight "
              "plus bias by channel; with running statistics instead if use_input_stats is false.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = instance_norm_of,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{
                 {{x({2, 3, 5}), x({3}), x({3}), Value(), Value(), true, 0.1, 1e-5, true}, "", ""},
                 {{x({2, 3, 2, 2}), Value(), Value(), x({3}), m.make({3}, 0.5, 2), false, 0.1, 1e-5, true},
                  "running statistics",
                  ""}};
           },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

}  // namespace fl
