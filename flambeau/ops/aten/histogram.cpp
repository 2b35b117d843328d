#include "flambeau/ops/aten/histogram.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using List = std::vector<Tensor>;
constexpr Tag kCounts = Tag::NoInPlace | Tag::NonDifferentiable;

struct Range {
  double low, high;
};

/// The elements' own range where none is given; `around` a single number on both sides.
Range range_of(const Tensor& x, double low, double high, double around, const char* op) {
  Range r{low, high};
  if (low == high && x.numel() > SymInt(0)) r = {amin(x).item().to_double(), amax(x).item().to_double()};
  FL_CHECK(std::isfinite(r.low) && std::isfinite(r.high), RuntimeError,
           "torch.{}: range of [{}, {}] is not finite", op, r.low, r.high);
  FL_CHECK(r.low <= r.high, RuntimeError, "torch.{}: max must be larger than min, got {} and {}", op, r.high,
           r.low);
  if (r.low == r.high) r = {r.low - around, r.high + around};
  return r;
}

/// Adds up `amount` (1 each where undefined) at positions in [0, size); others count nothing.
Tensor counted(const Tensor& position, const Tensor& inside, const Tensor& amount, SymInt size, DType dtype) {
  const Tensor one = full({}, 1, dtype, position.device());
  const Tensor values = where(inside, amount.defined() ? to_dtype(amount, dtype) : one, 0);
  return _index_put(zeros({size}, dtype, position.device()), List{where(inside, position, 0)},
                    expand(to_dtype(values, dtype), position.sizes()), true);
}

Tensor equal_intervals(Tensor self, int64_t bins, Scalar min, Scalar max) {
  check_dtype("histc", self.dtype(), Takes::Floating);
  FL_CHECK(bins > 0, RuntimeError, "bins must be > 0, but got {} for dimension 0", bins);
  const Tensor x = to_compute(reshape(self, {SymInt(-1)}));
  const Range r = range_of(x, min.to_double(), max.to_double(), 1, "histc");
  const Tensor inside = logical_and(ge(x, r.low), le(x, r.high));
  const Tensor at = div(mul(sub(x, r.low), bins), r.high - r.low);
  const Tensor position = clamp_max(to_dtype(where(inside, at, 0), DType::Int64), bins - 1);
  return to_dtype(counted(position, inside, Tensor(), bins, x.dtype()), self.dtype());
}

/// The interval of each element among ascending edges, the last one with its upper edge.
struct Placed {
  Tensor position, inside;
};
Placed placed(const Tensor& x, const Tensor& edges) {
  const SymInt count = edges.size(0) - SymInt(1);
  const Tensor at = sub(searchsorted(edges, x, false, true), 1);
  const Tensor last = select(edges, 0, -1);
  const Tensor inside = logical_and(ge(x, select(edges, 0, 0)), le(x, last));
  return {where(eq(x, last), Scalar(count - SymInt(1)), at), inside};
}

/// Counts in a grid of intervals; rows of x are points.
Tensor grid_counts(const Tensor& x, const List& edges, const Tensor& weight, bool density) {
  Tensor position = zeros({x.size(0)}, DType::Int64, x.device());
  Tensor inside = ones({x.size(0)}, DType::Bool, x.device());
  Sizes sizes;
  SymInt total = 1;
  for (size_t d = 0; d < edges.size(); ++d) {
    const SymInt count = edges[d].size(0) - SymInt(1);
    const Placed p = placed(clone(select(x, 1, static_cast<int64_t>(d))), edges[d]);
    position = add(mul(position, Scalar(count)), p.position);
    inside = logical_and(inside, p.inside);
    sizes.push_back(count);
    total = total * count;
  }
  Tensor hist = view(counted(position, inside, weight, total, x.dtype()), sizes);
  if (!density) return hist;
  hist = div(hist, sum_all(hist));
  for (size_t d = 0; d < edges.size(); ++d) {
    Sizes along(edges.size(), SymInt(1));
    along[d] = sizes[d];
    hist = div(hist, view(diff(edges[d]), along));
  }
  return hist;
}

