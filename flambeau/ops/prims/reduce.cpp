#include "flambeau/ops/prims/reduce.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/reduced_dims.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

// Arguments: self, dims (or one dim), keepdim and, of sums and products, dtype.
constexpr int kDims = 1, kKeepDim = 2, kDType = 3;

ReducedDims dims_of(const Value& dims, int rank, const Value& keepdim, bool empty_is_all = true) {
  const bool keep = keepdim.to_bool();
  if (dims.tag() == Value::Tag::Int) return ReducedDims::one(dims.to_int(), rank, keep);
  return ReducedDims::of(dims, rank, keep, empty_is_all);
}
ReducedDims dims_of(const LowerCtx& c, bool empty_is_all = true) {
  return dims_of(c.arg(kDims), c.spec(0).dim(), c.arg(kKeepDim), empty_is_all);
}
ReducedDims dims_of(GradCtx& c) { return dims_of(c.arg(kDims), c.in_spec(0).dim(), c.arg(kKeepDim)); }

/// Integers and bool add up to int64.
InferResult sum_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  const DType own = is_integral(in.dtype, true) ? DType::Int64 : in.dtype;
  const DType dtype = c.has(kDType) ? c.arg(kDType).dtype() : own;
  return {reduced_spec(in, dims_of(c.arg(kDims), in.dim(), c.arg(kKeepDim)), dtype)};
}

Lowered lower_sum(const LowerCtx& c, ReduceOp op) {
  const ReducedDims dims = dims_of(c);
  Lowered l = reduction_over(c, dims, op);
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [dims, dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    return std::vector<Val>{converted(s, s.load(0, dims.input_index(i, r)), dtype)};
  };
  return l;
}

Tensor sum_gradient(GradCtx& c, const Tensor& g) {
  return expand(dims_of(c).with_kept_dims(g), c.in_spec(0).sizes);
}

InferResult mean_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  const DType dtype = c.has(kDType) ? c.arg(kDType).dtype() : in.dtype;
  FL_CHECK(is_floating(dtype) || is_complex(dtype), NotImplementedError,
           "mean(): could not infer output dtype. {} dtype must be either a floating point or complex dtype. "
           "Got: {}",
           c.has(kDType) ? "Optional" : "Input", name(dtype));
  return {reduced_spec(in, dims_of(c.arg(kDims), in.dim(), c.arg(kKeepDim)), dtype)};
}

Lowered lower_mean(const LowerCtx& c) {
  Lowered l = lower_sum(c, ReduceOp::Sum);
  Expr count(1);
  for (const Expr& e : l.reduce_sizes) count *= e;
  l.finish = [count](BodyOps& s, std::span<const Expr>, std::span<const Val> results) {
    return std::vector<Val>{s.div(results[0], s.cast(s.index(count), results[0].dtype))};
  };
  return l;
}

Tensor mean_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec& in = c.in_spec(0);
  const ReducedDims dims = dims_of(c);
  return expand(dims.with_kept_dims(div(g, dims.count(in.sizes))), in.sizes);
}

/// The product of the others: out / x, but for an element 0 the product of those that are not 0, and 0 where
/// another one is 0.
Tensor prod_gradient(GradCtx& c, const Tensor& g) {
  const ReducedDims dims = dims_of(c);
  const DType dtype = c.out_spec(0).dtype;
  const Tensor x = to_dtype(c.in(0), dtype), zero = eq(x, 0);
  const Tensor zeros_among = sum(zero, dims.list_as_sizes(), true);
  const int64_t d = dims.rank() > 0 ? dims.list()[0] : 0;
  const Tensor of_others = prod(where(zero, 1, x), d, true);
  const Tensor out = dims.with_kept_dims(c.out(0)), slope = dims.with_kept_dims(g);
  const Tensor at_zero = mul(slope, conj_if_complex(where(eq(zeros_among, 1), of_others, 0)));
  const Tensor elsewhere = mul(slope, conj_if_complex(div(out, where(zero, 1, x))));
  return where(zero, at_zero, elsewhere);
}

