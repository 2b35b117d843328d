#include "flambeau/ops/aten/linear.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// The leading dimensions as rows of one matrix.
Tensor rows_times(const Tensor& a, const Tensor& matrix) {
  Sizes sizes = a.sizes();
  const SymInt columns = sizes.back();
  SymInt rows = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) rows *= sizes[d];
  const Tensor product = mm(reshape(a, {rows, columns}), matrix);
  sizes.back() = matrix.sizes()[1];
  return view(product, sizes);
}

/// Sizes of the batch, then the last two of x, and x as one batch of matrices.
Tensor as_batch(const Tensor& x, const Sizes& batch) {
  Sizes sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(x.size(-1));
  return reshape(expand(x, sizes), {product(batch), x.size(-2), x.size(-1)});
}

Tensor batched(const Tensor& a, const Tensor& b) {
  const IntList of_a(a.sizes().data(), a.dim() - 2), of_b(b.sizes().data(), b.dim() - 2);
  Sizes sizes = broadcast_sizes(of_a, of_b);
  FL_CHECK(a.size(-1) == b.size(-2), RuntimeError,
           "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", a.size(-2), a.size(-1), b.size(-2),
           b.size(-1));
  const Tensor product = bmm(as_batch(a, sizes), as_batch(b, sizes));
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  return sizes.size() == 3 ? product : view(product, sizes);
}

Tensor matmul_of(Tensor a, Tensor b) {
  FL_CHECK(a.dim() > 0 && b.dim() > 0, RuntimeError,
           "both arguments to matmul need to be at least 1D, but they are {}D and {}D", a.dim(), b.dim());
  if (a.dim() == 1 && b.dim() == 1) return dot(a, b);
  if (a.dim() == 2 && b.dim() == 1) return mv(a, b);
  if (a.dim() == 1) return squeeze_dim(matmul_of(unsqueeze(a, 0), b), -2);
  if (b.dim() == 1) return squeeze_dim(matmul_of(a, unsqueeze(b, 1)), -1);
  if (a.dim() == 2 && b.dim() == 2) return mm(a, b);
  if (b.dim() == 2) return rows_times(a, b);
  return batched(a, b);
}

Tensor linear_of(Tensor input, Tensor weight, Tensor bias) {
  const Tensor product = matmul(input, weight.dim() == 2 ? t(weight) : weight);
  return bias.defined() ? add(product, bias) : product;
}

void check_vectors(const Tensor& a, const Tensor& b, const char* op) {
  FL_CHECK(a.dim() == 1 && b.dim() == 1, RuntimeError, "{}: 1D tensors expected, but got {}D and {}D tensors",
           op, a.dim(), b.dim());
}

Tensor dot_of(Tensor a, Tensor b) {
  check_vectors(a, b, "dot");
  FL_CHECK(a.sizes()[0] == b.sizes()[0], RuntimeError,
           "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, "
           "but got {} and {} elements respectively",
           a.sizes()[0], b.sizes()[0], a.sizes()[0], b.sizes()[0]);
  FL_CHECK(a.dtype() == b.dtype(), RuntimeError,
           "dot : expected both vectors to have same dtype, but found {} and {}", name(a.dtype()),
           name(b.dtype()));
  return squeeze_dims(mm(unsqueeze(a, 0), unsqueeze(b, 1)), {SymInt(0), SymInt(1)});
}

Tensor mv_of(Tensor matrix, Tensor vector) {
  FL_CHECK(matrix.dim() == 2 && vector.dim() == 1, RuntimeError,
           "vector + matrix @ vector expected, got {}, {}, {}", 1, matrix.dim(), vector.dim());
  FL_CHECK(matrix.sizes()[1] == vector.sizes()[0], RuntimeError,
           "size mismatch, got input ({}), mat ({}x{}), vec ({})", matrix.sizes()[0], matrix.sizes()[0],
           matrix.sizes()[1], vector.sizes()[0]);
  return squeeze_dim(mm(matrix, unsqueeze(vector, 1)), 1);
}

Tensor outer_of(Tensor a, Tensor b) {
  check_vectors(a, b, "outer");
  return mul(unsqueeze(a, 1), b);
}

