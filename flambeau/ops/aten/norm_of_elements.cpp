// Norms of vectors, and the logarithm of sums of exponentials.
#include <cmath>
#include <limits>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/reduced_dims.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using Dims = std::optional<IntList>;

Tensor norm_in_compute_dtype(const Tensor& x, double p, const Sizes& dims, bool keepdim) {
  if (dims.empty()) return p == 0 ? to_dtype(ne(x, 0), real_dtype(x.dtype())) : abs(x);
  if (p == 0) return sum(ne(x, 0), dims, keepdim, real_dtype(x.dtype()));
  if (p == std::numeric_limits<double>::infinity()) return amax(abs(x), dims, keepdim);
  if (p == -std::numeric_limits<double>::infinity()) return amin(abs(x), dims, keepdim);
  if (p == 1) return sum(abs(x), dims, keepdim);
  if (p == 2) return sqrt(sum(square(is_complex(x.dtype()) ? abs(x) : x), dims, keepdim));
  return pow(sum(pow(abs(x), p), dims, keepdim), 1 / p);
}

Tensor norm_of(Tensor self, Scalar ord, Dims dims, bool keepdim, std::optional<DType> dtype) {
  const DType in = dtype.value_or(self.dtype());
  FL_CHECK(is_floating(in) || is_complex(in), RuntimeError,
           "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}", name(in));
  const ReducedDims reduced = ReducedDims::of(dims ? Value(*dims) : Value(), self.dim(), keepdim);
  if (const double p = ord.to_double(); p < 0 || std::isinf(p))
    for (const SymInt d : reduced.list_as_sizes())
      FL_CHECK(self.dim() == 0 || self.size(d.expect_int()) != SymInt(0), RuntimeError,
               "linalg.vector_norm cannot compute the {} norm of a tensor of sizes {}: dimension {} is empty "
               "and the operation does not have an identity",
               p, to_string(self.sizes()), d);
  const Tensor x = to_dtype(self, compute_dtype(in));
  return to_dtype(norm_in_compute_dtype(x, ord.to_double(), reduced.list_as_sizes(), keepdim),
                  real_dtype(in));
}

/// sgn(x) |x|^(p-1) / norm^(p-1), 0 where the norm is; of the infinite norms shared among equals.
Tensor norm_gradient(GradCtx& c, const Tensor& g) {
  const double p = c.arg(1).to_double();
  const Tensor x = to_compute(c.in(0));
  if (p == 0) return zeros_like(c.in(0));
  const ReducedDims dims = ReducedDims::of(c.arg(2), x.dim(), c.arg(3).to_bool());
  const Tensor slope = dims.with_kept_dims(to_compute(g)), norm = dims.with_kept_dims(to_compute(c.out(0)));
  const auto back = [&](const Tensor& r) { return to_dtype(r, c.in_spec(0).dtype); };
  if (p == 1) return back(mul(sgn(x), slope));
  if (p == 2) return back(mul(x, where(eq(norm, 0), 0, div(slope, norm))));
  if (std::isinf(p)) {
    const Tensor has_it = eq(abs(x), norm);
    const Tensor count = dims.list().empty() ? has_it : sum(has_it, dims.list_as_sizes(), true);
    return back(mul(sgn(x), where(has_it, div(slope, count), 0)));
  }
  const Tensor scale = where(eq(norm, 0), 0, div(slope, pow(norm, p - 1)));
  const Tensor powers = mul(sgn(x), where(eq(x, 0), 0, pow(abs(x), p - 1)));
  return back(mul(powers, scale));
}

std::vector<Sample> norm_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  std::vector<Sample> out;
  for (const double p : {0.0, 1.0, 2.0, 3.0, 0.5}) out.push_back({{x({3, 4}), p, Sizes{1}}, "power", ""});
  const double infinity = std::numeric_limits<double>::infinity();
  out.push_back({{x({3, 4}), infinity, Sizes{0}, true}, "inf, kept", ""});
  out.push_back({{x({3, 4}), -infinity, Sizes{0}}, "-inf", ""});
  out.push_back({{m.make_transposed({2, 3, 4}, o.low, o.high)}, "all", ""});
  out.push_back({{x({}), 2}, "0-dim", ""});
  out.push_back({{x({2, 0}), 2, Sizes{1}}, "none", ""});
  out.push_back({{x({0, 2}), infinity, Sizes{0}}, "inf of none", "RuntimeError: dimension 0 is empty"});
  out.push_back({{x({0, 2}), -1.0}, "power below 0 of none", "RuntimeError: dimension 0 is empty"});
  out.push_back({{m.make({3}, DType::Int64, 0, 3)}, "integers", "RuntimeError: floating point"});
  return out;
}

