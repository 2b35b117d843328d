#include "flambeau/ops/prims/sort.h"

#include <limits>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr int kDim = 2;

InferResult sort_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  FL_CHECK(!is_complex(in.dtype), TypeError, "Sort does not support complex dtypes, got {}", name(in.dtype));
  wrap_dim(c.arg(kDim).to_int(), in.dim());
  InferResult r = rule::same_as_input().function(c, 0);
  r.push_back(r[0]);
  r[1].dtype = DType::Int64;
  return r;
}

/// Back to where each value came from.
Tensor sort_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec& in = c.in_spec(0);
  return _scatter(zeros(in.sizes, g.dtype(), g.device()), c.arg(kDim).to_int(), c.out(1), g, "set");
}

using Pair = std::tuple<Tensor, Tensor>;

Pair sorted(const Tensor& self, int64_t dim, bool descending) {
  return stable_sort(self, std::optional<bool>(true), dim, descending);
}

/// Entry k along the dimension of each.
Pair picked(const Pair& both, int64_t dim, SymInt k, bool keepdim) {
  const auto at = [&](const Tensor& x) {
    if (x.dim() == 0) return x;
    return clone(keepdim ? narrow(x, dim, k, 1) : select(x, dim, k), MemoryFormat::Contiguous);
  };
  return {at(std::get<0>(both)), at(std::get<1>(both))};
}

SymInt length(const Tensor& x, int64_t dim) { return x.dim() == 0 ? SymInt(1) : x.size(dim); }

Pair largest_k(Tensor self, SymInt k, int64_t dim, bool largest, bool) {
  wrap_dim(dim, self.dim());
  FL_CHECK(k >= SymInt(0) && k <= length(self, dim), RuntimeError,
           "selected index k out of range: {} of a dimension of size {}", k, length(self, dim));
  const auto [values, indices] = sorted(self, dim, largest);
  if (self.dim() == 0) return {values, indices};
  return {clone(narrow(values, dim, 0, k), MemoryFormat::Contiguous),
          clone(narrow(indices, dim, 0, k), MemoryFormat::Contiguous)};
}

Pair kth(Tensor self, SymInt k, int64_t dim, bool keepdim) {
  wrap_dim(dim, self.dim());
  FL_CHECK(length(self, dim) > SymInt(0), IndexError,
           "kthvalue(): Expected reduction dim {} to have non-zero size.", dim);
  FL_CHECK(k > SymInt(0) && k <= length(self, dim), RuntimeError,
           "kthvalue(): selected number k out of range for dimension {}: {} of {}", dim, k,
           length(self, dim));
  return picked(sorted(self, dim, false), dim, k - SymInt(1), keepdim);
}

/// The lower of two middle elements; nan, which sorts last, if there is one.
Pair median_along(Tensor self, int64_t dim, bool keepdim) {
  wrap_dim(dim, self.dim());
  const SymInt n = length(self, dim);
  FL_CHECK(n > SymInt(0), IndexError, "median(): Expected reduction dim {} to have non-zero size.", dim);
  const Pair both = sorted(self, dim, false);
  const Pair middle = picked(both, dim, (n - SymInt(1)) / SymInt(2), keepdim);
  if (!is_floating(self.dtype())) return middle;
  const Pair last = picked(both, dim, n - SymInt(1), keepdim);
  const Tensor missing = isnan(std::get<0>(last));
  return {where(missing, std::get<0>(last), std::get<0>(middle)),
          where(missing, std::get<1>(last), std::get<1>(middle))};
}

std::vector<Sample> dim_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({3, 5})}, "", ""},
          {{x({3, 5}), 0, true}, "columns, descending", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), 1}, "transposed", ""},
          {{x({})}, "0-dim", ""},
          {{x({2, 0})}, "size 0", ""},
          {{x({3}), 1}, "no such dimension", "IndexError: out of range"}};
}
std::vector<Sample> stable_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = dim_samples(m, o);
  for (Sample& s : out) s.args.insert(s.args.begin() + 1, Value(true));
  return out;
}

