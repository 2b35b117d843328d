// Losses of class scores: negative log likelihood and cross entropy.
#include "flambeau/ops/aten/reduce_loss.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {

LossReduction loss_reduction(int64_t reduction) {
  FL_CHECK(reduction >= 0 && reduction <= 2, ValueError, "{} is not a valid value for reduction", reduction);
  return static_cast<LossReduction>(reduction);
}
Tensor reduce_loss(const Tensor& losses, int64_t reduction) {
  switch (loss_reduction(reduction)) {
    case LossReduction::None:
      return losses;
    case LossReduction::Mean:
      return mean_all(losses);
    default:
      return sum_all(losses);
  }
}
Tensor loss_slope(const Tensor& g, int64_t reduction, SymInt count) {
  return loss_reduction(reduction) == LossReduction::Mean ? div(g, count) : g;
}

namespace {

/// Scores (C), (N, C) or (N, C, d1, ...), targets without C.
struct ClassCall {
  int64_t dim;     ///< of the classes
  Tensor target;   ///< int64, with the class dimension as one of size 1; 0 where ignored
  Tensor ignored;  ///< of target's sizes
};

ClassCall class_call(const TensorSpec& scores, const Tensor& target, SymInt ignore_index) {
  const int64_t dim = scores.dim() <= 1 ? 0 : 1;
  const Tensor labels = unsqueeze(to_dtype(target, DType::Int64), dim);
  const Tensor ignored = eq(labels, ignore_index);
  return {dim, where(ignored, 0, labels), ignored};
}

void check_class_call(const Tensor& scores, const Tensor& target, const Tensor& weight) {
  FL_CHECK(scores.dim() > 0, ValueError, "Expected 1 or more dimensions (got {})", scores.dim());
  check_dtype("nll_loss", scores.dtype(), Takes::Floating);
  FL_CHECK(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8, RuntimeError,
           "expected scalar type Long but found {}", name(target.dtype()));
  const size_t dim = scores.dim() == 1 ? 0 : 1;
  Sizes want = scores.sizes();
  want.erase(want.begin() + dim);
  bool equal = want.size() == target.sizes().size();
  for (size_t d = 0; equal && d < want.size(); ++d) equal = want[d] == target.sizes()[d];
  FL_CHECK(equal, ValueError, "Expected target of sizes {} for input of sizes {}, got {}", to_string(want),
           to_string(scores.sizes()), to_string(target.sizes()));
  FL_CHECK(!weight.defined() || (weight.dim() == 1 && weight.sizes()[0] == scores.sizes()[dim]), RuntimeError,
           "weight tensor should be defined either for all {} classes or no classes but got weight tensor of "
           "shape: {}",
           scores.sizes()[dim], weight.defined() ? to_string(weight.sizes()) : "");
}

/// The weight of each target's class, 0 where ignored.
Tensor target_weights(const ClassCall& call, const Tensor& weight, DType dtype) {
  if (!weight.defined()) return to_dtype(logical_not(call.ignored), dtype);
  return where(call.ignored, 0, to_dtype(_index(weight, std::vector<Tensor>{call.target}), dtype));
}

Tensor nll_of(Tensor self, Tensor target, Tensor weight, int64_t reduction, SymInt ignore_index) {
  check_class_call(self, target, weight);
  const ClassCall call = class_call(self.spec(), target, ignore_index);
  const Tensor picked = to_compute(gather(self, call.dim, call.target));
  const Tensor weights = target_weights(call, weight, picked.dtype());
  const Tensor losses = squeeze_dim(neg(where(call.ignored, 0, mul(picked, weights))), call.dim);
  switch (loss_reduction(reduction)) {
    case LossReduction::None:
      return to_dtype(losses, self.dtype());
    case LossReduction::Sum:
      return to_dtype(sum_all(losses), self.dtype());
    default:
      return to_dtype(div(sum_all(losses), sum_all(weights)), self.dtype());
  }
}

/// By the weights: -self[target] added up by class; of the mean less the loss, divided by the sum of the
/// weights.
Tensor weight_gradient(GradCtx& c, const ClassCall& call, const Tensor& slope) {
  const TensorSpec& weight = c.in_spec(2);
  Tensor losses = neg(to_compute(gather(c.in(0), call.dim, call.target)));
  if (loss_reduction(c.arg(3).to_int()) == LossReduction::Mean) losses = sub(losses, to_compute(c.out(0)));
  const Tensor each = where(call.ignored, 0, mul(losses, slope));
  const Tensor start = zeros(weight.sizes, each.dtype(), each.device());
  return to_dtype(_index_put(start, std::vector<Tensor>{call.target}, each, true), weight.dtype);
}

/// By the scores: -weight at each target's class, without a scatter: the classes are compared with the
/// target.
Tensors nll_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec& scores = c.in_spec(0);
  const ClassCall call = class_call(scores, c.in(1), c.arg(4).sym_int());
  const Tensor weight = c.is_tensor(2) ? c.in(2) : Tensor();
  const Tensor weights = target_weights(call, weight, compute_dtype(scores.dtype));
  Tensor slope = to_compute(g);
  const LossReduction reduction = loss_reduction(c.arg(3).to_int());
  if (reduction == LossReduction::None) slope = unsqueeze(slope, call.dim);
  if (reduction == LossReduction::Mean) slope = div(slope, sum_all(weights));
  Tensors out(3);
  if (c.is_tensor(2) && c.needs(2)) out[2] = weight_gradient(c, call, slope);
  if (!c.needs(0)) return out;
  Sizes along(scores.dim(), SymInt(1));
  along[call.dim] = scores.sizes[call.dim];
  const Tensor classes = view(arange_end(scores.sizes[call.dim], DType::Int64, scores.device), along);
  const Tensor here = logical_and(eq(classes, call.target), logical_not(call.ignored));
  out[0] = to_dtype(where(here, neg(mul(slope, weights)), 0), scores.dtype);
  return out;
}

