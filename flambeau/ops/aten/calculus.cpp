#include "flambeau/ops/aten/calculus.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using List = std::vector<Tensor>;
constexpr Tag kPlain = Tag::NoInPlace | Tag::NoOut;

Samples of(samples::MakeSamples make, DTypeSet dtypes = dtypes::full_floats) {
  return samples::custom(make, {.dtypes = dtypes});
}

/// Elements from..size + to of a dimension.
Tensor inner(const Tensor& x, int64_t dim, int64_t from, int64_t to) {
  const SymInt size = x.size(dim);
  return narrow(x, dim, from, max(size - SymInt(from - to), 0));
}

/// Sums of neighbours along a dimension, each times half its width.
Tensor strips(const Tensor& y, int64_t dim, const Tensor& width) {
  return mul(mul(add(inner(y, dim, 1, 0), inner(y, dim, 0, -1)), width), 0.5);
}

/// Widths that broadcast against strips: x is of y's rank, or runs along the dimension alone.
Tensor widths(const Tensor& y, const Tensor& x, int64_t dim) {
  if (x.dim() == 1 && y.dim() != 1) {
    FL_CHECK(x.size(0) == y.size(dim), RuntimeError,
             "trapezoid: There must be one `x` value for each sample point, got {} and {}", x.size(0),
             y.size(dim));
    Sizes along(y.dim(), SymInt(1));
    along[wrap_dim(dim, y.dim())] = x.size(0);
    return diff(reshape(x, along), 1, dim);
  }
  Sizes sizes = x.sizes();
  while (static_cast<int>(sizes.size()) < y.dim()) sizes.insert(sizes.begin(), SymInt(1));
  return diff(view(x, sizes), 1, dim);
}

Tensor integral(Tensor y, Tensor x, int64_t dim) {
  FL_CHECK(y.dtype() != DType::Bool && x.dtype() != DType::Bool, RuntimeError,
           "trapezoid: received a bool input for `x` or `y`, but bool is not supported");
  return sum(strips(y, dim, widths(y, x, dim)), IntList{SymInt(dim)});
}
Tensor even_integral(const Tensor& y, double dx, int64_t dim) {
  FL_CHECK(y.dtype() != DType::Bool, RuntimeError,
           "trapezoid: received a bool input for `y`, but bool is not supported");
  if (y.size(dim) == SymInt(0)) return to_dtype(sum(y, IntList{SymInt(dim)}), y.dtype());
  const Tensor both = add(inner(y, dim, 1, 0), inner(y, dim, 0, -1));
  return mul(sum(both, IntList{SymInt(dim)}), dx / 2);
}

void define_integrals(OpTable& t) {
  const auto at = [](SampleMaker& m, const Samples& o) {
    const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
    return std::vector<Sample>{{{x({3, 5}), x({3, 5})}, "", ""},
                               {{x({4, 3}), x({4}), 0}, "columns", ""},
                               {{x({5}), x({5})}, "vectors", ""}};
  };
  const auto even = [](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({3, 5}, o.low, o.high)}, "", ""},
                               {{m.make({3, 5}, o.low, o.high), 0.5, 0}, "columns", ""},
                               {{m.make({3, 0}, o.low, o.high)}, "none", ""}};
  };
  t.define(trapezoid_at, {.doc = "The integral of y over the positions x along a dimension, by trapezoids.",
                          .tags = kPlain,
                          .decompose = integral,
                          .samples = of(at)});
  t.define(trapz_at, {.doc = "As trapezoid.", .tags = kPlain, .decompose = integral, .samples = of(at)});
  t.define(trapezoid, {.doc = "The integral along a dimension by the trapezoidal rule with equal steps.",
                       .tags = kPlain,
                       .decompose = [](Tensor y, Scalar dx,
                                       int64_t dim) { return even_integral(y, dx.to_double(), dim); },
                       .samples = of(even)});
  t.define(trapz, {.doc = "As trapezoid.",
                   .tags = kPlain,
                   .decompose = [](Tensor y, double dx, int64_t dim) { return even_integral(y, dx, dim); },
                   .samples = of(even)});
  t.define(cumulative_trapezoid_at,
           {.doc = "The running integral of y over the positions x along a dimension, by trapezoids.",
            .tags = kPlain,
            .decompose = [](Tensor y, Tensor x,
                            int64_t dim) { return cumsum(strips(y, dim, widths(y, x, dim)), dim); },
            .samples = of(at)});
  t.define(cumulative_trapezoid,
           {.doc = "The running integral along a dimension by the trapezoidal rule with equal steps.",
            .tags = kPlain,
            .decompose =
                [](Tensor y, Scalar dx, int64_t dim) {
                  const Tensor both = add(inner(y, dim, 1, 0), inner(y, dim, 0, -1));
                  return mul(cumsum(both, dim), dx.to_double() / 2);
                },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({3, 5}, o.low, o.high)}, "", ""},
                                         {{m.make({3, 5}, o.low, o.high), 0.5, 0}, "columns", ""}};
            })});
}

