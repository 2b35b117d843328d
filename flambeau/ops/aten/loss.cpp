// Losses of values: differences, probabilities, margins.
#include "flambeau/ops/aten/loss.h"

#include <cmath>
#include <numbers>

#include "flambeau/ops/aten/reduce_loss.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// f on self and target in the compute dtype; its result reduced and rounded once.
template <class F>
Tensor pair_loss(const Tensor& self, const Tensor& target, int64_t reduction, F f) {
  const DType dtype = promote(self.dtype(), target.dtype());
  const Tensor losses = f(to_dtype(self, compute_dtype(dtype)), to_dtype(target, compute_dtype(dtype)));
  return to_dtype(reduce_loss(losses, reduction), dtype);
}

std::vector<Sample> pair_samples(SampleMaker& m, const Samples& o, const std::vector<Value>& more = {}) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  std::vector<Sample> out;
  const auto add = [&](std::string note, Tensor a, Tensor b, int reduction) {
    out.push_back({{a, b, reduction}, std::move(note), ""});
    out.back().args.insert(out.back().args.end(), more.begin(), more.end());
  };
  for (int reduction = 0; reduction < 3; ++reduction) add("", x({3, 4}), x({3, 4}), reduction);
  add("transposed", m.make_transposed({3, 4}, o.low, o.high), x({3, 4}), 1);
  add("0-dim", x({}), x({}), 1);
  add("size 0", x({0, 3}), x({0, 3}), 2);
  return out;
}
std::vector<Sample> plain_pairs(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = pair_samples(m, o);
  out.push_back(
      {{m.make({2}, o.low, o.high), m.make({2}, o.low, o.high), 3}, "reduction", "ValueError: valid"});
  return out;
}
std::vector<Sample> scaled_pairs(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = pair_samples(m, o);
  for (Sample& s : pair_samples(m, o, {Value(0.5)})) out.push_back(std::move(s));
  return out;
}

void define_differences(OpTable& t) {
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::floats, .tolerance = 1e-4});
  };
  constexpr Tag kTags = Tag::NoInPlace;
  t.define(mse_loss, {.doc = "(self - target)^2.",
                      .tags = kTags,
                      .decompose =
                          [](Tensor self, Tensor target, int64_t reduction) {
                            return pair_loss(self, target, reduction, [](const Tensor& x, const Tensor& y) {
                              return square(sub(x, y));
                            });
                          },
                      .samples = options(plain_pairs)});
  t.define(l1_loss, {.doc = "|self - target|.",
                     .tags = kTags,
                     .decompose =
                         [](Tensor self, Tensor target, int64_t reduction) {
                           return pair_loss(self, target, reduction,
                                            [](const Tensor& x, const Tensor& y) { return abs(sub(x, y)); });
                         },
                     .samples = options(plain_pairs)});
  t.define(smooth_l1_loss,
           {.doc = "d^2 / (2 beta) where d = |self - target| is less than beta, d - beta / 2 elsewhere.",
            .tags = kTags,
            .decompose =
                [](Tensor self, Tensor target, int64_t reduction, double beta) {
                  FL_CHECK(beta >= 0, RuntimeError,
                           "smooth_l1_loss does not support negative values for beta, got {}", beta);
                  if (beta == 0) return l1_loss(self, target, reduction);
                  return pair_loss(self, target, reduction, [&](const Tensor& x, const Tensor& y) {
                    const Tensor d = abs(sub(x, y));
                    return where(lt(d, beta), mul(square(d), 0.5 / beta), sub(d, 0.5 * beta));
                  });
                },
            .samples = options(scaled_pairs)});
  t.define(huber_loss,
           {.doc = "d^2 / 2 where d = |self - target| is at most delta, delta (d - delta / 2) elsewhere.",
            .tags = kTags,
            .decompose =
                [](Tensor self, Tensor target, int64_t reduction, double delta) {
                  FL_CHECK(delta > 0, RuntimeError,
                           "huber_loss does not support non-positive values for delta, got {}", delta);
                  return pair_loss(self, target, reduction, [&](const Tensor& x, const Tensor& y) {
                    const Tensor d = abs(sub(x, y));
                    return where(le(d, delta), mul(square(d), 0.5), mul(sub(d, 0.5 * delta), delta));
                  });
                },
            .samples = options(scaled_pairs)});
}

Tensor losses_of_probability(const Tensor& x, const Tensor& y) {
  const Tensor miss = mul(sub(y, 1), clamp_min(log1p(neg(x)), -100.0));
  return sub(miss, mul(y, clamp_min(log(x), -100.0)));
}

Tensor cross_entropy_of_probability(Tensor self, Tensor target, Tensor weight, int64_t reduction) {
  Tensor losses = losses_of_probability(to_compute(self), to_compute(target));
  if (weight.defined()) losses = mul(losses, to_compute(weight));
  return to_dtype(reduce_loss(losses, reduction), self.dtype());
}