std::vector<Sample> matmul_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({4}), x({4})}, "vectors", ""},
          {{x({3, 4}), x({4})}, "matrix and vector", ""},
          {{x({4}), x({4, 3})}, "vector and matrix", ""},
          {{x({3, 4}), m.make_transposed({4, 5}, o.low, o.high)}, "matrices", ""},
          {{x({2, 3, 4}), x({4, 5})}, "rows", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), x({4})}, "batch and vector", ""},
          {{x({4}), x({2, 4, 3})}, "vector and batch", ""},
          {{x({3, 4}), x({2, 4, 2})}, "matrix and batch", ""},
          {{x({2, 1, 3, 4}), x({5, 4, 2})}, "broadcast batches", ""},
          {{x({0, 3, 4}), x({4, 2})}, "size 0", ""},
          {{x({}), x({3})}, "0-dim", "RuntimeError: at least 1D"},
          {{x({2, 3, 4}), x({2, 3, 4})}, "sizes", "RuntimeError: cannot be multiplied"}};
}

void define_products(OpTable& t) {
  const DTypeSet numbers = dtypes::integers | dtypes::floats;
  t.define(
      matmul,
      {.doc = "The product of vectors, matrices or batches of matrices, whose leading dimensions broadcast; "
              "a vector counts as a row on the left and as a column on the right.",
       .tags = Tag::NoInPlace,
       .decompose = matmul_of,
       .samples = samples::custom(matmul_samples, {.dtypes = numbers, .tolerance = 1e-4})});
  t.define(linear, {.doc = "input @ weight^T + bias, along the last dimension.",
                    .tags = Tag::NoInPlace,
                    .decompose = linear_of,
                    .samples = samples::custom(
                        [](SampleMaker& m, const Samples& o) {
                          const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                          return std::vector<Sample>{{{x({3, 4}), x({5, 4}), x({5})}, "", ""},
                                                     {{x({2, 3, 4}), x({5, 4})}, "no bias", ""},
                                                     {{x({4}), x({5, 4}), x({5})}, "vector", ""},
                                                     {{x({3, 4}), x({4})}, "one output", ""}};
                        },
                        {.dtypes = dtypes::floats, .tolerance = 1e-4})});
  const Samples vectors = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{
            {{m.make({5}, o.low, o.high), m.make({5}, o.low, o.high)}, "", ""},
            {{m.make({2, 2}, o.low, o.high), m.make({2}, o.low, o.high)}, "matrix", "RuntimeError: 1D"}};
      },
      {.dtypes = numbers | dtypes::complexes, .tolerance = 1e-4});
  t.define(dot, {.doc = "The sum of the products of two vectors' elements.",
                 .tags = Tag::NoInPlace,
                 .decompose = dot_of,
                 .samples = vectors});
  t.define(vdot, {.doc = "`dot` with the conjugate of the first vector.",
                  .tags = Tag::NoInPlace,
                  .decompose = [](Tensor a, Tensor b) { return dot(conj_if_complex(a), b); },
                  .samples = vectors});
  t.define(outer, {.doc = "The matrix of all products of two vectors' elements.",
                   .tags = Tag::NoInPlace,
                   .decompose = outer_of,
                   .samples = vectors});
  t.define(mv, {.doc = "The product of a matrix and a vector.",
                .tags = Tag::NoInPlace,
                .decompose = mv_of,
                .samples = samples::custom(
                    [](SampleMaker& m, const Samples& o) {
                      return std::vector<Sample>{
                          {{m.make({3, 4}, o.low, o.high), m.make({4}, o.low, o.high)}, "", ""},
                          {{m.make({3, 4}, o.low, o.high), m.make({3}, o.low, o.high)},
                           "sizes",
                           "RuntimeError: size mismatch"}};
                    },
                    {.dtypes = numbers, .tolerance = 1e-4})});
  t.define(inner, {.doc = "Products along the last dimensions of two tensors; an elementwise product if one "
                          "is 0-dim.",
                   .tags = Tag::NoInPlace,
                   .decompose =
                       [](Tensor a, Tensor b) {
                         if (a.dim() == 0 || b.dim() == 0) return mul(a, b);
                         return tensordot(a, b, {SymInt(-1)}, {SymInt(-1)});
                       },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         return std::vector<Sample>{
                             {{m.make({2, 3}, o.low, o.high), m.make({4, 3}, o.low, o.high)}, "", ""},
                             {{m.make({2, 3}, o.low, o.high), m.make({}, o.low, o.high)}, "0-dim", ""}};
                       },
                       {.dtypes = numbers, .tolerance = 1e-4})});
}