std::vector<Sample> dims_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = samples::with_arguments(m, o, {{Value()}});
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto add = [&](std::string note, Value a, Value dims, Value keep, std::string error = "") {
    out.push_back({{std::move(a), std::move(dims), std::move(keep)}, std::move(note), std::move(error)});
  };
  add("last", x({3, 5}), Sizes{-1}, false);
  add("first, kept", x({3, 5}), Sizes{0}, true);
  add("two", x({2, 3, 4}), Sizes{0, 2}, false);
  add("two, kept", m.make_transposed({2, 3, 4}, o.low, o.high), Sizes{-1, 1}, true);
  add("strided", m.make_strided({3, 4}, o.low, o.high), Sizes{1}, false);
  add("one element", x({1, 1}), Sizes{0}, false);
  add("0-dim", x({}), Sizes{0}, false);
  add("size 0 stays", x({0, 3}), Sizes{1}, false);
  add("no such dimension", x({3}), Sizes{1}, false, "IndexError: out of range");
  add("twice", x({3, 4}), Sizes{1, -1}, false, "RuntimeError: multiple times");
  return out;
}
std::vector<Sample> sum_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = dims_samples(m, o);
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  out.push_back({{x({2, 0}), Sizes{1}, false}, "none to add", ""});
  out.push_back({{x({2, 3}), Sizes{1}, false, DType::Float64}, "dtype", ""});
  return out;
}
std::vector<Sample> mean_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = sum_samples(m, o);
  out.push_back(
      {{m.make({2, 3}, DType::Int64, 0, 9), Sizes{1}}, "integers", "NotImplementedError: could not infer"});
  return out;
}
std::vector<Sample> one_dim_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({3, 5}), 1}, "", ""},
          {{x({3, 5}), 0, true}, "kept", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), -2}, "transposed", ""},
          {{x({}), 0}, "0-dim", ""},
          {{x({0, 3}), 1}, "size 0 stays", ""},
          {{x({3}), 1}, "no such dimension", "IndexError: out of range"}};
}

void define_sums(OpTable& t) {
  t.define(sum,
           {.doc = "The sum over dimensions (all without `dim`), in float32 for half precision; integers "
                   "and bool add up to int64. With `dtype` the elements are converted first.",
            .tags = Tag::Reduction | Tag::NoInPlace,
            .infer = sum_rule,
            .lower = [](const LowerCtx& c) { return lower_sum(c, ReduceOp::Sum); },
            .grad = sum_gradient,
            .samples = samples::custom(sum_samples, {.dtypes = dtypes::all})});
  t.define(
      mean,
      {.doc = "The mean over dimensions (all without `dim`), in float32 for half precision. With `dtype` the "
              "elements are converted first.",
       .tags = Tag::Reduction | Tag::NoInPlace,
       .infer = mean_rule,
       .lower = lower_mean,
       .grad = mean_gradient,
       .samples = samples::custom(mean_samples, {.dtypes = dtypes::floats | dtypes::complexes})});
  t.define(prod,
           {.doc = "The product over a dimension; integers and bool multiply to int64. With `dtype` the "
                   "elements are converted first.",
            .tags = Tag::Reduction | Tag::NoInPlace,
            .infer = sum_rule,
            .lower = [](const LowerCtx& c) { return lower_sum(c, ReduceOp::Prod); },
            .saves = saves::in({0}) | saves::out({0}),
            .grad = prod_gradient,
            .samples = samples::custom(one_dim_samples, {.dtypes = dtypes::all, .tolerance = 1e-4})});
}

/// Raises where elements are needed and there are none.
void check_not_empty(const InferCtx& c, const TensorSpec& in, const ReducedDims& dims) {
  for (const int64_t d : dims.list()) {
    FL_CHECK(!in.sizes[d].same_as(0), IndexError,
             "{}(): Expected reduction dim {} to have non-zero size, got sizes {}", c.op().schema.name, d,
             to_string(in.sizes));
  }
}

InferResult extreme_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  check_dtype(c.op().schema.name, in.dtype, Takes::Real);
  const ReducedDims dims = dims_of(c.arg(kDims), in.dim(), c.arg(kKeepDim));
  const bool given = c.arg(kDims).tag() == Value::Tag::Int || c.ints(kDims).size() > 0;
  FL_CHECK(given || !in.numel().same_as(0), RuntimeError,
           "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
           "with the 'dim' argument.",
           c.op().schema.name);
  check_not_empty(c, in, dims);
  return {reduced_spec(in, dims, in.dtype)};
}

Lowered lower_extreme(const LowerCtx& c, ReduceOp op) {
  const ReducedDims dims = dims_of(c);
  Lowered l = reduction_over(c, dims, op);
  l.body = [dims](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    const Val x = s.load(0, dims.input_index(i, r));
    return std::vector<Val>{x.dtype == DType::Bool ? s.cast(x, DType::UInt8) : x};
  };
  return l;
}