void check_slope(const Tensor& self, int64_t dim, int64_t edge_order) {
  FL_CHECK(edge_order == 1 || edge_order == 2, RuntimeError,
           "torch.gradient only supports edge_order=1 and edge_order=2.");
  FL_CHECK(self.size(dim) >= SymInt(edge_order + 1), RuntimeError,
           "torch.gradient expected each dimension size to be at least edge_order+1, got {}", self.size(dim));
}

/// Central differences with equal steps; at both ends to the inside.
Tensor even_slope(const Tensor& self, int64_t dim, const Scalar& step, int64_t edge_order) {
  check_slope(self, dim, edge_order);
  const SymInt n = self.size(dim);
  const auto f = [&](SymInt k) { return narrow(self, dim, k, 1); };
  const Tensor middle = div(div(sub(inner(self, dim, 2, 0), inner(self, dim, 0, -2)), step), 2);
  Tensor first, last;
  if (edge_order == 1) {
    first = div(sub(f(1), f(0)), step);
    last = div(sub(f(n - SymInt(1)), f(n - SymInt(2))), step);
  } else {
    first = div(sub(sub(mul(f(1), 2), mul(f(0), 1.5)), mul(f(2), 0.5)), step);
    last =
        div(sub(add(mul(f(n - SymInt(1)), 1.5), mul(f(n - SymInt(3)), 0.5)), mul(f(n - SymInt(2)), 2)), step);
  }
  return cat(List{first, middle, last}, dim);
}

/// The slope of the parabola through three neighbours at positions x.
Tensor uneven_slope(const Tensor& self, int64_t dim, const Tensor& x, int64_t edge_order) {
  check_slope(self, dim, edge_order);
  FL_CHECK(x.dim() == 1, RuntimeError,
           "torch.gradient expected each element of spacing to have one dimension, but got {}", x.dim());
  const SymInt n = self.size(dim);
  FL_CHECK(x.size(0) == n, RuntimeError,
           "torch.gradient expected spacing to be of the dimension's size: {} and {}", x.size(0), n);
  Sizes along(self.dim(), SymInt(1));
  along[wrap_dim(dim, self.dim())] = n - SymInt(1);
  const Tensor h = reshape(diff(x), along);
  const auto f = [&](SymInt k) { return narrow(self, dim, k, 1); };
  const auto step = [&](SymInt k) { return narrow(h, dim, k, 1); };
  const Tensor h1 = inner(h, dim, 0, -1), h2 = inner(h, dim, 1, 0);
  const Tensor a = neg(div(h2, mul(h1, add(h1, h2)))), b = div(sub(h2, h1), mul(h1, h2)),
               c = div(h1, mul(h2, add(h1, h2)));
  const Tensor middle = add(add(mul(a, inner(self, dim, 0, -2)), mul(b, inner(self, dim, 1, -1))),
                            mul(c, inner(self, dim, 2, 0)));
  Tensor first, last;
  if (edge_order == 1) {
    first = div(sub(f(1), f(0)), step(0));
    last = div(sub(f(n - SymInt(1)), f(n - SymInt(2))), step(n - SymInt(2)));
  } else {
    const auto end = [&](const Tensor& near, const Tensor& far, const Tensor& f0, const Tensor& f1,
                         const Tensor& f2) {
      const Tensor both = add(near, far);
      const Tensor w0 = neg(div(add(mul(near, 2), far), mul(near, both))), w1 = div(both, mul(near, far)),
                   w2 = neg(div(near, mul(far, both)));
      return add(add(mul(w0, f0), mul(w1, f1)), mul(w2, f2));
    };
    first = end(step(0), step(1), f(0), f(1), f(2));
    last = neg(
        end(step(n - SymInt(2)), step(n - SymInt(3)), f(n - SymInt(1)), f(n - SymInt(2)), f(n - SymInt(3))));
  }
  return cat(List{first, middle, last}, dim);
}

