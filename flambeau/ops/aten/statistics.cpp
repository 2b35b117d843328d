#include "flambeau/ops/aten/statistics.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/reduced_dims.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using Dims = std::optional<IntList>;
using DTypeOpt = std::optional<DType>;

ReducedDims dims_of(const Dims& dims, int rank, bool keepdim) {
  return ReducedDims::of(dims ? Value(*dims) : Value(), rank, keepdim);
}

void define_means(OpTable& t) {
  constexpr Tag kTags = Tag::Reduction | Tag::NoInPlace;
  t.define(mean_all,
           {.doc = "The mean of all elements.",
            .tags = kTags,
            .decompose = [](Tensor self, DTypeOpt dtype) { return mean(self, Dims(), false, dtype); },
            .samples = samples::unary({.dtypes = dtypes::floats})});
  const Samples with_nan = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const Tensor x = m.make({3, 4}, o.low, o.high);
        const Tensor holes = where(lt(x, 0), std::nan(""), x);
        return std::vector<Sample>{{{holes}, "", ""},
                                   {{holes, Sizes{1}}, "rows", ""},
                                   {{holes, Sizes{0}, true}, "columns, kept", ""},
                                   {{m.make({3}, o.low, o.high)}, "no nan", ""}};
      },
      {.dtypes = dtypes::floats, .gradient = false});
  t.define(nansum, {.doc = "The sum over dimensions with nan counted as 0.",
                    .tags = kTags,
                    .decompose =
                        [](Tensor self, Dims dims, bool keepdim, DTypeOpt dtype) {
                          const Tensor x = is_floating(self.dtype()) ? where(isnan(self), 0, self) : self;
                          return sum(x, dims, keepdim, dtype);
                        },
                    .samples = with_nan});
  t.define(nanmean, {.doc = "The mean over dimensions of the elements that are not nan.",
                     .tags = kTags,
                     .decompose =
                         [](Tensor self, Dims dims, bool keepdim, DTypeOpt dtype) {
                           const DType out = dtype.value_or(self.dtype());
                           const Tensor missing = isnan(self);
                           const Tensor total =
                               sum(where(missing, 0, self), dims, keepdim, compute_dtype(out));
                           return to_dtype(div(total, sum(logical_not(missing), dims, keepdim)), out);
                         },
                     .samples = with_nan});
}

void define_forms_of_reductions(OpTable& t) {
  constexpr Tag kTags = Tag::Reduction | Tag::NoInPlace;
  constexpr Tag kTruth = kTags | Tag::NonDifferentiable;
  const Samples any_dtype = samples::unary({.dtypes = dtypes::all});
  const Samples one_dim = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), 1}, "", ""},
                                   {{m.make({3, 4}, o.low, o.high), -2, true}, "kept", ""}};
      },
      {.dtypes = dtypes::all});
  t.define(sum_all, {.doc = "The sum of all elements.",
                     .tags = kTags,
                     .decompose = [](Tensor self, DTypeOpt dtype) { return sum(self, Dims(), false, dtype); },
                     .samples = any_dtype});
  t.define(prod_all,
           {.doc = "The product of all elements.",
            .tags = kTags,
            .decompose = [](Tensor self,
                            DTypeOpt dtype) { return prod(reshape(self, {SymInt(-1)}), 0, false, dtype); },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2, 3}, o.low, o.high)}, "", ""},
                                             {{m.make({}, o.low, o.high)}, "0-dim", ""},
                                             {{m.make({0}, o.low, o.high)}, "none", ""}};
                },
                {.dtypes = dtypes::all, .tolerance = 1e-4})});
  t.define(any_all, {.doc = "Whether any element is not 0.",
                     .tags = kTruth,
                     .decompose = [](Tensor self) { return any(self); },
                     .samples = any_dtype});
  t.define(any_dim, {.doc = "Whether any element along a dimension is not 0.",
                     .tags = kTruth,
                     .decompose = [](Tensor self, int64_t dim,
                                     bool keepdim) { return any(self, IntList{SymInt(dim)}, keepdim); },
                     .samples = one_dim});
  t.define(all_all, {.doc = "Whether no element is 0.",
                     .tags = kTruth,
                     .decompose = [](Tensor self) { return all(self); },
                     .samples = any_dtype});
  t.define(all_dim, {.doc = "Whether no element along a dimension is 0.",
                     .tags = kTruth,
                     .decompose = [](Tensor self, int64_t dim,
                                     bool keepdim) { return all(self, IntList{SymInt(dim)}, keepdim); },
                     .samples = one_dim});
  const Samples count = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), Sizes{1}}, "", ""},
                                   {{m.make({3, 4}, o.low, o.high), Sizes{0, 1}}, "both", ""}};
      },
      {.dtypes = dtypes::real, .low = -1, .high = 1, .gradient = false});
  t.define(count_nonzero, {.doc = "How many elements over dimensions are not 0.",
                           .tags = kTruth,
                           .decompose = [](Tensor self, IntList dims) { return sum(ne(self, 0), dims); },
                           .samples = count});
  t.define(count_nonzero_dim,
           {.doc = "How many elements along a dimension (of all, without one) are not 0.",
            .tags = kTruth,
            .decompose =
                [](Tensor self, std::optional<int64_t> dim) {
                  return dim ? sum(ne(self, 0), IntList{SymInt(*dim)}) : sum(ne(self, 0), Dims());
                },
            .samples = samples::unary({.dtypes = dtypes::real, .low = -1, .high = 1, .gradient = false})});
}