/// beta * self + alpha * product, the factors in the dtype; self is not read where beta is 0.
Tensor scaled_sum(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const auto times = [](const Tensor& x, const Scalar& s) {
    if (s == Scalar(1)) return x;
    if (x.dtype() == DType::Bool) return mul(x, s.to_bool());
    return mul(x, is_integral(x.dtype()) ? Scalar(s.to_int()) : s);
  };
  const Tensor scaled = times(product, alpha);
  if (beta == Scalar(0)) {
    broadcast_sizes(self.sizes(), product.sizes());
    return scaled;
  }
  return add(scaled, times(self, beta));
}

void check_fits(const Tensor& self, const Tensor& product) {
  const Sizes sizes = broadcast_sizes(product.sizes(), self.sizes());
  FL_CHECK(static_cast<int>(sizes.size()) == product.dim(), RuntimeError,
           "The expanded size of the tensor {} must match the existing size {}", to_string(self.sizes()),
           to_string(product.sizes()));
  FL_CHECK(self.dtype() == product.dtype(), RuntimeError,
           "self and mat2 must have the same dtype, but got {} and {}", name(self.dtype()),
           name(product.dtype()));
}

template <Tensor (*Product)(const Tensor&, const Tensor&)>
Tensor added_product(Tensor self, Tensor a, Tensor b, Scalar beta, Scalar alpha) {
  const Tensor product = Product(a, b);
  check_fits(self, product);
  return scaled_sum(self, product, beta, alpha);
}
Tensor product_of_matrices(const Tensor& a, const Tensor& b) { return mm(a, b); }
Tensor product_of_batches(const Tensor& a, const Tensor& b) { return bmm(a, b); }
Tensor product_with_vector(const Tensor& a, const Tensor& b) { return mv(a, b); }
Tensor product_of_vectors(const Tensor& a, const Tensor& b) { return outer(a, b); }
Tensor sum_of_products(const Tensor& a, const Tensor& b) {
  return sum(bmm(a, b), IntList{SymInt(0)}, false, a.dtype());
}

template <int Case>
std::vector<Sample> added_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Sizes self[] = {{3, 5}, {2, 3, 5}, {3}, {3, 5}, {3, 5}};
  const Sizes first[] = {{3, 4}, {2, 3, 4}, {3, 4}, {3}, {2, 3, 4}};
  const Sizes second[] = {{4, 5}, {2, 4, 5}, {4}, {5}, {2, 4, 5}};
  return {{{x(self[Case]), x(first[Case]), x(second[Case])}, "", ""},
          {{x({1}), x(first[Case]), x(second[Case])}, "broadcast", ""},
          {{x(self[Case]), x(first[Case]), x(second[Case]), 2, 3}, "factors", ""},
          {{x(self[Case]), x(first[Case]), x(second[Case]), 0, 1}, "without self", ""},
          {{x({7}), x(first[Case]), x(second[Case])}, "sizes", "RuntimeError: must match"}};
}

void define_added_products(OpTable& t) {
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::integers | dtypes::floats, .tolerance = 1e-4});
  };
  t.define(addmm, {.doc = "beta * self + alpha * (mat1 @ mat2); self is not read if beta is 0.",
                   .decompose = added_product<product_of_matrices>,
                   .samples = options(added_samples<0>)});
  t.define(baddbmm, {.doc = "beta * self + alpha * (batch1 @ batch2) of batches of matrices.",
                     .decompose = added_product<product_of_batches>,
                     .samples = options(added_samples<1>)});
  t.define(addmv, {.doc = "beta * self + alpha * (mat @ vec).",
                   .decompose = added_product<product_with_vector>,
                   .samples = options(added_samples<2>)});
  t.define(addr, {.doc = "beta * self + alpha * the outer product of vec1 and vec2.",
                  .decompose = added_product<product_of_vectors>,
                  .samples = options(added_samples<3>)});
  t.define(addbmm, {.doc = "beta * self + alpha * the sum of the products of two batches of matrices.",
                    .decompose = added_product<sum_of_products>,
                    .samples = options(added_samples<4>)});
}

