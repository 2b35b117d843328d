#include "flambeau/ops/aten/quantile.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kPlain = Tag::NoInPlace;
using Pair = std::tuple<Tensor, Tensor>;

enum class Nan { Spreads, Skipped };

void check_quantile(const Tensor& self, const Tensor& q, std::string_view interpolation) {
  FL_CHECK(self.numel() > SymInt(0), RuntimeError, "quantile() input tensor must be non-empty");
  FL_CHECK(q.dim() <= 1, RuntimeError, "quantile() q must be a scalar or 1D tensor");
  FL_CHECK(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, RuntimeError,
           "quantile() input tensor must be either float or double dtype, got {}", name(self.dtype()));
  FL_CHECK(self.dtype() == q.dtype(), RuntimeError,
           "quantile() q tensor must be same dtype as the input tensor, got {} and {}", name(q.dtype()),
           name(self.dtype()));
  for (const char* known : {"linear", "lower", "higher", "midpoint", "nearest"})
    if (interpolation == known) return;
  FL_RAISE(RuntimeError,
           "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}",
           interpolation);
}

/// Where between sorted elements each quantile lies: a last dimension, one entry for each q.
Tensor ranks_of(const Tensor& sorted, const Tensor& q, Nan mode) {
  const SymInt n = sorted.size(-1);
  if (mode == Nan::Skipped) {
    const Tensor count = sum(logical_not(isnan(sorted)), IntList{SymInt(-1)}, true);
    return mul(q, to_dtype(clamp_min(sub(count, 1), 0), q.dtype()));
  }
  const Tensor last = narrow(sorted, -1, n - SymInt(1), 1);
  const Tensor ranks = mul(q, Scalar(n - SymInt(1)));
  return where(isnan(last), to_dtype(full({}, Scalar(n - SymInt(1))), q.dtype()), ranks);
}

Tensor interpolated(const Tensor& sorted, const Tensor& ranks, std::string_view how) {
  const auto at = [&](const Tensor& rank) {
    Sizes sizes = sorted.sizes();
    sizes.back() = rank.size(-1);
    return gather(sorted, -1, expand(to_dtype(rank, DType::Int64), sizes));
  };
  if (how == "lower") return at(floor(ranks));
  if (how == "higher") return at(ceil(ranks));
  if (how == "nearest") return at(round(ranks));
  const Tensor below = at(floor(ranks)), above = at(ceil(ranks));
  const Tensor weight = how == "midpoint" ? sub(ceil(ranks), floor(ranks)) : sub(ranks, floor(ranks));
  return lerp(below, above, how == "midpoint" ? mul(weight, 0.5) : weight);
}

Tensor quantiles(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                 std::string_view interpolation, Nan mode) {
  check_quantile(self, q, interpolation);
  if (is_readable(q) && q.numel() > SymInt(0)) {
    for (const double p : q.to_vector<double>())
      FL_CHECK(p >= 0 && p <= 1, RuntimeError, "quantile() q must be in the range [0, 1] but got {}", p);
  }
  const bool whole = !dim || self.dim() == 0;
  const int64_t d = dim ? wrap_dim(*dim, self.dim()) : 0;
  Tensor lines = whole ? reshape(self, {SymInt(-1)}) : movedim(self, {SymInt(d)}, {SymInt(-1)});
  lines = std::get<0>(stable_sort(lines, std::optional<bool>(true), -1, false));
  const Tensor points = reshape(q, {SymInt(-1)});
  Tensor out = interpolated(lines, ranks_of(lines, points, mode), interpolation);
  out = movedim(out, {SymInt(-1)}, {SymInt(0)});
  if (keepdim && self.dim() > 0) {
    Sizes kept{points.size(0)};
    for (int k = 0; k < self.dim(); ++k) kept.push_back(whole || k == d ? SymInt(1) : self.sizes()[k]);
    out = reshape(out, kept);
  }
  return clone(q.dim() == 0 ? select(out, 0, 0) : out, MemoryFormat::Contiguous);
}

Tensor as_tensor_like(double q, const Tensor& self) {
  FL_CHECK(q >= 0 && q <= 1, RuntimeError, "quantile() q must be in the range [0, 1] but got {}", q);
  return full({}, q, is_floating(self.dtype()) ? self.dtype() : DType::Float32, self.device());
}

std::vector<Sample> quantile_samples(SampleMaker& m, const Samples& o, const std::vector<Value>& q) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({7}), q[0]}, "", ""},
          {{x({3, 5}), q[1], 1}, "rows", ""},
          {{x({3, 5}), q[0], 0, true, "lower"}, "lower", ""},
          {{x({3, 5}), q[1], 1, false, "higher"}, "higher", ""},
          {{x({4, 2}), q[0], Value(), true, "midpoint"}, "midpoint", ""},
          {{x({2, 3}), q[1], -1, false, "nearest"}, "nearest", ""},
          {{x({}), q[0]}, "0-dim", ""},
          {{x({2}), q[0], Value(), false, "cubic"}, "how", "RuntimeError: must be one of"},
          {{x({0}), q[0]}, "none", "RuntimeError: non-empty"}};
}