void define_sorts(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace;
  const Samples plain = samples::custom(dim_samples, {.dtypes = dtypes::real});
  const Samples stable = samples::custom(stable_samples, {.dtypes = dtypes::real});
  t.define(stable_sort,
           {.doc = "The elements along a dimension in order, equal ones in the order in which they "
                   "stand, and their positions; nan counts as the largest.",
            .tags = kTags,
            .infer = sort_rule,
            .library = LibraryCall::Sort,
            .saves = saves::out({1}),
            .grad = sort_gradient,
            .samples = stable});
  t.define(sort, {.doc = "The elements along a dimension in order, and their positions.",
                  .tags = kTags,
                  .decompose = [](Tensor self, int64_t dim,
                                  bool descending) { return sorted(self, dim, descending); },
                  .samples = plain});
  t.define(argsort, {.doc = "The positions of the elements along a dimension in order.",
                     .tags = kTags,
                     .decompose = [](Tensor self, int64_t dim,
                                     bool descending) { return std::get<1>(sorted(self, dim, descending)); },
                     .samples = plain});
  t.define(stable_argsort,
           {.doc = "The positions of the elements along a dimension in order, equal ones as they stand.",
            .tags = kTags,
            .decompose = [](Tensor self, bool, int64_t dim,
                            bool descending) { return std::get<1>(sorted(self, dim, descending)); },
            .samples = stable});
  t.define(msort, {.doc = "The elements along the first dimension in order.",
                   .tags = kTags,
                   .decompose = [](Tensor self) { return std::get<0>(sorted(self, 0, false)); },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         return std::vector<Sample>{{{m.make({4, 3}, o.low, o.high)}, "", ""}};
                       },
                       {.dtypes = dtypes::real})});
}

void define_order_statistics(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace;
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::integers | dtypes::floats});
  };
  t.define(topk,
           {.doc = "The k largest (or smallest) elements along a dimension in order, and their positions.",
            .tags = kTags,
            .decompose = largest_k,
            .samples = options([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({3, 5}, o.low, o.high), 2}, "", ""},
                  {{m.make({5, 3}, o.low, o.high), 3, 0, false}, "smallest of columns", ""},
                  {{m.make({3}, o.low, o.high), 4}, "too many", "RuntimeError: out of range"}};
            })});
  t.define(kthvalue, {.doc = "The k-th smallest element along a dimension, counted from 1, and its position.",
                      .tags = kTags,
                      .decompose = kth,
                      .samples = options([](SampleMaker& m, const Samples& o) {
                        return std::vector<Sample>{
                            {{m.make({3, 5}, o.low, o.high), 2}, "", ""},
                            {{m.make({3, 5}, o.low, o.high), 1, 0, true}, "kept", ""},
                            {{m.make({3}, o.low, o.high), 4}, "too many", "RuntimeError: out of range"}};
                      })});
  t.define(median_dim,
           {.doc = "The middle element along a dimension (of two the lower) and its position; nan if "
                   "there is one.",
            .tags = kTags,
            .decompose = median_along,
            .samples = options([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({3, 5}, o.low, o.high), 1}, "", ""},
                                         {{m.make({4, 3}, o.low, o.high), 0, true}, "kept", ""}};
            })});
  t.define(median, {.doc = "The middle of all elements, of two the lower.",
                    .tags = kTags,
                    .decompose =
                        [](Tensor self) {
                          const Tensor flat = reshape(self, {SymInt(-1)});
                          if (flat.sizes()[0] == SymInt(0))
                            return full({}, std::numeric_limits<double>::quiet_NaN(), self.dtype(),
                                        self.device());
                          return std::get<0>(median_along(flat, 0, false));
                        },
                    .samples = options([](SampleMaker& m, const Samples& o) {
                      return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                                                 {{m.make({}, o.low, o.high)}, "0-dim", ""}};
                    })});
}