/// (x - y) / max(x (1 - x), 1e-12), and log(1 - x) - log(x) by the target.
Tensors probability_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec& in = c.in_spec(0);
  Tensor slope = to_compute(loss_slope(g, c.arg(3).to_int(), in.numel()));
  const Tensor x = to_compute(c.in(0));
  Tensors out(3);
  if (c.is_tensor(2) && c.needs(2)) out[2] = mul(slope, losses_of_probability(x, to_compute(c.in(1))));
  if (c.is_tensor(2)) slope = mul(slope, to_compute(c.in(2)));
  if (c.needs(0)) {
    const Tensor steep = div(sub(x, to_compute(c.in(1))), clamp_min(mul(sub(1, x), x), 1e-12));
    out[0] = to_dtype(mul(slope, steep), in.dtype);
  }
  if (c.needs(1)) out[1] = to_dtype(mul(slope, sub(log1p(neg(x)), log(x))), in.dtype);
  return out;
}

void define_probability_losses(OpTable& t) {
  t.define(
      binary_cross_entropy,
      {.doc = "-weight (target log(self) + (1 - target) log(1 - self)) of probabilities; logarithms are at "
              "least -100.",
       .tags = Tag::Fused | Tag::NoInPlace,
       .decompose = cross_entropy_of_probability,
       .saves = saves::in({0, 1, 2}),
       .grad = probability_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             std::vector<Sample> out;
             for (int reduction = 0; reduction < 3; ++reduction) {
               out.push_back({{x(), x(), Value(), reduction}, "", ""});
               out.push_back({{x(), x(), m.make({4}, o.low, o.high), reduction}, "weight", ""});
             }
             return out;
           },
           {.dtypes = dtypes::floats, .low = 0.1, .high = 0.9, .tolerance = 1e-4})});
  t.define(
      binary_cross_entropy_with_logits,
      {.doc = "binary_cross_entropy of sigmoid(self), without overflow on the way; pos_weight multiplies the "
              "part of the positive targets.",
       .tags = Tag::NoInPlace,
       .decompose =
           [](Tensor self, Tensor target, Tensor weight, Tensor pos_weight, int64_t reduction) {
             const Tensor x = to_compute(self), y = to_compute(target);
             Tensor part = log_sigmoid(x);
             if (pos_weight.defined()) part = mul(part, add(mul(sub(pos_weight, 1), y), 1));
             Tensor losses = sub(mul(sub(1, y), x), part);
             if (weight.defined()) losses = mul(losses, to_compute(weight));
             return to_dtype(reduce_loss(losses, reduction), self.dtype());
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             const auto p = [&] { return m.make({3, 4}, 0, 1); };
             std::vector<Sample> out;
             for (int reduction = 0; reduction < 3; ++reduction) {
               out.push_back({{x(), p(), Value(), Value(), reduction}, "", ""});
               out.push_back(
                   {{x(), p(), m.make({4}, 0.5, 2), m.make({4}, 0.5, 2), reduction}, "weights", ""});
             }
             return out;
           },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
  t.define(kl_div,
           {.doc = "target (log(target) - self) of log probabilities self; with log_target the target "
                   "is a logarithm too.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, Tensor target, int64_t reduction, bool log_target) {
                  return pair_loss(self, target, reduction, [&](const Tensor& x, const Tensor& y) {
                    if (log_target) return mul(exp(y), sub(y, x));
                    return sub(xlogy(y, y), mul(y, x));
                  });
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  std::vector<Sample> out = pair_samples(m, o);
                  for (Sample& s : pair_samples(m, o, {Value(true)})) out.push_back(std::move(s));
                  return out;
                },
                {.dtypes = dtypes::floats, .low = 0.1, .high = 2, .tolerance = 1e-4})});
  t.define(poisson_nll_loss,
           {.doc = "e^input - target input, or input - target log(input + eps); with `full` Stirling's "
                   "approximation of log(target!) is added where target is above 1.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor input, Tensor target, bool log_input, bool full, double eps, int64_t reduction) {
                  return pair_loss(input, target, reduction, [&](const Tensor& x, const Tensor& y) {
                    const Tensor loss = log_input ? sub(exp(x), mul(y, x)) : sub(x, mul(y, log(add(x, eps))));
                    if (!full) return loss;
                    const Tensor stirling =
                        add(sub(mul(y, log(y)), y), mul(log(mul(y, 2 * std::numbers::pi)), 0.5));
                    return add(loss, where(le(y, 1), 0, stirling));
                  });
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
                  return std::vector<Sample>{{{x(), x(), true, false, 1e-8, 1}, "", ""},
                                             {{x(), x(), false, true, 1e-8, 0}, "full", ""}};
                },
                {.dtypes = dtypes::full_floats, .low = 0.2, .high = 3, .tolerance = 1e-4})});
}