void define_quantiles(OpTable& t) {
  const Samples with_tensor = samples::custom([](SampleMaker& m, const Samples& o) {
    const auto q = [&](std::vector<double> v, IntList sizes) {
      return Value(to_dtype(tensor_from<double>(v, sizes), m.dtype()));
    };
    return quantile_samples(m, o, {q({0.3}, {}), q({0.1, 0.6, 0.9}, {SymInt(3)})});
  });
  // Finite differences by q mean nothing at its ends, and of nan.
  const Samples with_number = samples::custom([](SampleMaker& m, const Samples& o) {
    return quantile_samples(m, o, {Value(0.4), Value(0.75)});
  });
  t.define(
      quantile,
      {.doc = "The q-quantiles along a dimension (of all elements without one), between neighbours as "
              "interpolation says: linear, lower, higher, midpoint or nearest. nan if there is one.",
       .tags = kPlain,
       .decompose = [](Tensor self, Tensor q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view how) { return quantiles(self, q, dim, keepdim, how, Nan::Spreads); },
       .samples = with_tensor});
  t.define(quantile_at,
           {.doc = "`quantile` at one number.",
            .tags = kPlain,
            .decompose =
                [](Tensor self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
                  return quantiles(self, as_tensor_like(q, self), dim, keepdim, how, Nan::Spreads);
                },
            .samples = with_number});
  t.define(
      nanquantile,
      {.doc = "`quantile` of the elements that are not nan; nan where all are.",
       .tags = kPlain,
       .decompose = [](Tensor self, Tensor q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view how) { return quantiles(self, q, dim, keepdim, how, Nan::Skipped); },
       .samples = with_tensor});
  t.define(nanquantile_at,
           {.doc = "`nanquantile` at one number.",
            .tags = kPlain,
            .decompose =
                [](Tensor self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
                  return quantiles(self, as_tensor_like(q, self), dim, keepdim, how, Nan::Skipped);
                },
            .samples = with_number});
}

/// One entry of each line: position is an index with the dimension kept.
Pair picked(const Tensor& values, const Tensor& indices, int64_t dim, const Tensor& position, bool keepdim) {
  const auto at = [&](const Tensor& x) {
    const Tensor kept = gather(x, dim, position);
    return keepdim ? kept : squeeze_dims(kept, {SymInt(dim)});
  };
  return {at(values), at(indices)};
}

Pair median_without_nan(Tensor self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim());
  if (self.dim() == 0) return {clone(self), zeros({}, DType::Int64, self.device())};
  FL_CHECK(self.size(d) > SymInt(0), IndexError, "median(): Expected reduction dim {} to have non-zero size.",
           dim);
  const auto [values, indices] = stable_sort(self, std::optional<bool>(true), d, false);
  const Tensor count = sum(logical_not(isnan(values)), IntList{SymInt(d)}, true);
  return picked(values, indices, d, _div_trunc(clamp_min(sub(count, 1), 0), 2), keepdim);
}

/// The end of the longest run of equals among sorted elements, of the first of several.
Pair most_frequent(Tensor self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim());
  if (self.dim() == 0) return {clone(self), zeros({}, DType::Int64, self.device())};
  const SymInt n = self.size(d);
  FL_CHECK(n > SymInt(0), IndexError, "mode(): Expected reduction dim {} to have non-zero size.", dim);
  const auto [values, indices] = stable_sort(self, std::optional<bool>(true), d, false);
  const Tensor after = narrow(values, d, 1, n - SymInt(1)), before = narrow(values, d, 0, n - SymInt(1));
  const Tensor first = full_like(narrow(values, d, 0, 1), true, DType::Bool);
  const Tensor starts = cat(std::vector<Tensor>{first, ne(after, before)}, d);
  Sizes along(self.dim(), SymInt(1));
  along[d] = n;
  const Tensor position = view(arange_end(n, DType::Int64, self.device()), along);
  const Tensor start = std::get<0>(cummax(where(starts, position, 0), d));
  return picked(values, indices, d, argmax(sub(position, start), d, true), keepdim);
}

void define_frequent(OpTable& t) {
  const Samples lines = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{{{m.make({3, 5}, o.low, o.high), 1}, "", ""},
                                   {{m.make({4, 3}, o.low, o.high), 0, true}, "kept", ""},
                                   {{m.make({}, o.low, o.high), 0}, "0-dim", ""},
                                   {{m.make({2, 0}, o.low, o.high), 1}, "none", "IndexError: non-zero size"}};
      },
      {.dtypes = dtypes::integers | dtypes::floats});
  t.define(nanmedian_dim,
           {.doc = "The middle of the elements along a dimension that are not nan (of two the lower), and "
                   "its position; nan where all are.",
            .tags = kPlain,
            .decompose = median_without_nan,
            .samples = lines});
  t.define(nanmedian, {.doc = "The middle of all elements that are not nan, of two the lower.",
                       .tags = kPlain | Tag::NoOut,
                       .decompose =
                           [](Tensor self) {
                             if (self.numel() == SymInt(0))
                               return full({}, std::nan(""), self.dtype(), self.device());
                             return std::get<0>(median_without_nan(reshape(self, {SymInt(-1)}), 0, false));
                           },
                       .samples = samples::custom(
                           [](SampleMaker& m, const Samples& o) {
                             return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                                                        {{m.make({}, o.low, o.high)}, "0-dim", ""}};
                           },
                           {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(mode,
           {.doc = "The most frequent element along a dimension, the smallest of several, and a position "
                   "where it stands.",
            .tags = kPlain,
            .decompose = most_frequent,
            .samples = lines});
}

}  // namespace

void define_quantile(OpTable& t) {
  define_quantiles(t);
  define_frequent(t);
}

}  // namespace fl