/// Points as rows, and their weights.
struct Points {
  Tensor rows, weight;
};
Points points_of(const Tensor& self, const Tensor& weight, const char* op) {
  check_dtype(op, self.dtype(), Takes::Floating);
  FL_CHECK(self.dim() >= 2, RuntimeError,
           "torch.histogramdd: input tensor should have at least 2 dimensions, but got {}", self.dim());
  Points p{reshape(self, {SymInt(-1), self.size(-1)}), Tensor()};
  if (!weight.defined()) return p;
  FL_CHECK(weight.dtype() == self.dtype(), RuntimeError,
           "torch.{}: if weight tensor is provided, it should have the same dtype as the input tensor, but "
           "got {} and {}",
           op, name(weight.dtype()), name(self.dtype()));
  const Sizes lines(self.sizes().begin(), self.sizes().end() - 1);
  FL_CHECK(
      lines.size() == weight.sizes().size() && std::equal(lines.begin(), lines.end(), weight.sizes().begin(),
                                                          [](SymInt a, SymInt b) { return a == b; }),
      RuntimeError,
      "torch.{}: if weight tensor is provided it should have the same shape as the input tensor "
      "excluding its innermost dimension, got {} and {}",
      op, to_string(weight.sizes()), to_string(lines));
  p.weight = reshape(weight, {SymInt(-1)});
  return p;
}

List even_edges(const Tensor& rows, IntList bins, const std::optional<std::vector<double>>& range,
                const char* op) {
  const auto dims = static_cast<size_t>(rows.size(1).guard_int());
  FL_CHECK(bins.size() == dims, RuntimeError,
           "torch.{}: The size of bins must be equal to the innermost dimension of the input: {} and {}", op,
           bins.size(), dims);
  FL_CHECK(!range || range->size() == 2 * dims, RuntimeError,
           "torch.{}: if range is specified, it should have length {}, but got {}", op, 2 * dims,
           range ? range->size() : 0);
  List edges;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t count = bins[d].guard_int();
    FL_CHECK(count > 0, RuntimeError, "torch.{}: bins must be > 0, but got {} for dimension {}", op, count,
             d);
    Range r{0, 1};
    if (range)
      r = range_of(zeros({SymInt(0)}), (*range)[2 * d], (*range)[2 * d + 1], 0.5, op);
    else if (rows.size(0) > SymInt(0))
      r = range_of(select(rows, 1, static_cast<int64_t>(d)), 0, 0, 0.5, op);
    edges.push_back(linspace(r.low, r.high, count + 1, rows.dtype(), rows.device()));
  }
  return edges;
}

Tensor as_column(const Tensor& self) { return reshape(self, {SymInt(-1), SymInt(1)}); }
Tensor flat_weight(const Tensor& self, const Tensor& weight) {
  if (!weight.defined()) return weight;
  FL_CHECK(weight.sizes() == self.sizes(), RuntimeError,
           "torch.histogram: if weight tensor is provided it should have the same shape as the input tensor, "
           "got {} and {}",
           to_string(weight.sizes()), to_string(self.sizes()));
  return reshape(weight, {SymInt(-1)});
}

void define_histograms(OpTable& t) {
  t.define(histc,
           {.doc = "How many elements lie in each of `bins` equal intervals between min and max (of the "
                   "elements themselves where both are equal); others, and nan, count nothing.",
            .tags = kCounts | Tag::DataDependent,
            .decompose = equal_intervals,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({20}, o.low, o.high), 7}, "", ""},
                      {{m.make({4, 5}, o.low, o.high), 4, -1, 2}, "range", ""},
                      {{m.make({3}, o.low, o.high), 0}, "no bins", "RuntimeError: must be > 0"}};
                },
                {.dtypes = dtypes::full_floats, .gradient = false})});
  t.define(histogram,
           {.doc = "How many elements (or the sum of their weights) lie between ascending edges, each "
                   "interval with its lower edge and the last one with both; with density so that the "
                   "integral is 1.",
            .tags = kCounts,
            .decompose =
                [](Tensor self, Tensor bins, Tensor weight, bool density) {
                  FL_CHECK(bins.dim() == 1 && bins.numel() > SymInt(0), RuntimeError,
                           "torch.histogram: bins tensor should have one dimension and be non-empty, got {}",
                           to_string(bins.sizes()));
                  FL_CHECK(bins.dtype() == self.dtype(), RuntimeError,
                           "torch.histogram: input tensor and bins tensors should have the same dtype, but "
                           "got {} and {}",
                           name(self.dtype()), name(bins.dtype()));
                  const Points p = points_of(as_column(self), flat_weight(self, weight), "histogram");
                  return std::tuple(grid_counts(p.rows, {bins}, p.weight, density), clone(bins));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const Tensor e = to_dtype(tensor_from<double>({-2, -0.5, 0, 1.5, 2}, Sizes{5}), m.dtype());
                  const auto x = [&] { return m.make({20}, o.low, o.high); };
                  return std::vector<Sample>{{{x(), e}, "", ""},
                                             {{x(), e, x(), true}, "weights, density", ""},
                                             {{x(), e, m.make({3})}, "sizes", "RuntimeError: same shape"}};
                },
                {.gradient = false})});
  t.define(histogram_by_count,
           {.doc = "`histogram` with equal intervals over a range, that of the elements unless given.",
            .tags = kCounts | Tag::DataDependent,
            .decompose =
                [](Tensor self, int64_t bins, std::optional<std::vector<double>> range, Tensor weight,
                   bool density) {
                  const Points p = points_of(as_column(self), flat_weight(self, weight), "histogram");
                  const List e = even_edges(p.rows, {SymInt(bins)}, range, "histogram");
                  return std::tuple(grid_counts(p.rows, e, p.weight, density), e[0]);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&] { return m.make({20}, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x(), 5}, "", ""},
                      {{x(), 4, std::vector<double>{-1, 2}, Value(), true}, "range, density", ""},
                      {{x(), 0}, "no bins", "RuntimeError: must be > 0"}};
                },
                {.gradient = false})});
}

