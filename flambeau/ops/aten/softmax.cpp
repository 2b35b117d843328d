#include "flambeau/ops/aten/softmax.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// self's layout; float32 if half precision is asked to become so.
InferResult softmax_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  wrap_dim(c.arg(1).to_int(), in.dim());
  check_dtype(c.op().schema.name, in.dtype, Takes::Floating);
  InferResult r = rule::same_as_input().function(c, 0);
  if (c.flag(2)) r[0].dtype = compute_dtype(in.dtype);
  return r;
}

/// The dimension as a list; a 0-dim tensor counts as a vector.
Sizes along(const Tensor& x, int64_t dim) { return {SymInt(wrap_dim(dim, x.dim()))}; }

DType result_dtype(const Tensor& self, bool half_to_float) {
  return half_to_float ? compute_dtype(self.dtype()) : self.dtype();
}

Tensor softmax_of(Tensor self, int64_t dim, bool half_to_float) {
  if (self.numel().same_as(0)) return _to_copy(self, result_dtype(self, half_to_float));
  const Tensor x = to_compute(self);
  const Tensor e = exp(sub(x, amax(x, along(x, dim), true)));
  return to_dtype(div(e, sum(e, along(x, dim), true)), result_dtype(self, half_to_float));
}

Tensor log_softmax_of(Tensor self, int64_t dim, bool half_to_float) {
  if (self.numel().same_as(0)) return _to_copy(self, result_dtype(self, half_to_float));
  const Tensor x = to_compute(self);
  const Tensor below = sub(x, amax(x, along(x, dim), true));
  return to_dtype(sub(below, log(sum(exp(below), along(x, dim), true))), result_dtype(self, half_to_float));
}

/// y (g - sum(g y))
Tensor softmax_gradient(GradCtx& c, const Tensor& g) {
  const Tensor y = to_compute(c.out(0)), weighted = mul(to_compute(g), y);
  const Tensor total = sum(weighted, along(y, c.arg(1).to_int()), true);
  return to_dtype(sub(weighted, mul(y, total)), c.in_spec(0).dtype);
}

/// g - e^y sum(g)
Tensor log_softmax_gradient(GradCtx& c, const Tensor& g) {
  const Tensor y = to_compute(c.out(0)), slope = to_compute(g);
  const Tensor total = sum(slope, along(y, c.arg(1).to_int()), true);
  return to_dtype(sub(slope, mul(exp(y), total)), c.in_spec(0).dtype);
}

std::vector<Sample> softmax_samples(SampleMaker& m, const Samples& o, const Value& last) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({3, 5}), 1, last}, "", ""},
          {{x({3, 5}), 0, last}, "columns", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), -2, last}, "transposed", ""},
          {{mul(x({3, 5}), 200), 1, last}, "large", ""},
          {{x({}), 0, last}, "0-dim", ""},
          {{x({3, 0}), 1, last}, "size 0", ""},
          {{x({3}), 1, last}, "no such dimension", "IndexError: out of range"}};
}
std::vector<Sample> plain_samples(SampleMaker& m, const Samples& o) { return softmax_samples(m, o, false); }
std::vector<Sample> dtype_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = softmax_samples(m, o, Value());
  out.push_back({{m.make({3, 5}, o.low, o.high), 1, DType::Float64}, "dtype", ""});
  return out;
}

/// The input in the dtype that was asked for; half precision to float32 without a copy.
template <class F>
Tensor in_dtype(const Tensor& self, std::optional<DType> dtype, F f) {
  const bool half = size_of(self.dtype()) == 2 && is_floating(self.dtype()) && dtype == DType::Float32;
  return half ? f(self, true) : f(to_dtype(self, dtype.value_or(self.dtype())), false);
}

}  // namespace

void define_softmax(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::Fused;
  const Samples plain = samples::custom(plain_samples, {.dtypes = dtypes::floats});
  const Samples typed = samples::custom(dtype_samples, {.dtypes = dtypes::floats});
  t.define(_softmax, {.doc = "exp(x) / sum(exp(x)) along a dimension, with the maximum taken out first. "
                             "`half_to_float` gives float32 for half precision.",
                      .tags = kTags,
                      .infer = softmax_rule,
                      .decompose = softmax_of,
                      .saves = saves::out({0}),
                      .grad = softmax_gradient,
                      .samples = plain});
  t.define(_log_softmax, {.doc = "The logarithm of softmax, x - log(sum(exp(x))), along a dimension.",
                          .tags = kTags,
                          .infer = softmax_rule,
                          .decompose = log_softmax_of,
                          .saves = saves::out({0}),
                          .grad = log_softmax_gradient,
                          .samples = plain});
  t.define(softmax, {.doc = "exp(x) / sum(exp(x)) along a dimension; with `dtype` x is converted first.",
                     .tags = Tag::NoInPlace,
                     .decompose =
                         [](Tensor self, int64_t dim, std::optional<DType> dtype) {
                           return in_dtype(self, dtype, [&](const Tensor& x, bool half_to_float) {
                             return _softmax(x, dim, half_to_float);
                           });
                         },
                     .samples = typed});
  t.define(log_softmax,
           {.doc = "The logarithm of softmax along a dimension; with `dtype` x is converted first.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, int64_t dim, std::optional<DType> dtype) {
                  return in_dtype(self, dtype, [&](const Tensor& x, bool half_to_float) {
                    return _log_softmax(x, dim, half_to_float);
                  });
                },
            .samples = typed});
  t.define(_safe_softmax, {.doc = "softmax, but 0 along lines in which every element is -inf.",
                           .tags = Tag::NoInPlace,
                           .decompose =
                               [](Tensor self, int64_t dim, std::optional<DType> dtype) {
                                 if (self.numel().same_as(0)) return softmax(self, dim, dtype);
                                 // Their gradient is 0, too: softmax does not see them.
                                 const Tensor masked = all(eq(self, -HUGE_VAL), along(self, dim), true);
                                 return where(masked, 0, softmax(where(masked, 0, self), dim, dtype));
                               },
                           .samples = typed});
}

}  // namespace fl