/// Shared equally among the elements that have the extreme value.
Tensor extreme_gradient(GradCtx& c, const Tensor& g) {
  const ReducedDims dims = dims_of(c);
  const Tensor x = c.in(0), out = dims.with_kept_dims(c.out(0));
  const Tensor has_it = logical_or(eq(x, out), logical_and(isnan(x), isnan(out)));
  const Tensor share = div(dims.with_kept_dims(g), sum(has_it, dims.list_as_sizes(), true));
  return where(has_it, share, 0);
}

void define_extremes(OpTable& t) {
  const Samples over = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        std::vector<Sample> out = dims_samples(m, o);
        // Equal elements have no derivative that differences could find.
        std::erase_if(out, [](const Sample& s) { return s.note == "size 0" || s.note == "expanded"; });
        for (Sample& s : out)
          if (s.args[1].is_none()) s.args[1] = Sizes{};
        out.push_back({{m.make({2, 0}), Sizes{1}}, "none", "IndexError: non-zero size"});
        return out;
      },
      {.dtypes = dtypes::real});
  t.define(amax, {.doc = "The maximum over dimensions (all for an empty list); nan if any element is. The "
                         "gradient is shared equally among equal maxima.",
                  .tags = Tag::Reduction | Tag::NoInPlace,
                  .infer = extreme_rule,
                  .lower = [](const LowerCtx& c) { return lower_extreme(c, ReduceOp::Max); },
                  .saves = saves::in({0}) | saves::out({0}),
                  .grad = extreme_gradient,
                  .samples = over});
  t.define(amin, {.doc = "The minimum over dimensions (all for an empty list); nan if any element is. The "
                         "gradient is shared equally among equal minima.",
                  .tags = Tag::Reduction | Tag::NoInPlace,
                  .infer = extreme_rule,
                  .lower = [](const LowerCtx& c) { return lower_extreme(c, ReduceOp::Min); },
                  .saves = saves::in({0}) | saves::out({0}),
                  .grad = extreme_gradient,
                  .samples = over});
}

ReducedDims position_dims(const Value& dim, int rank, const Value& keepdim) {
  const bool keep = keepdim.to_bool();
  return dim.is_none() ? ReducedDims::all(rank, keep) : ReducedDims::one(dim.to_int(), rank, keep);
}

InferResult position_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  check_dtype(c.op().schema.name, in.dtype, Takes::RealNumber);
  const ReducedDims dims = position_dims(c.arg(kDims), in.dim(), c.arg(kKeepDim));
  check_not_empty(c, in, dims);
  return {reduced_spec(in, dims, DType::Int64)};
}

InferResult pair_rule(const InferCtx& c, int) {
  InferResult r = extreme_rule(c, 0);
  r.push_back(r[0]);
  r[1].dtype = DType::Int64;
  return r;
}

/// The extreme value and its position among the reduced elements, in row-major order.
Lowered lower_position(const LowerCtx& c, ReduceOp op) {
  const ReducedDims dims = position_dims(c.arg(kDims), c.spec(0).dim(), c.arg(kKeepDim));
  Lowered l = reduction_over(c, dims, op);
  l.body = [dims, sizes = l.reduce_sizes](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    const Val x = s.load(0, dims.input_index(i, r));
    Expr position(0);
    for (size_t d = 0; d < sizes.size(); ++d) position = position * sizes[d] + r[d];
    return std::vector<Val>{x.dtype == DType::Bool ? s.cast(x, DType::UInt8) : x, s.index(position)};
  };
  return l;
}
Lowered lower_position_only(const LowerCtx& c, ReduceOp op) {
  Lowered l = lower_position(c, op);
  l.finish = [](BodyOps&, std::span<const Expr>, std::span<const Val> results) {
    return std::vector<Val>{results[1]};
  };
  return l;
}

/// The gradient goes to the position that was chosen.
Tensor pair_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec& in = c.in_spec(0);
  const ReducedDims dims = position_dims(c.arg(kDims), in.dim(), c.arg(kKeepDim));
  if (in.dim() == 0) return g;
  const int64_t d = dims.list()[0];
  Sizes along(in.dim(), SymInt(1));
  along[d] = in.sizes[d];
  const Tensor position = view(arange_end(in.sizes[d], DType::Int64, in.device), along);
  const Tensor chosen = eq(position, dims.with_kept_dims(c.out(1)));
  return where(chosen, dims.with_kept_dims(g), 0);
}