using Many = std::tuple<Tensor, List>;

Many many_dims(const Tensor& self, IntList bins, const std::optional<std::vector<double>>& range,
               const Tensor& weight, bool density) {
  const Points p = points_of(self, weight, "histogramdd");
  List e = even_edges(p.rows, bins, range, "histogramdd");
  return {grid_counts(p.rows, e, p.weight, density), e};
}

void define_many_dims(OpTable& t) {
  constexpr Tag kTags = kCounts | Tag::NoOut | Tag::DataDependent;
  t.define(
      histogramdd_by_counts,
      {.doc = "`histogram` of points, the last dimension their coordinates: counts in a grid of as many "
              "equal intervals in each direction as bins says, and their edges.",
       .tags = kTags,
       .decompose = [](Tensor self, IntList bins, std::optional<std::vector<double>> range, Tensor weight,
                       bool density) { return many_dims(self, bins, range, weight, density); },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{{{m.make({20, 2}, o.low, o.high), Sizes{3, 4}}, "", ""}};
           },
           {.gradient = false})});
  t.define(histogramdd_by_count,
           {.doc = "`histogramdd` with as many intervals in each direction.",
            .tags = kTags,
            .decompose =
                [](Tensor self, int64_t bins, std::optional<std::vector<double>> range, Tensor weight,
                   bool density) {
                  const Sizes all(static_cast<size_t>(self.size(-1).guard_int()), SymInt(bins));
                  return many_dims(self, all, range, weight, density);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({20, 2}, o.low, o.high), 3}, "", ""}};
                },
                {.gradient = false})});
  t.define(
      histogramdd,
      {.doc = "`histogramdd` with given edges in each direction.",
       .tags = kTags,
       .decompose =
           [](Tensor self, TensorList bins, std::optional<std::vector<double>>, Tensor weight, bool density) {
             const Points p = points_of(self, weight, "histogramdd");
             FL_CHECK(SymInt(static_cast<int64_t>(bins.size())) == p.rows.size(1), RuntimeError,
                      "torch.histogramdd: expected {} sequences of bin edges, but got {}", p.rows.size(1),
                      bins.size());
             return Many(grid_counts(p.rows, bins.vec(), p.weight, density), bins.vec());
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const Tensor e = to_dtype(tensor_from<double>({-2, 0, 2}, Sizes{3}), m.dtype());
             return std::vector<Sample>{{{m.make({20, 2}, o.low, o.high), List{e, e}}, "", ""}};
           },
           {.gradient = false})});
}

using Distinct = std::tuple<Tensor, Tensor, Tensor>;

/// Lines along dimension 0 that differ from the one before; the first does.
Tensor changes(const Tensor& lines) {
  const SymInt n = lines.size(0);
  const Tensor flat = reshape(lines, {n, SymInt(-1)});
  const Tensor differ =
      any(ne(narrow(flat, 0, 1, n - SymInt(1)), narrow(flat, 0, 0, n - SymInt(1))), IntList{SymInt(1)});
  return cat(List{full({SymInt(1)}, true, DType::Bool, lines.device()), differ}, 0);
}

