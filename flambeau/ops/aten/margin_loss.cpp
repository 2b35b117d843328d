#include "flambeau/ops/aten/margin_loss.h"

#include "flambeau/ops/aten/reduce_loss.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

void check_scores(const Tensor& scores, const char* op) {
  check_dtype(op, scores.dtype(), Takes::Floating);
  FL_CHECK(scores.dim() <= 2 && (scores.dim() == 0 || scores.size(-1) != SymInt(0)), RuntimeError,
           "{}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}", op,
           to_string(scores.sizes()));
}

/// max(0, margin - x[target] + x[class])^p of the other classes, over their number.
Tensor one_label(Tensor self, Tensor target, Scalar power, Scalar margin, Tensor weight, int64_t reduction) {
  check_scores(self, "multi_margin_loss");
  const double p = power.to_double();
  FL_CHECK(p == 1 || p == 2, ValueError, "multi_margin_loss: only p == 1 and p == 2 supported, got {}", p);
  FL_CHECK(target.dtype() == DType::Int64, RuntimeError, "expected scalar type Long but found {}",
           name(target.dtype()));
  const SymInt rows = self.dim() == 2 ? self.sizes()[0] : SymInt(1),
               classes = self.dim() == 0 ? SymInt(1) : self.size(-1);
  FL_CHECK(target.dim() <= 1 && target.numel() == rows, RuntimeError,
           "inconsistent target size, expected {} but got {}", rows, to_string(target.sizes()));
  FL_CHECK(!weight.defined() || (weight.dim() <= 1 && weight.numel() == classes), RuntimeError,
           "inconsistent weight size, expected {} but got {}", classes,
           weight.defined() ? to_string(weight.sizes()) : "");
  const Tensor x = to_compute(reshape(self, {rows, classes})), labels = reshape(target, {rows, 1});
  const Tensor at_label = gather(x, 1, labels);
  Tensor loss = clamp_min(add(sub(x, at_label), margin), 0);
  if (p == 2) loss = square(loss);
  if (weight.defined()) loss = mul(loss, to_compute(_index(weight, std::vector<Tensor>{labels})));
  const Tensor all = arange_end(classes, DType::Int64, self.device());
  loss = div(sum(where(eq(all, labels), 0, loss), IntList{SymInt(1)}), classes);
  if (self.dim() < 2 && target.dim() == 0) loss = squeeze_dim(loss, 0);
  return to_dtype(reduce_loss(loss, reduction), self.dtype());
}

/// Of each row the labels before the first -1.
Tensor several_labels(Tensor self, Tensor target, int64_t reduction) {
  check_scores(self, "multilabel_margin_loss");
  bool equal = self.dim() == target.dim();
  for (int d = 0; equal && d < self.dim(); ++d) equal = self.sizes()[d] == target.sizes()[d];
  FL_CHECK(equal, RuntimeError, "inconsistent target size: {} for input of size: {}",
           to_string(target.sizes()), to_string(self.sizes()));
  FL_CHECK(target.dtype() == DType::Int64, RuntimeError, "expected scalar type Long but found {}",
           name(target.dtype()));
  const SymInt rows = self.dim() == 2 ? self.sizes()[0] : SymInt(1),
               classes = self.dim() == 0 ? SymInt(1) : self.size(-1);
  const Tensor x = to_compute(reshape(self, {rows, classes})), given = reshape(target, {rows, classes});
  const Tensor listed = gt(cumprod(to_dtype(ge(given, 0), DType::Int64), 1), 0);
  const Tensor labels = where(listed, given, 0);
  const Tensor is_label = scatter_add(zeros({rows, classes}, DType::Int64, self.device()), 1, labels,
                                      to_dtype(listed, DType::Int64));
  const Tensor gap = add(sub(unsqueeze(x, 1), unsqueeze(gather(x, 1, labels), 2)), 1);
  const Tensor counts = logical_and(unsqueeze(listed, 2), unsqueeze(eq(is_label, 0), 1));
  const Tensor losses = div(sum(where(counts, clamp_min(gap, 0), 0), IntList{SymInt(1), SymInt(2)}), classes);
  return to_dtype(reduce_loss(self.dim() < 2 ? squeeze_dim(losses, 0) : losses, reduction), self.dtype());
}