void define_positions(OpTable& t) {
  const Samples positions = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        std::vector<Sample> out = one_dim_samples(m, o);
        out.push_back({{m.make({2, 3}, o.low, o.high)}, "all", ""});
        out.push_back({{m.make_transposed({2, 3}, o.low, o.high), Value(), true}, "all, kept", ""});
        out.push_back({{m.make({2, 0}), 1}, "none", "IndexError: non-zero size"});
        return out;
      },
      {.dtypes = dtypes::integers | dtypes::floats});
  t.define(argmax, {.doc = "The position of the maximum along a dimension, or in the flattened tensor; the "
                           "first of equals. nan counts as the maximum.",
                    .tags = Tag::Reduction | Tag::NoInPlace | Tag::NonDifferentiable,
                    .infer = position_rule,
                    .lower = [](const LowerCtx& c) { return lower_position_only(c, ReduceOp::ArgMax); },
                    .samples = positions});
  t.define(argmin, {.doc = "The position of the minimum along a dimension, or in the flattened tensor; the "
                           "first of equals. nan counts as the minimum.",
                    .tags = Tag::Reduction | Tag::NoInPlace | Tag::NonDifferentiable,
                    .infer = position_rule,
                    .lower = [](const LowerCtx& c) { return lower_position_only(c, ReduceOp::ArgMin); },
                    .samples = positions});
  const Samples pairs = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        std::vector<Sample> out = one_dim_samples(m, o);
        out.push_back({{m.make({2, 0}), 1}, "none", "IndexError: non-zero size"});
        return out;
      },
      {.dtypes = dtypes::real});
  t.define(max_dim, {.doc = "The maximum along a dimension and its position, the first of equals.",
                     .tags = Tag::Reduction | Tag::NoInPlace,
                     .infer = pair_rule,
                     .lower = [](const LowerCtx& c) { return lower_position(c, ReduceOp::ArgMax); },
                     .saves = saves::out({1}),
                     .grad = pair_gradient,
                     .samples = pairs});
  t.define(min_dim, {.doc = "The minimum along a dimension and its position, the first of equals.",
                     .tags = Tag::Reduction | Tag::NoInPlace,
                     .infer = pair_rule,
                     .lower = [](const LowerCtx& c) { return lower_position(c, ReduceOp::ArgMin); },
                     .saves = saves::out({1}),
                     .grad = pair_gradient,
                     .samples = pairs});
}

/// The result is bool, but uint8 of uint8.
InferResult truth_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  const DType dtype = in.dtype == DType::UInt8 ? DType::UInt8 : DType::Bool;
  return {reduced_spec(in, dims_of(c.arg(kDims), in.dim(), c.arg(kKeepDim), false), dtype)};
}

Lowered lower_truth(const LowerCtx& c, ReduceOp op) {
  const ReducedDims dims = dims_of(c, false);
  Lowered l = reduction_over(c, dims, op);
  l.body = [dims](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    const Val x = s.load(0, dims.input_index(i, r));
    return std::vector<Val>{x.dtype == DType::Bool ? x : s.ne(x, s.like(x, 0))};
  };
  return l;
}

void define_truths(OpTable& t) {
  const auto samples_of = [](SampleMaker& m, const Samples& o) {
    std::vector<Sample> out = dims_samples(m, o);
    out.push_back({{m.make({2, 0}), Sizes{1}, false}, "none", ""});
    return out;
  };
  const Samples over = samples::custom(samples_of, {.dtypes = dtypes::all, .low = -1, .high = 1});
  t.define(any, {.doc = "Whether any element over dimensions (all without `dim`) is not 0.",
                 .tags = Tag::Reduction | Tag::NoInPlace | Tag::NonDifferentiable,
                 .infer = truth_rule,
                 .lower = [](const LowerCtx& c) { return lower_truth(c, ReduceOp::Any); },
                 .samples = over});
  t.define(all, {.doc = "Whether no element over dimensions (all without `dim`) is 0.",
                 .tags = Tag::Reduction | Tag::NoInPlace | Tag::NonDifferentiable,
                 .infer = truth_rule,
                 .lower = [](const LowerCtx& c) { return lower_truth(c, ReduceOp::All); },
                 .samples = over});
}

}  // namespace

void define_reduce(OpTable& t) {
  define_sums(t);
  define_extremes(t);
  define_positions(t);
  define_truths(t);
}

}  // namespace fl
