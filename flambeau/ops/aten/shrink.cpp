// Activations that are linear in pieces, and gates.
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

Samples on_floats() { return samples::unary({.dtypes = dtypes::floats}); }
Samples with(samples::MakeSamples make, DTypeSet dtypes = dtypes::floats) {
  return samples::custom(make, {.dtypes = dtypes});
}

/// g strictly between two bounds on x, 0 elsewhere.
Tensor inside(const Tensor& g, const Tensor& x, const Scalar& low, const Scalar& high) {
  return where(logical_and(gt(x, low), lt(x, high)), g, 0);
}

void define_rectifiers(OpTable& t) {
  t.define(relu, {.doc = "max(x, 0).",
                  .tags = Tag::Fused,
                  .infer = rule::real(),
                  .decompose =
                      [](Tensor self) {
                        FL_CHECK(self.dtype() != DType::Bool, RuntimeError,
                                 "Boolean inputs not supported for relu");
                        return clamp_min(self, 0);
                      },
                  .saves = saves::out({0}),
                  .grad = [](GradCtx& c, const Tensor& g) { return where(le(c.out(0), 0), 0, g); },
                  .samples = samples::unary({.dtypes = dtypes::integers | dtypes::floats})});
  t.define(leaky_relu,
           {.doc = "x above 0, negative_slope * x below.",
            .tags = Tag::Fused,
            .infer = rule::floating(),
            .decompose =
                [](Tensor self, Scalar slope) {
                  return in_compute_dtype(self,
                                          [&](const Tensor& x) { return where(gt(x, 0), x, mul(x, slope)); });
                },
            .saves = saves::in({0}),
            .grad = [](GradCtx& c,
                       const Tensor& g) { return where(gt(c.in(0), 0), g, mul(g, c.arg(1).scalar())); },
            .samples = with([](SampleMaker& m, const Samples& o) {
              return samples::with_arguments(m, o, {{}, {Value(0.3)}});
            })});
  t.define(threshold,
           {.doc = "x above the threshold, value elsewhere.",
            .tags = Tag::Fused,
            .infer = rule::real(),
            .decompose = [](Tensor self, Scalar limit,
                            Scalar value) { return masked_fill(self, le(self, limit), value); },
            .saves = saves::in({0}),
            .grad = [](GradCtx& c, const Tensor& g) { return where(le(c.in(0), c.arg(1).scalar()), 0, g); },
            .samples = with(
                [](SampleMaker& m, const Samples& o) {
                  return samples::with_arguments(m, o, {{Value(1), Value(2)}});
                },
                dtypes::integers | dtypes::floats)});
  t.define(hardtanh,
           {.doc = "x clamped to [min_val, max_val].",
            .tags = Tag::Fused,
            .infer = rule::real(),
            .decompose =
                [](Tensor self, Scalar low, Scalar high) {
                  FL_CHECK(low.to_double() <= high.to_double(), ValueError,
                           "min_val {} cannot be greater than max_val {}", low.str(), high.str());
                  return to_dtype(clamp(self, low, high), self.dtype());
                },
            .saves = saves::in({0}),
            .grad = [](GradCtx& c,
                       const Tensor& g) { return inside(g, c.in(0), c.arg(1).scalar(), c.arg(2).scalar()); },
            .samples = with(
                [](SampleMaker& m, const Samples& o) {
                  return samples::with_arguments(m, o, {{}, {Value(-2), Value(2)}});
                },
                dtypes::integers | dtypes::floats)});
  t.define(relu6, {.doc = "x clamped to [0, 6].",
                   .decompose = [](Tensor self) { return hardtanh(self, 0, 6); },
                   .samples = on_floats()});
}

void define_hard_gates(OpTable& t) {
  t.define(hardsigmoid,
           {.doc = "x / 6 + 1/2 clamped to [0, 1].",
            .tags = Tag::Fused,
            .infer = rule::floating(),
            .decompose =
                [](Tensor self) {
                  return in_compute_dtype(
                      self, [](const Tensor& x) { return div(clamp_max(clamp_min(add(x, 3), 0), 6), 6); });
                },
            .saves = saves::in({0}),
            .grad = [](GradCtx& c, const Tensor& g) { return inside(div(g, 6), c.in(0), -3, 3); },
            .samples = on_floats()});
  t.define(hardswish, {.doc = "x * hardsigmoid(x).",
                       .tags = Tag::Fused,
                       .infer = rule::floating(),
                       .decompose =
                           [](Tensor self) {
                             return in_compute_dtype(self, [](const Tensor& x) {
                               return div(mul(x, clamp_max(clamp_min(add(x, 3), 0), 6)), 6);
                             });
                           },
                       .saves = saves::in({0}),
                       .grad =
                           [](GradCtx& c, const Tensor& g) {
                             const Tensor x = to_compute(c.in(0)), d = to_compute(g);
                             const Tensor middle = mul(d, add(div(x, 3), 0.5));
                             const Tensor slope = where(ge(x, 3), d, middle);
                             return to_dtype(where(le(x, -3), 0, slope), g.dtype());
                           },
                       .samples = on_floats()});
  t.define(softsign, {.doc = "x / (1 + |x|).",
                      .decompose =
                          [](Tensor self) {
                            return in_compute_dtype(self,
                                                    [](const Tensor& x) { return div(x, add(abs(x), 1)); });
                          },
                      .samples = on_floats()});
}