void define_margins(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace;
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::full_floats, .tolerance = 1e-4});
  };
  t.define(soft_margin_loss, {.doc = "log(1 + exp(-target self)).",
                              .tags = kTags,
                              .decompose =
                                  [](Tensor self, Tensor target, int64_t reduction) {
                                    return reduce_loss(log1p(exp(mul(neg(target), self))), reduction);
                                  },
                              .samples = options(plain_pairs)});
  t.define(margin_ranking_loss,
           {.doc = "max(0, margin - target (input1 - input2)).",
            .tags = kTags,
            .decompose =
                [](Tensor a, Tensor b, Tensor target, double margin, int64_t reduction) {
                  return reduce_loss(clamp_min(add(mul(neg(target), sub(a, b)), margin), 0), reduction);
                },
            .samples = options([](SampleMaker& m, const Samples& o) {
              const auto x = [&] { return m.make({4}, o.low, o.high); };
              return std::vector<Sample>{{{x(), x(), sgn(x())}, "", ""},
                                         {{x(), x(), sgn(x()), 0.5, 0}, "margin, none", ""}};
            })});
  t.define(hinge_embedding_loss,
           {.doc = "self where target is 1, max(0, margin - self) where it is -1.",
            .tags = kTags,
            .decompose =
                [](Tensor self, Tensor target, double margin, int64_t reduction) {
                  const Tensor apart = where(ne(target, 1), clamp_min(sub(margin, self), 0), 0);
                  return reduce_loss(add(apart, where(ne(target, -1), self, 0)), reduction);
                },
            .samples = options([](SampleMaker& m, const Samples& o) {
              const auto x = [&] { return m.make({4}, o.low, o.high); };
              return std::vector<Sample>{{{x(), sgn(x())}, "", ""}, {{x(), sgn(x()), 0.5, 2}, "sum", ""}};
            })});
  t.define(cosine_embedding_loss,
           {.doc = "1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1.",
            .tags = kTags,
            .decompose =
                [](Tensor a, Tensor b, Tensor target, double margin, int64_t reduction) {
                  const int64_t dim = a.dim() - 1;
                  const auto along = [&](const Tensor& x) { return sum(x, IntList{SymInt(dim)}); };
                  constexpr double kEpsilon = 1e-12;
                  const Tensor scale =
                      sqrt(mul(add(along(mul(a, a)), kEpsilon), add(along(mul(b, b)), kEpsilon)));
                  const Tensor cosine = div(along(mul(a, b)), scale);
                  const Tensor near = where(eq(target, 1), sub(1, cosine), 0);
                  const Tensor far = where(eq(target, -1), clamp_min(sub(cosine, margin), 0), 0);
                  return reduce_loss(add(near, far), reduction);
                },
            .samples = options([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{{{x({4, 3}), x({4, 3}), sgn(x({4}))}, "", ""},
                                         {{x({4, 3}), x({4, 3}), sgn(x({4})), 0.1, 0}, "none", ""}};
            })});
  t.define(
      triplet_margin_loss,
      {.doc = "max(0, margin + |anchor - positive| - |anchor - negative|); with swap the nearer of anchor "
              "and positive counts as the negative's partner.",
       .tags = kTags,
       .decompose =
           [](Tensor anchor, Tensor positive, Tensor negative, double margin, double p, double eps, bool swap,
              int64_t reduction) {
             const Tensor near = pairwise_distance(anchor, positive, p, eps);
             Tensor far = pairwise_distance(anchor, negative, p, eps);
             if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps));
             return reduce_loss(clamp_min(add(sub(near, far), margin), 0), reduction);
           },
       .samples = options([](SampleMaker& m, const Samples& o) {
         const auto x = [&] { return m.make({4, 3}, o.low, o.high); };
         return std::vector<Sample>{{{x(), x(), x()}, "", ""},
                                    {{x(), x(), x(), 1.0, 2.0, 1e-6, true, 0}, "swap, none", ""}};
       })});
}

void define_distances(OpTable& t) {
  const Samples pairs = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
        return std::vector<Sample>{{{x({3, 4}), x({3, 4})}, "", ""},
                                   {{x({3, 4}), x({1, 4})}, "broadcast", ""}};
      },
      {.dtypes = dtypes::full_floats, .tolerance = 1e-4});
  t.define(cosine_similarity,
           {.doc = "The cosine of the angle of two vectors along a dimension; norms count as at least eps.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor a, Tensor b, int64_t dim, double eps) {
                  const DType dtype = promote(a.dtype(), b.dtype());
                  const Sizes sizes = broadcast_sizes(a.sizes(), b.sizes());
                  const Tensor x = expand(to_dtype(a, dtype), sizes), y = expand(to_dtype(b, dtype), sizes);
                  const Sizes along{SymInt(dim)};
                  const auto unit = [&](const Tensor& v) {
                    return div(v, clamp_min(vector_norm(v, 2, along, true), eps));
                  };
                  return sum(mul(unit(x), unit(y)), along);
                },
            .samples = pairs});
  t.define(pairwise_distance, {.doc = "The p-norm of x1 - x2 + eps along the last dimension.",
                               .tags = Tag::NoInPlace,
                               .decompose =
                                   [](Tensor a, Tensor b, double p, double eps, bool keepdim) {
                                     return vector_norm(add(sub(a, b), eps), p, IntList{SymInt(-1)}, keepdim);
                                   },
                               .samples = pairs});
}

}  // namespace

void define_loss(OpTable& t) {
  define_differences(t);
  define_probability_losses(t);
  define_margins(t);
  define_distances(t);
}

}  // namespace fl