Sizes dims_or_all(const Tensor& self, std::optional<int64_t> dim) {
  Sizes out;
  if (dim) return {SymInt(*dim)};
  for (int d = 0; d < self.dim(); ++d) out.push_back(d);
  return out;
}

template <class Slope>
List slopes(const Tensor& self, IntList dims, size_t spacings, Slope slope) {
  FL_CHECK(spacings == 0 || spacings == dims.size(), RuntimeError,
           "torch.gradient expected spacing to be unspecified, a scalar, or a list of length {}, but got a "
           "list of {}",
           dims.size(), spacings);
  List out;
  std::vector<bool> seen(self.dim());
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = wrap_dim(dims[k].expect_int(), self.dim());
    FL_CHECK(!seen[d], RuntimeError, "dim {} appears multiple times in the list of dims", d);
    seen[d] = true;
    out.push_back(slope(d, k));
  }
  return out;
}

List evenly(const Tensor& self, const std::optional<Scalar>& spacing, IntList dims, int64_t edge_order) {
  return slopes(self, dims, 0,
                [&](int64_t d, size_t) { return even_slope(self, d, spacing.value_or(1), edge_order); });
}
List evenly(const Tensor& self, const std::vector<double>& spacing, IntList dims, int64_t edge_order) {
  return slopes(self, dims, spacing.size(),
                [&](int64_t d, size_t k) { return even_slope(self, d, spacing[k], edge_order); });
}
List unevenly(const Tensor& self, TensorList spacing, IntList dims, int64_t edge_order) {
  return slopes(self, dims, spacing.size(),
                [&](int64_t d, size_t k) { return uneven_slope(self, d, spacing[k], edge_order); });
}

