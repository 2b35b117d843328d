// Products of several matrices, powers, and products of vectors.
#include <limits>

#include "flambeau/ops/aten/linalg.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/factorization.h"
#include "flambeau/ops/prims/matrices.h"
#include "flambeau/ops/prims/spectrum.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// The cheapest order of products of matrices i..j, by the numbers of multiplications (Godbole, "On efficient
/// computation of matrix chain products", 1973).
class Chain {
 public:
  explicit Chain(const std::vector<Tensor>& matrices) : matrices_(matrices), n_(matrices.size()) {
    std::vector<double> sizes;
    for (const Tensor& m : matrices) sizes.push_back(static_cast<double>(m.size(0).guard_int()));
    sizes.push_back(static_cast<double>(matrices.back().size(1).guard_int()));
    cost_.assign(n_ * n_, 0);
    cut_.assign(n_ * n_, 0);
    for (size_t length = 1; length < n_; ++length) {
      for (size_t i = 0; i + length < n_; ++i) {
        const size_t j = i + length;
        double best = std::numeric_limits<double>::infinity();
        for (size_t k = i; k < j; ++k) {
          const double cost =
              cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (cost < best) {
            best = cost;
            cut_[i * n_ + j] = k;
          }
        }
        cost_[i * n_ + j] = best;
      }
    }
  }
  Tensor product(size_t i, size_t j) const {
    if (i == j) return matrices_[i];
    const size_t k = cut_[i * n_ + j];
    return mm(product(i, k), product(k + 1, j));
  }

 private:
  const std::vector<Tensor>& matrices_;
  size_t n_;
  std::vector<double> cost_;
  std::vector<size_t> cut_;
};

Tensor product_of_all(TensorList tensors) {
  const std::vector<Tensor>& given = tensors.vec();
  FL_CHECK(given.size() >= 2, RuntimeError, "multi_dot(): expected at least 2 tensors but got {}",
           given.size());
  std::vector<Tensor> m = given;
  const bool row = m.front().dim() == 1, column = m.back().dim() == 1;
  if (row) m.front() = unsqueeze(m.front(), 0);
  if (column) m.back() = unsqueeze(m.back(), 1);
  for (size_t i = 0; i < m.size(); ++i) {
    FL_CHECK(m[i].dim() == 2, RuntimeError, "multi_dot(): tensor {} must be {} but got {}D", i,
             i == 0 || i + 1 == m.size() ? "1D or 2D" : "2D", given[i].dim());
    FL_CHECK(m[i].dtype() == m[0].dtype(), RuntimeError,
             "multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor {} {}",
             name(m[0].dtype()), i, name(m[i].dtype()));
    FL_CHECK(i == 0 || m[i - 1].size(1) == m[i].size(0), RuntimeError,
             "multi_dot(): tensors {} and {} with shapes {} and {} cannot be multiplied", i - 1, i,
             to_string(m[i - 1].sizes()), to_string(m[i].sizes()));
  }
  Tensor out = Chain(m).product(0, m.size() - 1);
  if (row) out = squeeze_dim(out, 0);
  if (column) out = squeeze_dim(out, -1);
  return out;
}

Tensor power_of(Tensor self, int64_t n) {
  check_square(self.spec(), "linalg.matrix_power");
  Tensor base = n < 0 ? linalg_inv(self) : self;
  const Tensor one = square_eye(self.size(-1), self.dtype(), self.device());
  if (n == 0) return where(full(IntList(), true, DType::Bool, self.device()), one, self);
  Tensor out;
  for (uint64_t e = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (e & 1) out = out.defined() ? matmul(out, base) : base;
    e >>= 1;
    if (e == 0) break;
    base = matmul(base, base);
  }
  return n == 1 ? clone(out) : out;
}

Tensor cross_of(Tensor a, Tensor b, int64_t dim) {
  FL_CHECK(a.dim() == b.dim(), RuntimeError,
           "linalg.cross: inputs must have the same number of dimensions. Got {} and {}", a.dim(), b.dim());
  FL_CHECK(a.dim() > 0 && a.size(dim) == SymInt(3) && b.size(dim) == SymInt(3), RuntimeError,
           "linalg.cross: inputs dimension {} must have length 3. Got {} and {}", dim, to_string(a.sizes()),
           to_string(b.sizes()));
  const auto turned = [&](const Tensor& x, int64_t by) {
    return roll(x, Sizes{SymInt(by)}, Sizes{SymInt(dim)});
  };
  const Tensor first = mul(turned(a, -1), turned(b, -2)), second = mul(turned(a, -2), turned(b, -1));
  return sub(first, second);
}

Tensor powers_of(Tensor x, std::optional<SymInt> count) {
  if (x.dim() == 0) x = unsqueeze(x, 0);
  const SymInt n = count ? *count : x.size(-1);
  FL_CHECK(n > SymInt(1), RuntimeError, "N must be greater than 1, got {}", n);
  const Tensor base = is_integral(x.dtype(), true) ? to_dtype(x, DType::Int64) : x;
  const Sizes sizes = with_sizes(IntList(base.sizes()), {n - SymInt(1)});
  const Tensor powers = cumprod(expand(unsqueeze(base, -1), sizes), -1);
  return cat(
      std::vector<Tensor>{ones(with_sizes(IntList(base.sizes()), {SymInt(1)}), base.dtype(), base.device()),
                          powers},
      -1);
}

Tensor vector_products(Tensor x, Tensor y, int64_t dim) {
  FL_CHECK(x.dtype() == y.dtype(), RuntimeError,
           "linalg.vecdot: Expected x and y to have the same dtype, but found {} and {}", name(x.dtype()),
           name(y.dtype()));
  return sum(mul(conj_if_complex(x), y), IntList{dim}, false, x.dtype());
}