void define_norms(OpTable& t) {
  constexpr Tag kTags = Tag::Reduction | Tag::NoInPlace;
  t.define(vector_norm,
           {.doc = "(sum of |x|^ord)^(1/ord) over dimensions; ord 0 counts what is not 0, inf and -inf give "
                   "the extremes of |x|.",
            .tags = Tag::Fused | kTags,
            .decompose = norm_of,
            .saves = saves::in({0}) | saves::out({0}),
            .grad = norm_gradient,
            .samples = samples::custom(norm_samples, {.dtypes = dtypes::floats, .tolerance = 1e-4})});
  t.define(norm, {.doc = "The norm of all elements.",
                  .tags = kTags,
                  .decompose = [](Tensor self, Scalar p) { return vector_norm(self, p); },
                  .samples = samples::unary({.dtypes = dtypes::floats, .low = 0.2, .tolerance = 1e-4})});
  t.define(norm_dim,
           {.doc = "The norm over dimensions; p is 2 unless given.",
            .tags = kTags,
            .decompose = [](Tensor self, std::optional<Scalar> p, IntList dims,
                            bool keepdim) { return vector_norm(self, p.value_or(Scalar(2)), dims, keepdim); },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({3, 4}, o.low, o.high), Value(), Sizes{1}}, "", ""},
                      {{m.make({3, 4}, o.low, o.high), 1, Sizes{0}, true}, "kept", ""}};
                },
                {.dtypes = dtypes::floats, .tolerance = 1e-4})});
  t.define(dist,
           {.doc = "The norm of the difference of two tensors.",
            .tags = kTags,
            .decompose = [](Tensor self, Tensor other, Scalar p) { return vector_norm(sub(self, other), p); },
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({3, 4}, o.low, o.high), m.make({3, 4}, o.low, o.high)}, "", ""},
                  {{m.make({3, 4}, o.low, o.high), m.make({4}, o.low, o.high), 3}, "broadcast", ""}};
            })});
}

/// The maximum is taken out first; an infinite one is left in.
Tensor log_of_sum(Tensor self, IntList list, bool keepdim) {
  const Tensor input = as_float(self);
  const ReducedDims dims = ReducedDims::of(Value(list), self.dim(), keepdim);
  const Sizes over = dims.list_as_sizes();
  if (over.empty()) return clone(input);
  const Tensor x = to_compute(input);
  if (dims.count(self.sizes()).same_as(0)) return to_dtype(log(sum(exp(x), over, keepdim)), input.dtype());
  const Tensor top = amax(x, over, true);
  const Tensor finite = where(isinf(top), 0, top);
  const Tensor total = sum(exp(sub(x, finite)), over, keepdim);
  return to_dtype(add(log(total), keepdim ? finite : squeeze_dims(finite, over)), input.dtype());
}

void define_log_of_sum(OpTable& t) {
  t.define(logsumexp,
           {.doc = "log(sum(exp(x))) over dimensions, without overflow on the way.",
            .tags = Tag::Fused | Tag::Reduction | Tag::NoInPlace,
            .decompose = log_of_sum,
            .saves = saves::in({0}) | saves::out({0}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const ReducedDims dims = ReducedDims::of(c.arg(1), c.in_spec(0).dim(), c.arg(2).to_bool());
                  const Tensor out = dims.with_kept_dims(to_compute(c.out(0)));
                  const Tensor share = exp(sub(to_compute(c.in(0)), out));
                  return to_dtype(mul(dims.with_kept_dims(to_compute(g)), share), c.in_spec(0).dtype);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({3, 4}), Sizes{1}}, "", ""},
                      {{m.make_transposed({2, 3, 4}, o.low, o.high), Sizes{0, 2}, true}, "two, kept", ""},
                      {{mul(x({3, 4}), 300), Sizes{0}}, "large", ""},
                      {{x({2, 0}), Sizes{1}}, "none", ""},
                      {{x({}), Sizes{0}}, "0-dim", ""}};
                },
                {.dtypes = dtypes::floats})});
}

}  // namespace

void define_norm_of_elements(OpTable& t) {
  define_norms(t);
  define_log_of_sum(t);
}

}  // namespace fl