void check_not_empty(const Tensor& x, const char* op) {
  FL_CHECK(!x.numel().same_as(0), RuntimeError,
           "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
           "with the 'dim' argument.",
           op);
}

void define_forms_of_extremes(OpTable& t) {
  constexpr Tag kTags = Tag::Reduction | Tag::NoInPlace;
  const Samples whole = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                                   {{m.make({}, o.low, o.high)}, "0-dim", ""},
                                   {{m.make({0}, o.low, o.high)}, "none", "RuntimeError: numel() == 0"}};
      },
      {.dtypes = dtypes::real});
  t.define(max_all, {.doc = "The maximum of all elements.",
                     .tags = kTags,
                     .decompose =
                         [](Tensor self) {
                           check_not_empty(self, "max");
                           return amax(self);
                         },
                     .samples = whole});
  t.define(min_all, {.doc = "The minimum of all elements.",
                     .tags = kTags,
                     .decompose =
                         [](Tensor self) {
                           check_not_empty(self, "min");
                           return amin(self);
                         },
                     .samples = whole});
  t.define(max_other, {.doc = "The greater of two elements, as `maximum`.",
                       .tags = Tag::NoInPlace,
                       .decompose = [](Tensor self, Tensor other) { return maximum(self, other); },
                       .samples = samples::binary({.dtypes = dtypes::real})});
  t.define(min_other, {.doc = "The less of two elements, as `minimum`.",
                       .tags = Tag::NoInPlace,
                       .decompose = [](Tensor self, Tensor other) { return minimum(self, other); },
                       .samples = samples::binary({.dtypes = dtypes::real})});
  t.define(aminmax, {.doc = "The minimum and the maximum along a dimension, or of all elements.",
                     .tags = kTags,
                     .decompose =
                         [](Tensor self, std::optional<int64_t> dim, bool keepdim) {
                           const Sizes dims = dim ? Sizes{SymInt(*dim)} : Sizes{};
                           if (!dim) check_not_empty(self, "aminmax");
                           return std::tuple(amin(self, dims, keepdim), amax(self, dims, keepdim));
                         },
                     .samples = samples::custom(
                         [](SampleMaker& m, const Samples& o) {
                           return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                                                      {{m.make({3, 4}, o.low, o.high), 1, true}, "dim", ""}};
                         },
                         {.dtypes = dtypes::real})});
}

/// max(0, count - correction) as a number.
Scalar divisor_of(const SymInt& count, const Scalar& correction) {
  if (correction.is_integral()) return Scalar(max(count - correction.sym_int(), 0));
  return Scalar(std::max(static_cast<double>(count.guard_int()) - correction.to_double(), 0.0));
}
Scalar correction_of(const std::optional<Scalar>& correction) { return correction.value_or(Scalar(1)); }

struct Moments {
  Tensor var, mean;  ///< in the compute dtype
};

/// Two passes: the mean, then the mean of the squared deviations.
Moments moments(const Tensor& self, const Dims& dims, const Scalar& correction, bool keepdim) {
  FL_CHECK(is_floating(self.dtype()), RuntimeError,
           "std and var only support tensors of floating point numbers, got {}", name(self.dtype()));
  const ReducedDims reduced = dims_of(dims, self.dim(), keepdim);
  const Sizes list = reduced.list_as_sizes();
  if (list.empty()) {
    const Tensor x = to_compute(self);
    return {div(zeros_like(x), divisor_of(1, correction)), x};
  }
  const Tensor x = to_compute(self);
  const SymInt count = reduced.count(self.sizes());
  const Tensor center = div(sum(x, list, true), count);
  const Tensor var = div(sum(square(sub(x, center)), list, keepdim), divisor_of(count, correction));
  return {var, keepdim ? center : squeeze_dims(center, list)};
}