constexpr DTypeSet kNumbers = dtypes::integers | dtypes::floats | dtypes::complexes;

void define_matrix_products(OpTable& t) {
  t.define(linalg_matmul, {.doc = "`matmul`.",
                           .tags = Tag::NoInPlace,
                           .decompose = [](Tensor a, Tensor b) { return matmul(a, b); },
                           .samples = samples::custom(
                               [](SampleMaker& m, const Samples&) {
                                 return std::vector<Sample>{{{m.make({2, 3, 4}), m.make({4, 2})}, "", ""}};
                               },
                               {.dtypes = kNumbers, .tolerance = 1e-4})});
  const samples::MakeSamples chains = [](SampleMaker& m, const Samples&) {
    const auto x = [&](IntList sizes) { return m.make(sizes, -1, 1); };
    return std::vector<Sample>{
        {{std::vector<Tensor>{x({3, 2}), x({2, 4}), x({4, 3})}}, "", ""},
        {{std::vector<Tensor>{x({5, 2}), x({2, 3}), x({3, 4}), x({4, 1})}}, "four", ""},
        {{std::vector<Tensor>{x({2, 2}), x({3, 2})}}, "sizes", "RuntimeError: cannot be multiplied"}};
  };
  t.define(
      multi_dot,
      {.doc =
           "The product of several matrices, multiplied in the cheapest order; the first and the last may be "
           "vectors.",
       .tags = Tag::NoInPlace,
       .decompose = product_of_all,
       .samples = samples::custom(chains, {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
  t.define(chain_matmul,
           {.doc = "The product of several matrices, multiplied in the cheapest order.",
            .tags = Tag::NoInPlace,
            .decompose = [](TensorList list) { return list.size() == 1 ? list[0] : product_of_all(list); },
            .samples = samples::custom(chains, {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
  const Samples powers = samples::custom(
      [](SampleMaker& m, const Samples&) {
        std::vector<Sample> out;
        for (const int n : {0, 1, 3, -2})
          out.push_back({{samples::regular_matrices(m, {2, 3, 3}), n}, "", ""});
        out.push_back({{m.make({2, 3}), 2}, "wide", "RuntimeError: square matrices"});
        return out;
      },
      {.dtypes = samples::kLapackDTypes, .tolerance = 1e-3});
  t.define(linalg_matrix_power,
           {.doc = "The n-th power of square matrices by repeated squares; of the inverse where n "
                   "is negative.",
            .tags = Tag::NoInPlace,
            .decompose = power_of,
            .samples = powers});
  t.define(
      matrix_power,
      {.doc = "`linalg_matrix_power`.", .tags = Tag::NoInPlace, .decompose = power_of, .samples = powers});
}

void define_vector_products(OpTable& t) {
  const samples::MakeSamples threes = [](SampleMaker& m, const Samples& o) {
    const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
    return std::vector<Sample>{{{x({2, 3}), x({2, 3})}, "", ""},
                               {{x({4, 1, 3}), x({1, 2, 3})}, "broadcast", ""},
                               {{x({2, 4}), x({2, 4})}, "four", "RuntimeError: 3"}};
  };
  t.define(linalg_cross, {.doc = "The cross product of vectors of 3 elements along a dimension.",
                          .tags = Tag::NoInPlace,
                          .decompose = cross_of,
                          .samples = samples::custom(threes, {.dtypes = kNumbers})});
  t.define(linalg_vecdot, {.doc = "The sum of conj(x) y along a dimension.",
                           .tags = Tag::NoInPlace,
                           .decompose = vector_products,
                           .samples = samples::custom(
                               [](SampleMaker& m, const Samples& o) {
                                 const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                                 return std::vector<Sample>{{{x({2, 5}), x({2, 5})}, "", ""},
                                                            {{x({2, 1, 5}), x({3, 5}), 0}, "broadcast", ""}};
                               },
                               {.dtypes = kNumbers, .tolerance = 1e-4})});
  t.define(linalg_vander, {.doc = "The powers 0 to N - 1 of each element, along a new last dimension.",
                           .tags = Tag::NoInPlace | Tag::NoOut,
                           .decompose = powers_of,
                           .samples = samples::custom(
                               [](SampleMaker& m, const Samples&) {
                                 return std::vector<Sample>{
                                     {{m.make({3}, -1, 1)}, "", ""},
                                     {{m.make({2, 3}, -1, 1), 4}, "count", ""},
                                     {{m.make({3}), 1}, "one", "RuntimeError: greater than 1"}};
                               },
                               {.dtypes = dtypes::full_floats})});
}

void define_views(OpTable& t) {
  t.define(linalg_diagonal, {.doc = "The diagonal of the last two dimensions, or of others, as a view.",
                             .decompose = [](Tensor a, int64_t offset, int64_t dim1,
                                             int64_t dim2) { return diagonal(a, offset, dim1, dim2); },
                             .samples = samples::custom(
                                 [](SampleMaker& m, const Samples& o) {
                                   return std::vector<Sample>{
                                       {{m.make({2, 3, 4}, o.low, o.high)}, "", ""},
                                       {{m.make({3, 4}, o.low, o.high), 1}, "above", ""}};
                                 },
                                 {.dtypes = dtypes::all})});
}

}  // namespace

void define_linalg_product(OpTable& t) {
  define_matrix_products(t);
  define_vector_products(t);
  define_views(t);
}

}  // namespace fl