void define_slopes(OpTable& t) {
  using Numbers = std::optional<std::vector<double>>;
  t.define(
      gradient,
      {.doc = "Slopes of samples along a dimension, or each, by central differences with equal steps; at "
              "the ends by differences of order edge_order.",
       .tags = kPlain,
       .decompose = [](Tensor self, std::optional<Scalar> spacing, std::optional<int64_t> dim,
                       int64_t order) { return evenly(self, spacing, dims_or_all(self, dim), order); },
       .samples = of([](SampleMaker& m, const Samples& o) {
         const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
         return std::vector<Sample>{{{x({4, 5})}, "", ""},
                                    {{x({4, 5}), 0.5, 1, 2}, "second order", ""},
                                    {{x({1})}, "one sample", "RuntimeError: at least edge_order+1"}};
       })});
  t.define(gradient_along,
           {.doc = "`gradient` along several dimensions.",
            .tags = kPlain,
            .decompose = [](Tensor self, std::optional<Scalar> spacing, IntList dims,
                            int64_t order) { return evenly(self, spacing, dims, order); },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({4, 5}, o.low, o.high), 2, Sizes{1, 0}}, "", ""},
                  {{m.make({4, 5}, o.low, o.high), 2, Sizes{1, 1}}, "twice", "RuntimeError: multiple times"}};
            })});
  t.define(
      gradient_spaced,
      {.doc = "`gradient` with a step for each dimension.",
       .tags = kPlain,
       .decompose =
           [](Tensor self, Numbers spacing, std::optional<int64_t> dim, int64_t order) {
             return evenly(self, spacing.value_or(std::vector<double>{}), dims_or_all(self, dim), order);
           },
       .samples = of([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{{{m.make({4, 5}, o.low, o.high), std::vector<double>{0.5, 2}}, "", ""}};
       })});
  t.define(gradient_spaced_along,
           {.doc = "`gradient` along several dimensions, with a step for each.",
            .tags = kPlain,
            .decompose =
                [](Tensor self, Numbers spacing, IntList dims, int64_t order) {
                  return evenly(self, spacing.value_or(std::vector<double>{}), dims, order);
                },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({4, 5}, o.low, o.high), std::vector<double>{0.5, 2}, Sizes{1, 0}}, "", ""}};
            })});
  t.define(gradient_at,
           {.doc = "`gradient` with the positions of the samples in each dimension.",
            .tags = kPlain,
            .decompose = [](Tensor self, TensorList spacing, std::optional<int64_t> dim,
                            int64_t order) { return unevenly(self, spacing, dims_or_all(self, dim), order); },
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto at = [&](int n) { return cumsum(m.make({SymInt(n)}, 0.5, 1.5), 0); };
              return std::vector<Sample>{{{m.make({4, 5}, o.low, o.high), List{at(4), at(5)}}, "", ""},
                                         {{m.make({4, 5}, o.low, o.high), List{at(5)}, 1, 2}, "order 2", ""}};
            })});
  t.define(gradient_at_along,
           {.doc = "`gradient` along several dimensions, with the positions of the samples in each.",
            .tags = kPlain,
            .decompose = [](Tensor self, TensorList spacing, IntList dims,
                            int64_t order) { return unevenly(self, spacing, dims, order); },
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto at = [&](int n) { return cumsum(m.make({SymInt(n)}, 0.5, 1.5), 0); };
              return std::vector<Sample>{
                  {{m.make({4, 5}, o.low, o.high), List{at(5), at(4)}, Sizes{1, 0}}, "", ""}};
            })});
}

void check_weights(const Tensor& self, const Tensor& w, const char* what, bool whole) {
  const SymInt count = self.dim() == 0 ? SymInt(1) : self.size(-1);
  FL_CHECK(w.dim() <= 1, RuntimeError, "cov(): expected {} to have one or fewer dimensions but got {}", what,
           w.dim());
  FL_CHECK(whole ? is_integral(w.dtype()) : is_floating(w.dtype()), RuntimeError,
           "cov(): expected {} to have {} dtype but got {} with {} dtype", what,
           whole ? "integral" : "floating point", what, name(w.dtype()));
  FL_CHECK(w.numel() == count, RuntimeError,
           "cov(): expected {} to have the same numel as there are observations in the input but got {} != "
           "{}",
           what, w.numel(), count);
  if (is_readable(w) && w.numel() > SymInt(0))
    FL_CHECK(amin(w).item().to_double() >= 0, RuntimeError, "cov(): {} cannot be negative", what);
}

/// Rows are variables, columns observations.
Tensor covariance(Tensor self, int64_t correction, Tensor fweights, Tensor aweights) {
  FL_CHECK(self.dim() <= 2, RuntimeError,
           "cov(): expected input to have two or fewer dimensions but got an input with {} dimensions",
           self.dim());
  FL_CHECK(self.dtype() != DType::Bool, RuntimeError, "cov(): bool dtype is not supported for input");
  const Tensor x = self.dim() < 2 ? reshape(self, {SymInt(1), SymInt(-1)}) : self;
  Tensor w;
  if (fweights.defined()) {
    check_weights(self, fweights, "fweights", true);
    w = reshape(fweights, {SymInt(-1)});
  }
  if (aweights.defined()) {
    check_weights(self, aweights, "aweights", false);
    const Tensor a = reshape(aweights, {SymInt(-1)});
    w = w.defined() ? mul(w, a) : a;
  }
  const Sizes columns{SymInt(1)};
  Tensor total, average, divisor;
  if (w.defined()) {
    total = sum_all(w);
    FL_CHECK(!is_readable(total) || total.item().to_double() != 0, RuntimeError,
             "cov(): weights sum to zero, can't be normalized");
    average = div(sum(mul(x, w), columns, true), total);
    divisor = correction != 0 && aweights.defined()
                  ? sub(total, mul(div(sum_all(mul(w, reshape(aweights, {SymInt(-1)}))), total), correction))
                  : sub(total, correction);
  } else {
    average = div(sum(x, columns, true), Scalar(x.size(1)));
    divisor = full({}, Scalar(x.size(1) - SymInt(correction)), DType::Int64, x.device());
  }
  const Tensor centered = sub(x, average);
  const Tensor scaled = w.defined() ? mul(centered, w) : centered;
  const Tensor product = matmul(scaled, conj_if_complex(transpose(centered, 0, 1)));
  return squeeze(div(product, to_dtype(clamp_min(divisor, 0), real_dtype(product.dtype()))));
}