/// Runs of equal elements after sorting; how many there are depends on the elements.
std::tuple<Tensor, Tensor, Tensor> distinct(Tensor self, bool, bool return_inverse, bool return_counts) {
  const Tensor flat = reshape(self, {SymInt(-1)});
  const SymInt n = flat.sizes()[0];
  const Tensor none = zeros({SymInt(0)}, DType::Int64, self.device());
  if (n == SymInt(0))
    return {clone(flat), return_inverse ? zeros(self.sizes(), DType::Int64, self.device()) : none, none};
  const auto [values, from] = sorted(flat, 0, false);
  const Tensor first = full({SymInt(1)}, true, DType::Bool, self.device());
  const Tensor changes = ne(narrow(values, 0, 1, n - SymInt(1)), narrow(values, 0, 0, n - SymInt(1)));
  const Tensor starts = cat(std::vector<Tensor>{first, changes}, 0);
  const Tensor at = select(nonzero(starts), 1, 0);
  const Tensor out = _index(values, std::vector<Tensor>{at});
  Tensor inverse = none, counts = none;
  if (return_inverse) {
    const Tensor group = sub(cumsum(starts, 0), 1);
    inverse = reshape(_scatter(zeros({n}, DType::Int64, self.device()), 0, from, group, "set"), self.sizes());
  }
  if (return_counts) {
    const Tensor end = full({SymInt(1)}, Scalar(n), DType::Int64, self.device());
    counts = sub(cat(std::vector<Tensor>{slice(at, 0, 1, std::nullopt, 1), end}, 0), at);
  }
  return {out, inverse, counts};
}

/// Guards for sequences of as many elements up to a factor of two.
int64_t bits_of(SymInt size) {
  int64_t bits = 0;
  while (SymInt(int64_t{1} << bits) <= size) ++bits;
  return bits;
}
Tensor searched(const Tensor& sequence, const Tensor& values, bool out_int32, bool right) {
  FL_CHECK(sequence.dim() > 0, RuntimeError,
           "torch.searchsorted(): boundaries tensor should have positive dimension");
  return _search(sequence, values, out_int32, right, bits_of(sequence.size(-1)));
}

/// Steps of descending powers of two: each is taken where the element it lands after still lies before the
/// value.
Lowered lower_search(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const std::vector<Expr> sequence = c.sizes(0);
  const bool right = c.arg(3).to_bool(), one_for_all = sequence.size() == 1;
  const Expr n = sequence.back();
  const int64_t bits = c.arg(4).to_int();
  const DType dtype = compute_dtype(promote(c.spec(0).dtype, c.spec(1).dtype));
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    const Val value = s.cast(s.load(1, i), dtype);
    const auto number = [&](int64_t k) { return s.constant(DType::Int64, k); };
    Val position = number(0);
    for (int64_t bit = bits - 1; bit >= 0; --bit) {
      const Val next = s.add(position, number(int64_t{1} << bit)), inside = s.le(next, s.index(n));
      Index at(i.begin(), i.begin() + (one_for_all ? 0 : i.size() - 1));
      at.push_back(s.as_index(s.select(inside, s.sub(next, number(1)), number(0))));
      const Val element = s.cast(s.load(0, at, inside), dtype);
      const Val before = right ? s.bit_not(s.lt(value, element)) : s.lt(element, value);
      position = s.select(s.bit_and(inside, before), next, position);
    }
    return std::vector<Val>{position};
  };
  return l;
}

InferResult search_rule(const InferCtx& c, int) {
  const TensorSpec &sequence = c.spec(0), &values = c.spec(1);
  bool fits = sequence.dim() == 1 || (sequence.dim() == values.dim() && sequence.dim() > 0);
  for (int d = 0; fits && sequence.dim() > 1 && d + 1 < sequence.dim(); ++d)
    fits = sequence.sizes[d] == values.sizes[d];
  FL_CHECK(fits, RuntimeError,
           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
           "boundaries tensor and input value tensor must match, but we got boundaries tensor {} and input "
           "value tensor {}",
           to_string(sequence.sizes), to_string(values.sizes));
  return {make_spec(values.sizes, c.flag(2) ? DType::Int32 : DType::Int64, values.device)};
}