void define_shrinks(OpTable& t) {
  t.define(tanhshrink, {.doc = "x - tanh(x).",
                        .decompose =
                            [](Tensor self) {
                              return in_compute_dtype(self, [](const Tensor& x) { return sub(x, tanh(x)); });
                            },
                        .samples = on_floats()});
  const Samples bounds = with([](SampleMaker& m, const Samples& o) {
    return samples::with_arguments(m, o, {{}, {Value(1.5)}});
  });
  t.define(
      softshrink,
      {.doc = "x moved towards 0 by lambd; 0 within [-lambd, lambd].",
       .tags = Tag::Fused,
       .infer = rule::floating(),
       .decompose =
           [](Tensor self, Scalar lambd) {
             FL_CHECK(lambd.to_double() >= 0, RuntimeError,
                      "lambda must be greater or equal to 0, but found to be {}", lambd.str());
             return in_compute_dtype(self, [&](const Tensor& x) {
               const Tensor low = where(lt(x, -lambd.to_double()), add(x, lambd), mul(x, 0));
               return where(gt(x, lambd), sub(x, lambd), low);
             });
           },
       .saves = saves::in({0}),
       .grad = [](GradCtx& c, const Tensor& g) { return where(le(abs(c.in(0)), c.arg(1).scalar()), 0, g); },
       .samples = bounds});
  t.define(
      hardshrink,
      {.doc = "x; 0 within [-lambd, lambd].",
       .tags = Tag::Fused,
       .infer = rule::floating(),
       .decompose = [](Tensor self, Scalar lambd) { return where(le(abs(self), lambd), 0, self); },
       .saves = saves::in({0}),
       .grad = [](GradCtx& c, const Tensor& g) { return where(le(abs(c.in(0)), c.arg(1).scalar()), 0, g); },
       .samples = bounds});
}

/// weight as a column of channels (dimension 1) where it has more than one element.
Tensor parametric(Tensor self, Tensor weight) {
  const SymInt count = weight.numel();
  FL_CHECK(weight.dim() <= 1, RuntimeError,
           "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}", weight.dim());
  Tensor slope = weight;
  if (count != SymInt(1)) {
    FL_CHECK(self.dim() > 0, RuntimeError, "Not allow zero-dim input tensor.");
    const SymInt channels = self.dim() > 1 ? self.sizes()[1] : SymInt(1);
    FL_CHECK(channels == count, RuntimeError,
             "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel "
             "size = {}.",
             count, channels);
    Sizes sizes(self.dim(), SymInt(1));
    sizes[1] = count;
    slope = reshape(weight, sizes);
  } else {
    slope = reshape(weight, IntList());
  }
  return where(gt(self, 0), self, mul(slope, self));
}

void define_gates(OpTable& t) {
  t.define(prelu, {.doc = "x above 0, weight * x below; one weight, or one a channel (dimension 1).",
                   .decompose = parametric,
                   .samples = with([](SampleMaker& m, const Samples& o) {
                     const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                     return std::vector<Sample>{
                         {{x({2, 3, 4}), x({3})}, "channels", ""},
                         {{x({4}), x({1})}, "one", ""},
                         {{x({2, 3}), x({2})}, "sizes", "RuntimeError: Mismatch of parameter numbers"}};
                   })});
  t.define(glu, {.doc = "The first half of a dimension times the sigmoid of the second.",
                 .tags = Tag::NoInPlace,
                 .decompose =
                     [](Tensor self, int64_t dim) {
                       FL_CHECK(self.dim() > 0, RuntimeError, "glu does not support 0-dimensional tensors");
                       const SymInt size = self.size(dim), half = size / SymInt(2);
                       FL_CHECK(size % SymInt(2) == SymInt(0), RuntimeError,
                                "Halving dimension must be even, but dimension {} is size {}", dim, size);
                       return mul(slice(self, dim, 0, half, 1), sigmoid(slice(self, dim, half, size, 1)));
                     },
                 .samples = with([](SampleMaker& m, const Samples& o) {
                   return std::vector<Sample>{
                       {{m.make({3, 4}, o.low, o.high)}, "", ""},
                       {{m.make({4, 3}, o.low, o.high), 0}, "rows", ""},
                       {{m.make({3}, o.low, o.high)}, "odd", "RuntimeError: must be even"}};
                 })});
}

}  // namespace

void define_shrink(OpTable& t) {
  define_rectifiers(t);
  define_hard_gates(t);
  define_shrinks(t);
  define_gates(t);
}

}  // namespace fl