/// Of the variance by self: 2 (x - mean) / divisor.
Tensor variance_slope(const Tensor& g, const Tensor& self, const Dims& dims, const Scalar& correction,
                      bool keepdim) {
  const ReducedDims reduced = dims_of(dims, self.dim(), keepdim);
  const SymInt count = reduced.count(self.sizes());
  const Tensor x = to_compute(self);
  const Tensor centered =
      reduced.list().empty() ? zeros_like(x) : sub(x, div(sum(x, reduced.list_as_sizes(), true), count));
  const Tensor scaled = div(mul(reduced.with_kept_dims(to_compute(g)), 2), divisor_of(count, correction));
  return mul(scaled, centered);
}

struct VarianceCall {
  Dims dims;
  Scalar correction;
  bool keepdim;
};
/// Arguments 1 to 3 of the operators with a correction.
VarianceCall variance_call(GradCtx& c) {
  return {c.arg(1).is_none() ? Dims() : Dims(c.arg(1).ints()),
          c.arg(2).is_none() ? Scalar(1) : c.arg(2).scalar(), c.arg(3).to_bool()};
}

Tensor std_slope(const Tensor& g, const Tensor& std_value) {
  const Tensor half = div(to_compute(g), mul(to_compute(std_value), 2));
  return where(eq(std_value, 0), 0, half);
}

Tensor mean_slope(const Tensor& g, const TensorSpec& in, const VarianceCall& v) {
  const ReducedDims reduced = dims_of(v.dims, in.dim(), v.keepdim);
  return expand(div(reduced.with_kept_dims(to_compute(g)), reduced.count(in.sizes)), in.sizes);
}

std::vector<Sample> variance_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({3, 5})}, "", ""},
          {{x({3, 5}), Sizes{1}}, "rows", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), Sizes{0, 2}, 0, true}, "biased, kept", ""},
          {{m.make_strided({3, 4}, o.low, o.high), Sizes{-1}, 2}, "correction", ""},
          {{x({6}), Sizes{0}, 0.5}, "fraction", ""},
          {{m.make({3}, DType::Int64, 0, 3)}, "integers", "RuntimeError: floating point"}};
}
std::vector<Sample> unbiased_samples(SampleMaker& m, const Samples& o) {
  return {{{m.make({3, 5}, o.low, o.high)}, "", ""}, {{m.make({3, 5}, o.low, o.high), false}, "biased", ""}};
}
std::vector<Sample> unbiased_dim_samples(SampleMaker& m, const Samples& o) {
  return {{{m.make({3, 5}, o.low, o.high), Sizes{1}}, "", ""},
          {{m.make({3, 5}, o.low, o.high), Sizes{0}, false, true}, "biased, kept", ""}};
}

void define_variances(OpTable& t) {
  constexpr Tag kTags = Tag::Reduction | Tag::NoInPlace;
  const Samples corrected = samples::custom(variance_samples, {.dtypes = dtypes::floats, .tolerance = 1e-4});
  t.define(var, {.doc = "Sum of squared deviations from the mean over dimensions, divided by max(0, n - "
                        "correction); correction is 1 unless given.",
                 .tags = Tag::Fused | kTags,
                 .decompose =
                     [](Tensor self, Dims dims, std::optional<Scalar> correction, bool keepdim) {
                       return to_dtype(moments(self, dims, correction_of(correction), keepdim).var,
                                       self.dtype());
                     },
                 .saves = saves::in({0}),
                 .grad =
                     [](GradCtx& c, const Tensor& g) {
                       const VarianceCall v = variance_call(c);
                       return to_dtype(variance_slope(g, c.in(0), v.dims, v.correction, v.keepdim),
                                       c.in_spec(0).dtype);
                     },
                 .samples = corrected});
  t.define(
      std_dev,
      {.doc = "The square root of `var`; its gradient is 0 where it is 0.",
       .tags = Tag::Fused | kTags,
       .decompose =
           [](Tensor self, Dims dims, std::optional<Scalar> correction, bool keepdim) {
             return to_dtype(sqrt(moments(self, dims, correction_of(correction), keepdim).var), self.dtype());
           },
       .saves = saves::in({0}) | saves::out({0}),
       .grad =
           [](GradCtx& c, const Tensor& g) {
             const VarianceCall v = variance_call(c);
             return to_dtype(variance_slope(std_slope(g, c.out(0)), c.in(0), v.dims, v.correction, v.keepdim),
                             c.in_spec(0).dtype);
           },
       .samples = corrected});
  t.define(var_mean, {.doc = "`var` and the mean.",
                      .tags = Tag::Fused | kTags,
                      .decompose =
                          [](Tensor self, Dims dims, std::optional<Scalar> correction, bool keepdim) {
                            const Moments m = moments(self, dims, correction_of(correction), keepdim);
                            return std::tuple(to_dtype(m.var, self.dtype()), to_dtype(m.mean, self.dtype()));
                          },
                      .saves = saves::in({0}),
                      .grad =
                          [](GradCtx& c, const Tensor&) {
                            const VarianceCall v = variance_call(c);
                            Tensor out;
                            if (c.grad_defined(0))
                              out = variance_slope(c.grad(0), c.in(0), v.dims, v.correction, v.keepdim);
                            if (c.grad_defined(1)) {
                              const Tensor by_mean = mean_slope(c.grad(1), c.in_spec(0), v);
                              out = out.defined() ? add(out, by_mean) : by_mean;
                            }
                            return out.defined() ? to_dtype(out, c.in_spec(0).dtype) : out;
                          },
                      .samples = corrected});
  t.define(std_mean, {.doc = "`std` and the mean.",
                      .tags = Tag::Fused | kTags,
                      .decompose =
                          [](Tensor self, Dims dims, std::optional<Scalar> correction, bool keepdim) {
                            const Moments m = moments(self, dims, correction_of(correction), keepdim);
                            return std::tuple(to_dtype(sqrt(m.var), self.dtype()),
                                              to_dtype(m.mean, self.dtype()));
                          },
                      .saves = saves::in({0}) | saves::out({0}),
                      .grad =
                          [](GradCtx& c, const Tensor&) {
                            const VarianceCall v = variance_call(c);
                            Tensor out;
                            if (c.grad_defined(0))
                              out = variance_slope(std_slope(c.grad(0), c.out(0)), c.in(0), v.dims,
                                                   v.correction, v.keepdim);
                            if (c.grad_defined(1)) {
                              const Tensor by_mean = mean_slope(c.grad(1), c.in_spec(0), v);
                              out = out.defined() ? add(out, by_mean) : by_mean;
                            }
                            return out.defined() ? to_dtype(out, c.in_spec(0).dtype) : out;
                          },
                      .samples = corrected});
}