void define_search(OpTable& t) {
  t.define(
      searchsorted,
      {.doc = "Where each value would go into a sorted sequence: before the elements that are not less, or "
              "after those that are not greater (right). One sequence for all values, or one a line.",
       .tags = Tag::NoInPlace | Tag::NonDifferentiable,
       .decompose =
           [](Tensor sequence, Tensor self, bool out_int32, bool right, std::optional<std::string_view> side,
              Tensor sorter) {
             FL_CHECK(!side || *side == "left" || *side == "right", RuntimeError,
                      "torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side);
             const Tensor in_order = sorter.defined() ? gather(sequence, -1, sorter) : sequence;
             return searched(in_order, self, out_int32, right || (side && *side == "right"));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const Tensor steps = to_dtype(tensor_from<double>({-2, -1, 0, 0, 1, 2, 2}, Sizes{7}), m.dtype());
             const Tensor two = to_dtype(tensor_from<double>({0, 1, 2, 0, 1, 1}, Sizes{2, 3}), m.dtype());
             return std::vector<Sample>{
                 {{steps, m.make({3, 4}, o.low, o.high)}, "", ""},
                 {{steps, steps, true, true}, "right, int32", ""},
                 {{two, m.make({2, 5}, o.low, o.high), false, false, "right"}, "lines", ""},
                 {{two, m.make({3, 5}, o.low, o.high)}, "sizes", "RuntimeError: must match"}};
           },
           {.dtypes = dtypes::full_floats | DTypeSet{DType::Int32, DType::Int64}})});
  t.define(_search,
           {.doc = "`searchsorted` of a sequence in order.",
            .tags = Tag::NoInPlace | Tag::NoOut | Tag::NonDifferentiable,
            .infer = search_rule,
            .lower = lower_search,
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              const Tensor steps = to_dtype(tensor_from<double>({-2, 0, 0, 1, 2}, Sizes{5}), m.dtype());
              return std::vector<Sample>{{{steps, m.make({3, 4}, o.low, o.high), false, true, 3}, "", ""}};
            })});
  t.define(bucketize,
           {.doc = "Which interval between sorted boundaries each element lies in; an element equal to "
                   "a boundary lies before it, or after it (right).",
            .tags = Tag::NoInPlace | Tag::NonDifferentiable,
            .decompose = [](Tensor self, Tensor boundaries, bool out_int32,
                            bool right) { return searched(boundaries, self, out_int32, right); },
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              const Tensor steps = to_dtype(tensor_from<double>({-2, 0, 1}, Sizes{3}), m.dtype());
              return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), steps}, "", ""},
                                         {{steps, steps, false, true}, "right", ""}};
            })});
}

void define_counts(OpTable& t) {
  t.define(unique,
           {.doc = "The distinct elements in order; for each element the position of its equal, and for "
                   "each distinct one how many there are, if asked for.",
            .tags = Tag::NoInPlace | Tag::NoOut | Tag::NonDifferentiable | Tag::DataDependent,
            .decompose = distinct,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), true, true, true}, "", ""},
                                             {{m.make({0}, o.low, o.high)}, "size 0", ""}};
                },
                {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(
      bincount,
      {.doc = "How often each number from 0 on occurs in a vector, or the sum of the weights at it; at least "
              "minlength numbers.",
       .tags = Tag::NoInPlace | Tag::NoOut | Tag::NonDifferentiable | Tag::DataDependent,
       .decompose =
           [](Tensor self, Tensor weights, SymInt minlength) {
             FL_CHECK(self.dim() == 1 && is_integral(self.dtype()), RuntimeError,
                      "bincount only supports 1-d non-negative integral inputs.");
             FL_CHECK(minlength >= SymInt(0), RuntimeError, "minlength should be >= 0, got {}", minlength);
             SymInt size = minlength;
             if (self.sizes()[0] != SymInt(0)) {
               FL_CHECK(amin(self).item().to_int() >= 0, RuntimeError,
                        "bincount only supports 1-d non-negative integral inputs.");
               size = max(size, SymInt(amax(self).item().to_int() + 1));
             }
             const DType dtype = !weights.defined()                  ? DType::Int64
                                 : weights.dtype() == DType::Float32 ? DType::Float32
                                                                     : DType::Float64;
             const Tensor values = weights.defined()
                                       ? to_dtype(weights, dtype)
                                       : expand(full({}, 1, dtype, self.device()), self.sizes());
             return _index_put(zeros({size}, dtype, self.device()),
                               std::vector<Tensor>{to_dtype(self, DType::Int64)}, values, true);
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{{{m.make_index({7}, 0, 4)}, "", ""},
                                        {{m.make_index({7}, 0, 4), m.make({7}), 6}, "weights", ""},
                                        {{m.make_index({2, 2}, 0, 4)}, "matrix", "RuntimeError: 1-d"},
                                        {{m.make_index({2}, 0, 4), Value(), -1},
                                         "length",
                                         "RuntimeError: minlength should be >= 0, got -1"}};
           },
           {.gradient = false})});
}

}  // namespace

void define_sort(OpTable& t) {
  define_sorts(t);
  define_order_statistics(t);
  define_search(t);
  define_counts(t);
}

}  // namespace fl