/// For runs that begin where `starts` holds: a line of each, the run of each line, and how long they are.
Distinct runs(const Tensor& lines, bool return_inverse, bool return_counts) {
  const SymInt n = lines.size(0);
  const Tensor none = zeros({SymInt(0)}, DType::Int64, lines.device());
  if (n == SymInt(0)) return {clone(lines), none, none};
  const Tensor starts = changes(lines), at = select(nonzero(starts), 1, 0);
  Tensor inverse = none, counts = none;
  if (return_inverse) inverse = sub(cumsum(starts, 0), 1);
  if (return_counts) {
    const Tensor end = full({SymInt(1)}, Scalar(n), DType::Int64, lines.device());
    counts = sub(cat(List{slice(at, 0, 1, std::nullopt, 1), end}, 0), at);
  }
  return {index_select(lines, 0, at), inverse, counts};
}

Distinct distinct_neighbours(Tensor self, bool return_inverse, bool return_counts,
                             std::optional<int64_t> dim) {
  if (!dim) {
    auto [values, inverse, counts] = runs(reshape(self, {SymInt(-1)}), return_inverse, return_counts);
    if (return_inverse) inverse = reshape(inverse, self.sizes());
    return {values, inverse, counts};
  }
  const int64_t d = wrap_dim(*dim, self.dim());
  FL_CHECK(self.dim() > 0, IndexError, "unique_consecutive: dimension {} of a 0-dim tensor", *dim);
  auto [values, inverse, counts] = runs(transpose(self, 0, d), return_inverse, return_counts);
  return {clone(transpose(values, 0, d), MemoryFormat::Contiguous), inverse, counts};
}

/// The order of rows, compared from the first column on: stable sorts from the last column.
Tensor order_of_rows(const Tensor& rows) {
  Tensor order = arange_end(rows.size(0), DType::Int64, rows.device());
  for (int64_t c = rows.size(1).guard_int() - 1; c >= 0; --c) {
    const Tensor column = index_select(select(rows, 1, c), 0, order);
    order = index_select(order, 0, stable_argsort(column, true, 0, false));
  }
  return order;
}

Distinct distinct_lines(Tensor self, int64_t dim, bool, bool return_inverse, bool return_counts) {
  const int64_t d = wrap_dim(dim, self.dim());
  FL_CHECK(self.dim() > 0, IndexError, "unique_dim: dimension {} of a 0-dim tensor", dim);
  const Tensor lines = clone(transpose(self, 0, d), MemoryFormat::Contiguous);
  if (lines.numel() == SymInt(0)) {
    FL_CHECK(lines.size(0) == SymInt(0), RuntimeError,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    const Tensor none = zeros({SymInt(0)}, DType::Int64, self.device());
    return {clone(self), none, none};
  }
  const Tensor order = order_of_rows(reshape(lines, {lines.size(0), SymInt(-1)}));
  auto [values, group, counts] = runs(index_select(lines, 0, order), return_inverse, return_counts);
  if (return_inverse) group = _scatter(zeros_like(order), 0, order, group, "set");
  return {clone(transpose(values, 0, d), MemoryFormat::Contiguous), group, counts};
}

void define_distinct(OpTable& t) {
  constexpr Tag kTags = kCounts | Tag::NoOut | Tag::DataDependent;
  const Samples options{.dtypes = dtypes::integers | dtypes::floats, .gradient = false};
  t.define(unique_consecutive,
           {.doc = "Elements, or lines along a dimension, that differ from the one before; for each the run "
                   "that it belongs to, and for each run its length, if asked for.",
            .tags = kTags,
            .decompose = distinct_neighbours,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{m.make({9}, 0, 1), true, true}, "", ""},
                                             {{m.make({4, 2}, 0, 1), true, true, 0}, "lines", ""},
                                             {{m.make({0}, 0, 1)}, "none", ""}};
                },
                options)});
  t.define(
      unique_dim,
      {.doc = "The distinct lines along a dimension, in order from their first element on; for each line "
              "its place among them, and how often each occurs, if asked for.",
       .tags = kTags,
       .decompose = distinct_lines,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{{{m.make({6, 2}, 0, 1), 0, true, true, true}, "", ""},
                                        {{m.make({2, 5}, 0, 1), 1, true, true}, "columns", ""}};
           },
           options)});
}

}  // namespace

void define_histogram(OpTable& t) {
  define_histograms(t);
  define_many_dims(t);
  define_distinct(t);
}

}  // namespace fl