/// x as a matrix: the dimensions that stay, then those that are added up (or the other way round).
Tensor as_matrix(const Tensor& x, const std::vector<int64_t>& summed, bool summed_first, Sizes* stay) {
  Sizes order_stay, order_summed;
  SymInt kept = 1, added = 1;
  for (int d = 0; d < x.dim(); ++d) {
    if (std::find(summed.begin(), summed.end(), d) != summed.end()) continue;
    order_stay.push_back(d);
    stay->push_back(x.sizes()[d]);
    kept *= x.sizes()[d];
  }
  for (const int64_t d : summed) {
    order_summed.push_back(d);
    added *= x.sizes()[d];
  }
  Sizes order = summed_first ? order_summed : order_stay;
  const Sizes& rest = summed_first ? order_stay : order_summed;
  order.insert(order.end(), rest.begin(), rest.end());
  const Sizes sizes = summed_first ? Sizes{added, kept} : Sizes{kept, added};
  return reshape(permute(x, order), sizes);
}

Tensor tensordot_of(Tensor self, Tensor other, IntList dims_self, IntList dims_other) {
  FL_CHECK(dims_self.size() == dims_other.size(), RuntimeError,
           "both dimension lists should have same length, got {} and {}", dims_self.size(),
           dims_other.size());
  FL_CHECK(dims_self.empty() || (self.dim() > 0 && other.dim() > 0), IndexError,
           "tensordot: expected tensors with dimensions to contract, got {} and {} dimensions", self.dim(),
           other.dim());
  std::vector<int64_t> a, b;
  for (size_t k = 0; k < dims_self.size(); ++k) {
    a.push_back(wrap_dim(dims_self[k].expect_int(), self.dim()));
    b.push_back(wrap_dim(dims_other[k].expect_int(), other.dim()));
    FL_CHECK(self.sizes()[a.back()] == other.sizes()[b.back()], RuntimeError,
             "contracted dimensions need to match, but first has size {} in dim {} and second has size {} in "
             "dim {}",
             self.sizes()[a.back()], a.back(), other.sizes()[b.back()], b.back());
  }
  Sizes sizes;
  const Tensor left = as_matrix(self, a, false, &sizes);
  const Tensor right = as_matrix(other, b, true, &sizes);
  return reshape(mm(left, right), sizes);
}

void define_contractions(OpTable& t) {
  t.define(trace_of, {.doc = "The sum of a matrix's diagonal.",
                      .tags = Tag::NoInPlace,
                      .decompose =
                          [](Tensor self) {
                            FL_CHECK(self.dim() == 2, RuntimeError,
                                     "trace: expected a matrix, but got tensor with dim {}", self.dim());
                            return sum_all(diagonal(self));
                          },
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples& o) {
                            return std::vector<Sample>{
                                {{m.make({3, 4}, o.low, o.high)}, "", ""},
                                {{m.make({3}, o.low, o.high)}, "vector", "RuntimeError: expected a matrix"}};
                          },
                          {.dtypes = dtypes::integers | dtypes::full_floats})});
  t.define(tensordot,
           {.doc = "Products added up along pairs of dimensions of two tensors.",
            .tags = Tag::NoInPlace,
            .decompose = tensordot_of,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({2, 3, 4}), x({4, 3, 5}), Sizes{1, 2}, Sizes{1, 0}}, "", ""},
                      {{x({2, 3}), x({4}), Sizes{}, Sizes{}}, "outer", ""},
                      {{x({}), x({4}), Sizes{0}, Sizes{0}}, "0-dim", "IndexError: dimensions to contract"},
                      {{x({2, 3}), x({4}), Sizes{1}, Sizes{0}}, "sizes", "RuntimeError: need to match"}};
                },
                {.dtypes = dtypes::integers | dtypes::floats, .tolerance = 1e-4})});
}

}  // namespace

void define_linear(OpTable& t) {
  define_products(t);
  define_added_products(t);
  define_contractions(t);
}

}  // namespace fl