void define_covariances(OpTable& t) {
  t.define(cov,
           {.doc = "The covariance matrix of variables (rows) over observations (columns), divided by n - "
                   "correction; with weights: how often an observation was made, how much it counts.",
            .tags = kPlain,
            .decompose = covariance,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{{{x({3, 5})}, "", ""},
                                         {{x({6}), 0}, "vector", ""},
                                         {{x({2, 4}), 1, m.make_index({4}, 1, 4)}, "frequencies", ""},
                                         {{x({2, 4}), 1, Value(), m.make({4}, 0.5, 2)}, "weights", ""},
                                         {{x({2, 4, 1})}, "rank 3", "RuntimeError: two or fewer"}};
            })});
  t.define(corrcoef,
           {.doc = "The matrix of correlations of variables (rows) over observations (columns), in [-1, 1].",
            .tags = kPlain,
            .decompose =
                [](Tensor self) {
                  FL_CHECK(self.dim() <= 2, RuntimeError,
                           "corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           "{} dimensions",
                           self.dim());
                  const Tensor c = cov(self);
                  if (c.dim() == 0) return div(c, c);
                  const Tensor deviation = sqrt(real(diagonal(c)));
                  const Tensor r = div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0));
                  return is_complex(r.dtype()) ? r : clamp(r, Scalar(-1), Scalar(1));
                },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({3, 5}, o.low, o.high)}, "", ""}};
            })});
}

Tensor with_bounded_norms(Tensor self, Scalar p, int64_t dim, Scalar maxnorm) {
  FL_CHECK(!p.is_complex(), RuntimeError, "renorm: p must be real-valued");
  FL_CHECK(p.to_double() > 0, RuntimeError, "renorm: non-positive norm not supported");
  FL_CHECK(!maxnorm.is_complex() && maxnorm.to_double() >= 0, RuntimeError,
           "renorm: expected maxnorm to be >= 0 but got {}", maxnorm.str());
  FL_CHECK(self.dim() > 1, RuntimeError, "renorm: input needs at least 2 dimensions, got {} dimensions",
           self.dim());
  const int64_t d = wrap_dim(dim, self.dim());
  Sizes others;
  for (int k = 0; k < self.dim(); ++k)
    if (k != d) others.push_back(k);
  return in_compute_dtype(self, [&](const Tensor& x) {
    const Tensor norms = vector_norm(x, p, others, true);
    const Tensor factor =
        where(gt(norms, maxnorm.to_double()), div(maxnorm.to_double(), add(norms, 1e-7)), 1.0);
    return mul(x, to_dtype(factor, x.dtype()));
  });
}

void define_renorm(OpTable& t) {
  t.define(renorm,
           {.doc = "Slices along a dimension scaled down so that their p-norms do not exceed maxnorm.",
            .decompose = with_bounded_norms,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{{{x({3, 5}), 2, 0, 1.0}, "", ""},
                                         {{x({2, 3, 2}), 1, 1, 4}, "1-norm", ""},
                                         {{x({3}), 2, 0, 1}, "vector", "RuntimeError: at least 2"}};
            })});
}

}  // namespace

void define_calculus(OpTable& t) {
  define_integrals(t);
  define_slopes(t);
  define_covariances(t);
  define_renorm(t);
}

}  // namespace fl