Tensor pair_distances(Tensor self, double p) {
  FL_CHECK(self.dim() == 2, RuntimeError, "pdist only supports 2D tensors, got: {}D", self.dim());
  FL_CHECK(is_floating(self.dtype()), RuntimeError, "pdist only supports floating-point dtypes");
  FL_CHECK(p >= 0, RuntimeError, "pdist only supports non-negative p values");
  const SymInt rows = self.sizes()[0];
  if (rows < SymInt(2)) return vector_norm(slice(self, 0, 0, 0, 1), p, IntList{SymInt(1)});
  const Tensor i = unsqueeze(arange_end(rows, DType::Int64, self.device()), 1);
  const Tensor j = arange_end(rows, DType::Int64, self.device());
  const int64_t n = rows.guard_int();
  // Row i's pairs start at i n - i (i + 1) / 2 - i - 1 + j: those above the diagonal, in order.
  const Tensor place =
      reshape(where(gt(j, i), sub(add(sub(mul(i, n), floor_divide(mul(i, add(i, 1)), 2)), j), add(i, 1)),
                    n * (n - 1) / 2),
              {rows * rows});
  const Tensor numbers = arange_end(rows * rows, DType::Int64, self.device());
  const Tensor pairs =
      slice(scatter(zeros({SymInt(n * (n - 1) / 2 + 1)}, DType::Int64, self.device()), 0, place, numbers), 0,
            0, SymInt(n * (n - 1) / 2), 1);
  const Tensor differences =
      sub(index_select(self, 0, floor_divide(pairs, n)), index_select(self, 0, remainder(pairs, n)));
  return vector_norm(differences, p, IntList{SymInt(1)});
}

}  // namespace

void define_margin_loss(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  t.define(
      multi_margin_loss,
      {.doc = "The mean over the other classes of max(0, margin - self[target] + self[class])^p, times the "
              "target's weight.",
       .tags = kTags,
       .decompose = one_label,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             const Tensor labels = m.make_index({4}, 0, 5);
             return std::vector<Sample>{
                 {{x({4, 5}), labels}, "", ""},
                 {{x({4, 5}), labels, 2, 0.5, m.make({5}, 0.1, 2), 0}, "squared, weights", ""},
                 {{x({5}), m.make_index({}, 0, 5), 1, 1, Value(), 2}, "one", ""},
                 {{x({4, 5}), labels, 3}, "power", "ValueError: only p == 1"}};
           },
           {.dtypes = dtypes::floats})});
  t.define(
      multilabel_margin_loss,
      {.doc =
           "The sum of max(0, 1 - self[label] + self[class]) over a row's labels, which end at the first -1, "
           "and the classes that are none, over the number of classes.",
       .tags = kTags,
       .decompose = several_labels,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const Tensor labels = tensor_from<int64_t>({3, 0, -1, 1, 2, -1, 0, 1}, Sizes{2, 4});
             return std::vector<Sample>{{{m.make({2, 4}, o.low, o.high), labels}, "", ""},
                                        {{m.make({2, 4}, o.low, o.high), labels, 0}, "none", ""},
                                        {{m.make({4}, o.low, o.high), select(labels, 0, 1), 2}, "one", ""},
                                        {{m.make({2, 3}, o.low, o.high), labels},
                                         "sizes",
                                         "RuntimeError: inconsistent target size"}};
           },
           {.dtypes = dtypes::floats})});
  t.define(pdist, {.doc = "The norm p of the differences of every two rows, in order.",
                   .tags = kTags,
                   .decompose = pair_distances,
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         return std::vector<Sample>{
                             {{m.make({5, 3}, o.low, o.high)}, "", ""},
                             {{m.make({4, 2}, o.low, o.high), 1.0}, "sum of distances", ""},
                             {{m.make({1, 2}, o.low, o.high)}, "one row", ""},
                             {{m.make({2, 2, 2}, o.low, o.high)}, "rank", "RuntimeError: 2D"}};
                       },
                       {.dtypes = dtypes::full_floats})});
}

}  // namespace fl