void define_unbiased_variances(OpTable& t) {
  constexpr Tag kTags = Tag::Reduction | Tag::NoInPlace;
  const Samples whole = samples::custom(unbiased_samples, {.dtypes = dtypes::floats, .tolerance = 1e-4});
  const Samples over = samples::custom(unbiased_dim_samples, {.dtypes = dtypes::floats, .tolerance = 1e-4});
  t.define(var_all, {.doc = "The variance of all elements; divided by n - 1, or n if not unbiased.",
                     .tags = kTags,
                     .decompose = [](Tensor self,
                                     bool unbiased) { return var(self, Dims(), Scalar(unbiased ? 1 : 0)); },
                     .samples = whole});
  t.define(var_dim,
           {.doc = "The variance over dimensions; divided by n - 1, or n if not unbiased.",
            .tags = kTags,
            .decompose = [](Tensor self, Dims dims, bool unbiased,
                            bool keepdim) { return var(self, dims, Scalar(unbiased ? 1 : 0), keepdim); },
            .samples = over});
  t.define(std_all,
           {.doc = "The standard deviation of all elements.",
            .tags = kTags,
            .decompose = [](Tensor self,
                            bool unbiased) { return std_dev(self, Dims(), Scalar(unbiased ? 1 : 0)); },
            .samples = whole});
  t.define(std_dim,
           {.doc = "The standard deviation over dimensions.",
            .tags = kTags,
            .decompose = [](Tensor self, Dims dims, bool unbiased,
                            bool keepdim) { return std_dev(self, dims, Scalar(unbiased ? 1 : 0), keepdim); },
            .samples = over});
  t.define(var_mean_all,
           {.doc = "The variance and the mean of all elements.",
            .tags = kTags,
            .decompose = [](Tensor self,
                            bool unbiased) { return var_mean(self, Dims(), Scalar(unbiased ? 1 : 0)); },
            .samples = whole});
  t.define(var_mean_dim,
           {.doc = "The variance and the mean over dimensions.",
            .tags = kTags,
            .decompose = [](Tensor self, Dims dims, bool unbiased,
                            bool keepdim) { return var_mean(self, dims, Scalar(unbiased ? 1 : 0), keepdim); },
            .samples = over});
  t.define(std_mean_dim,
           {.doc = "The standard deviation and the mean over dimensions.",
            .tags = kTags,
            .decompose = [](Tensor self, Dims dims, bool unbiased,
                            bool keepdim) { return std_mean(self, dims, Scalar(unbiased ? 1 : 0), keepdim); },
            .samples = over});
  t.define(std_mean_all,
           {.doc = "The standard deviation and the mean of all elements.",
            .tags = kTags,
            .decompose = [](Tensor self,
                            bool unbiased) { return std_mean(self, Dims(), Scalar(unbiased ? 1 : 0)); },
            .samples = whole});
}

}  // namespace

void define_statistics(OpTable& t) {
  define_forms_of_reductions(t);
  define_forms_of_extremes(t);
  define_means(t);
  define_variances(t);
  define_unbiased_variances(t);
}

}  // namespace fl