std::vector<Sample> nll_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto labels = [&](IntList sizes) { return m.make_index(sizes, 0, 5); };
  std::vector<Sample> out{{{x({4, 5}), labels({4})}, "", ""},
                          {{x({4, 5}), labels({4}), x({5}), 1}, "weight", ""},
                          {{x({4, 5}), labels({4}), Value(), 2, 1}, "sum, ignored class", ""},
                          {{x({4, 5}), labels({4}), x({5}), 0, 2}, "none, weight, ignored class", ""},
                          {{x({5}), labels({})}, "one", ""},
                          {{x({2, 5, 3}), labels({2, 3})}, "positions", ""},
                          {{x({2, 5, 3, 2}), labels({2, 3, 2}), x({5}), 1, 3}, "image", ""},
                          {{x({0, 5}), labels({0}), Value(), 2}, "size 0", ""},
                          {{x({4, 5}), m.make_index({4}, 5, 9)}, "out of range", "IndexError: out of "},
                          {{x({4, 5}), labels({3})}, "sizes", "ValueError: Expected target"}};
  return out;
}

void define_likelihoods(OpTable& t) {
  const Samples options = samples::custom(nll_samples, {.dtypes = dtypes::floats, .low = 0.1, .high = 2});
  const auto define = [&](auto op) {
    t.define(op,
             {.doc = "-weight[target] * self[target] of log probabilities by class (dimension 1, or the only "
                     "one); a target equal to ignore_index counts nothing. The mean is weighted.",
              .tags = Tag::Fused | Tag::NoInPlace | Tag::NoOut,
              .decompose = nll_of,
              .saves = saves::in({0, 1, 2}) | saves::out({0}),
              .grad = nll_gradient,
              .samples = options});
  };
  define(nll_loss);
  define(nll_loss_nd);
}

Tensor class_weights(const Tensor& weight, int rank, int64_t dim) {
  Sizes along(rank, SymInt(1));
  along[dim] = weight.sizes()[0];
  return view(weight, along);
}

/// Targets that are probabilities of the classes.
Tensor soft_entropy(const Tensor& log_p, Tensor target, const Tensor& weight, int64_t reduction,
                    double smoothing) {
  const int64_t dim = log_p.dim() == 1 ? 0 : 1;
  const SymInt classes = log_p.sizes()[dim];
  if (smoothing > 0)
    target =
        add(mul(target, 1 - smoothing), div(full({}, smoothing, target.dtype(), target.device()), classes));
  Tensor terms = mul(log_p, target);
  if (weight.defined()) terms = mul(terms, class_weights(weight, log_p.dim(), dim));
  const Tensor losses = neg(sum(terms, IntList{SymInt(dim)}));
  switch (loss_reduction(reduction)) {
    case LossReduction::None:
      return losses;
    case LossReduction::Sum:
      return sum_all(losses);
    default:
      return div(sum_all(losses), losses.numel());
  }
}

/// The likelihood of the label mixed with the mean over all classes.
Tensor smoothed_entropy(const Tensor& log_p, const Tensor& target, const Tensor& weight, int64_t reduction,
                        SymInt ignore_index, double smoothing) {
  const Tensor likelihood = nll_loss_nd(log_p, target, weight, reduction, ignore_index);
  const ClassCall call = class_call(log_p.spec(), target, ignore_index);
  const Tensor scaled = weight.defined() ? mul(log_p, class_weights(weight, log_p.dim(), call.dim)) : log_p;
  const Tensor all = neg(sum(scaled, IntList{SymInt(call.dim)}, true));
  const Tensor losses = squeeze_dim(where(call.ignored, 0, all), call.dim);
  Tensor smooth = losses;
  if (loss_reduction(reduction) == LossReduction::Sum) smooth = sum_all(losses);
  if (loss_reduction(reduction) == LossReduction::Mean)
    smooth = div(sum_all(losses), sum_all(target_weights(call, weight, log_p.dtype())));
  return add(mul(likelihood, 1 - smoothing), mul(div(smooth, log_p.sizes()[call.dim]), smoothing));
}

Tensor cross_entropy_of(Tensor self, Tensor target, Tensor weight, int64_t reduction, SymInt ignore_index,
                        double smoothing) {
  FL_CHECK(smoothing >= 0 && smoothing <= 1, RuntimeError,
           "label_smoothing must be between 0.0 and 1.0. Got: {}", smoothing);
  FL_CHECK(self.dim() > 0, RuntimeError,
           "cross_entropy: expected a tensor of scores by class, got a 0-dim one");
  const Tensor log_p = log_softmax(self, self.dim() == 1 ? 0 : 1);
  bool soft = target.dim() == self.dim();
  for (int d = 0; soft && d < self.dim(); ++d) soft = target.sizes()[d] == self.sizes()[d];
  FL_CHECK(!soft || is_floating(target.dtype()), RuntimeError,
           "Expected floating point type for target with class probabilities, got {}", name(target.dtype()));
  if (soft) return soft_entropy(log_p, target, weight, reduction, smoothing);
  if (smoothing > 0) return smoothed_entropy(log_p, target, weight, reduction, ignore_index, smoothing);
  return nll_loss_nd(log_p, target, weight, reduction, ignore_index);
}

std::vector<Sample> entropy_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = nll_samples(m, o);
  std::erase_if(out, [](const Sample& s) { return !s.error.empty(); });
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto labels = [&](IntList sizes) { return m.make_index(sizes, 0, 5); };
  for (int reduction = 0; reduction < 3; ++reduction) {
    out.push_back({{x({4, 5}), labels({4}), x({5}), reduction, 1, 0.2}, "smoothed", ""});
    out.push_back({{x({4, 5}), x({4, 5}), x({5}), reduction, -100, 0.1}, "probabilities", ""});
  }
  out.push_back({{x({2, 5, 3}), x({2, 5, 3})}, "probabilities at positions", ""});
  out.push_back(
      {{x({4, 5}), labels({4}), Value(), 1, -100, 1.5}, "smoothing", "RuntimeError: label_smoothing"});
  return out;
}

}  // namespace

void define_class_loss(OpTable& t) {
  define_likelihoods(t);
  t.define(
      cross_entropy_loss,
      {.doc = "nll_loss of log_softmax(self); of probabilities by class -sum(target * log_softmax(self)). "
              "label_smoothing mixes the target with the uniform distribution.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = cross_entropy_of,
       .samples = samples::custom(entropy_samples,
                                  {.dtypes = dtypes::floats, .low = 0.1, .high = 2, .tolerance = 1e-4})});
}

}  // namespace fl
