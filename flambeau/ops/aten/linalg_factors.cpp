// Cholesky's, LU, QR and LDL factors.
#include "flambeau/ops/aten/linalg.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/factorization.h"
#include "flambeau/ops/prims/matrices.h"
#include "flambeau/ops/prims/spectrum.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using samples::definite_matrices;
using samples::kLapackDTypes;
using samples::regular_matrices;

Tensor none_of(const Tensor& like) { return zeros({SymInt(0)}, like.dtype(), like.device()); }

Tensor cholesky_factor(Tensor self, bool upper) {
  return std::get<0>(_linalg_cholesky(self, upper, "linalg.cholesky"));
}

/// A^-1 b from one triangle of A's factor.
Tensor solved_by_cholesky(Tensor b, Tensor factor, bool upper) {
  check_matrix(b.spec(), "torch.cholesky_solve", "b");
  check_square(factor.spec(), "torch.cholesky_solve", "u");
  FL_CHECK(
      b.size(-2) == factor.size(-1), RuntimeError,
      "Incompatible matrix sizes for cholesky_solve: each A matrix is {} by {} but each b matrix is {} by {}",
      factor.size(-2), factor.size(-1), b.size(-2), b.size(-1));
  const Tensor other = adjoint(factor);
  const Tensor half = solve_triangular(upper ? other : factor, b, false);
  return solve_triangular(upper ? factor : other, half, true);
}

void define_cholesky(OpTable& t) {
  const auto one = [](bool gradient) {
    return samples::custom(
        [](SampleMaker& m, const Samples&) {
          return std::vector<Sample>{{{definite_matrices(m, {3, 3})}, "", ""},
                                     {{definite_matrices(m, {2, 3, 3})}, "batch", ""},
                                     {{m.make({2, 3})}, "wide", "RuntimeError: square matrices"}};
        },
        {.dtypes = kLapackDTypes, .tolerance = 1e-4, .gradient = gradient});
  };
  t.define(
      linalg_cholesky_ex,
      {.doc =
           "`linalg_cholesky`, and the order of the leading minor that is not positive, or 0, instead of an "
           "error.",
       .tags = Tag::NoInPlace,
       .decompose = [](Tensor self, bool upper,
                       bool check) { return _linalg_cholesky(self, upper, check ? "linalg.cholesky" : ""); },
       .samples = one(false)});
  t.define(
      linalg_cholesky,
      {.doc =
           "The lower (or upper) triangular factor L of A = L L^H; A is Hermitian positive definite, and one "
           "triangle of it is read. Raises LinAlgError where it is not.",
       .tags = Tag::NoInPlace,
       .decompose = cholesky_factor,
       .samples = one(false)});
  t.define(cholesky, {.doc = "`linalg_cholesky`.",
                      .tags = Tag::NoInPlace,
                      .decompose = cholesky_factor,
                      .samples = one(false)});
  t.define(cholesky_solve, {.doc = "The solution of A X = self from A's factor input2.",
                            .tags = Tag::NoInPlace,
                            .decompose = solved_by_cholesky,
                            .samples = samples::custom(
                                [](SampleMaker& m, const Samples&) {
                                  return std::vector<Sample>{
                                      {{m.make({3, 2}), regular_matrices(m, {3, 3})}, "", ""},
                                      {{m.make({3, 2}), regular_matrices(m, {2, 3, 3}), true}, "upper", ""}};
                                },
                                {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(cholesky_inverse, {.doc = "The inverse of A from its factor.",
                              .tags = Tag::NoInPlace,
                              .decompose =
                                  [](Tensor self, bool upper) {
                                    check_square(self.spec(), "torch.cholesky_inverse");
                                    const Tensor one = square_eye(self.size(-1), self.dtype(), self.device());
                                    return solved_by_cholesky(expand(one, self.sizes()), self, upper);
                                  },
                              .samples = samples::custom(
                                  [](SampleMaker& m, const Samples&) {
                                    return std::vector<Sample>{
                                        {{regular_matrices(m, {3, 3})}, "", ""},
                                        {{regular_matrices(m, {2, 3, 3}), true}, "upper", ""}};
                                  },
                                  {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
}

void check_pivoting(bool pivot, std::string_view caller) {
  FL_CHECK(pivot, RuntimeError, "{}: LU without pivoting is not implemented on the CPU", caller);
}

using Three = std::tuple<Tensor, Tensor, Tensor>;

/// The matrix that puts the rows of L U in A's order.
Tensor permutation_matrix(const Tensor& pivots, SymInt rows, DType dtype) {
  const Tensor at = unsqueeze(_lu_permutation(pivots, rows, true), -1);
  return to_dtype(eq(at, arange_end(Scalar(rows), DType::Int64, pivots.device())), dtype);
}

Three unpacked(Tensor lu, Tensor pivots, bool unpack_data, bool unpack_pivots) {
  check_matrix(lu.spec(), "torch.lu_unpack", "LU_data");
  FL_CHECK(!unpack_pivots || pivots.dtype() == DType::Int32, RuntimeError,
           "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got {}",
           name(pivots.dtype()));
  const SymInt m = lu.size(-2), n = lu.size(-1), k = min(m, n);
  Tensor p = none_of(lu), l = none_of(lu), u = none_of(lu);
  if (unpack_pivots) p = permutation_matrix(pivots, m, lu.dtype());
  if (unpack_data) {
    l = add(tril(narrow(lu, -1, 0, k), -1), eye(m, k, lu.dtype(), lu.device()));
    u = triu(narrow(lu, -2, 0, k));
  }
  return {p, l, u};
}

void define_lu(OpTable& t) {
  const Samples any = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{regular_matrices(m, {3, 3})}, "", ""},
                                   {{m.make({2, 4, 3}, -2, 2)}, "tall", ""},
                                   {{m.make({3, 4}, -2, 2)}, "wide", ""},
                                   {{m.make({3})}, "vector", "RuntimeError: at least 2 dimensions"}};
      },
      {.dtypes = kLapackDTypes, .tolerance = 1e-4});
  t.define(
      lu_factor_ex,
      {.doc = "L and U in one matrix, the pivots, and the number of the first zero on U's diagonal, or 0.",
       .tags = Tag::NoInPlace,
       .decompose =
           [](Tensor a, bool pivot, bool check) {
             check_pivoting(pivot, "linalg.lu_factor_ex");
             return _linalg_lu(a, check ? "torch.linalg.lu_factor_ex" : "");
           },
       .samples = any});
  t.define(lu_factor, {.doc = "L and U of P A = L U in one matrix, and the pivots: for `linalg_lu_solve`.",
                       .tags = Tag::NoInPlace,
                       .decompose =
                           [](Tensor a, bool pivot) {
                             check_pivoting(pivot, "linalg.lu_factor");
                             const auto [lu, pivots, info] = _linalg_lu(a, "torch.linalg.lu_factor");
                             return std::tuple(lu, pivots);
                           },
                       .samples = any});
  t.define(linalg_lu,
           {.doc = "A = P L U: a permutation, a lower triangle with ones on its diagonal, an upper "
                   "triangle.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor a, bool pivot) {
                  check_pivoting(pivot, "linalg.lu");
                  const auto [lu, pivots, info] = _linalg_lu(a, "");
                  return unpacked(lu, pivots, true, true);
                },
            .samples = any});
  t.define(lu_unpack, {.doc = "P, L and U from `linalg_lu_factor`'s results.",
                       .tags = Tag::NoInPlace,
                       .decompose = unpacked,
                       .samples = samples::custom(
                           [](SampleMaker& m, const Samples&) {
                             std::vector<Sample> out;
                             for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2, 4, 3}, Sizes{3, 4}}) {
                               const auto [lu, pivots, info] = _linalg_lu(m.make(sizes, -2, 2), "");
                               out.push_back({{lu, pivots}, "", ""});
                             }
                             return out;
                           },
                           {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
}

std::tuple<Tensor, Tensor> qr_factors(Tensor a, std::string_view mode) {
  check_matrix(a.spec(), "linalg.qr");
  check_lapack_dtype(a.spec(), "linalg.qr");
  FL_CHECK(mode == "reduced" || mode == "complete" || mode == "r", RuntimeError,
           "qr received unrecognized mode '{}' but expected one of 'reduced' (default), 'r', or 'complete'",
           mode);
  const auto [factors, tau] = geqrf(a);
  const SymInt m = a.size(-2), n = a.size(-1), k = min(m, n);
  if (mode == "r") return {none_of(a), triu(narrow(factors, -2, 0, k))};
  if (mode == "reduced")
    return {householder_product(narrow(factors, -1, 0, k), tau), triu(narrow(factors, -2, 0, k))};
  Tensor columns = factors;
  if (m > n) {
    columns = cat(std::vector<Tensor>{factors, zeros(with_sizes(batch_sizes(a.sizes()), {m, m - n}),
                                                     a.dtype(), a.device())},
                  -1);
  } else if (n > m) {
    columns = narrow(factors, -1, 0, m);
  }
  return {householder_product(columns, tau), triu(factors)};
}

/// D. Roberts, L. Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and
/// deep matrices and their software implementation", 2020.
Tensor qr_gradient(GradCtx& c, const Tensor&) {
  const std::string_view mode = c.arg(1).str();
  FL_CHECK(mode != "r", RuntimeError,
           "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
           "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.");
  const Tensor q = c.out(0), r = c.out(1);
  const SymInt k = q.size(-1), n = r.size(-1);
  FL_CHECK(mode != "complete" || k <= n, RuntimeError,
           "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
  Tensor gq = c.grad(0), gr = c.grad(1), square = r, rest;
  if (k < n) {
    square = narrow(r, -1, 0, k);
    const Tensor wide = narrow(gr, -1, k, n - k);
    rest = matmul(q, wide);
    gq = add(gq, matmul(matmul(q, narrow(r, -1, k, n - k)), adjoint(wide)));
    gr = narrow(gr, -1, 0, k);
  }
  const Tensor upper = triu(sub(matmul(gr, adjoint(square)), matmul(adjoint(q), gq)));
  const Tensor strict = triu(upper, 1);
  const Tensor hermitian =
      add(add(strict, adjoint(strict)), as_diagonal(to_dtype(real(diagonal_of(upper)), q.dtype())));
  const Tensor g = _solve_triangular(adjoint(square), add(gq, matmul(q, hermitian)), false, false);
  return rest.defined() ? cat(std::vector<Tensor>{g, rest}, -1) : g;
}

void define_qr(OpTable& t) {
  t.define(
      linalg_qr,
      {.doc = "A = Q R: Q with orthonormal columns, R upper triangular. mode \"reduced\": Q of A's shorter "
              "side, \"complete\": Q square, \"r\": R alone.",
       .tags = Tag::NoInPlace | Tag::ComputeIntensive,
       .decompose = qr_factors,
       .saves = saves::out({0, 1}),
       .grad = qr_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{
                 {{m.make({4, 3})}, "tall", ""},
                 {{m.make({2, 3, 4})}, "wide", ""},
                 {{regular_matrices(m, {3, 3}), "complete"}, "complete", ""},
                 {{m.make({0, 3})}, "size 0", ""},
                 {{m.make({3, 3}), "half"}, "mode", "RuntimeError: unrecognized mode"}};
           },
           {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  const Samples tall = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{m.make({4, 3})}, "", ""}};
      },
      {.dtypes = kLapackDTypes, .tolerance = 1e-4});
  t.define(
      qr, {.doc = "`linalg_qr` in mode \"reduced\" (some) or \"complete\".",
           .tags = Tag::NoInPlace,
           .decompose = [](Tensor self, bool some) { return linalg_qr(self, some ? "reduced" : "complete"); },
           .samples = tall});
  t.define(orgqr, {.doc = "`linalg_householder_product`.",
                   .tags = Tag::NoInPlace,
                   .decompose = [](Tensor self, Tensor tau) { return householder_product(self, tau); },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples&) {
                         return std::vector<Sample>{{{m.make({4, 3}, -1, 1), m.make({3}, -1, 1)}, "", ""}};
                       },
                       {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
}

void define_ldl(OpTable& t) {
  t.define(
      ldl_factor,
      {.doc =
           "L and the blocks of D of A = L D L^T in one matrix, and the pivots, of a symmetric (hermitian: "
           "Hermitian) matrix: for `linalg_ldl_solve`.",
       .tags = Tag::NoInPlace | Tag::NonDifferentiable,
       .decompose =
           [](Tensor self, bool hermitian) {
             const auto [ld, pivots, info] = ldl_factor_ex(self, hermitian, true);
             return std::tuple(ld, pivots);
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{{{definite_matrices(m, {3, 3})}, "", ""}};
           },
           {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(ldl_solve, {.doc = "The solution of A X = B from A's LDL factors; batches broadcast.",
                       .tags = Tag::NoInPlace | Tag::NonDifferentiable,
                       .decompose =
                           [](Tensor ld, Tensor pivots, Tensor b, bool hermitian) {
                             check_square(ld.spec(), "torch.linalg.ldl_solve", "LD");
                             check_matrix(b.spec(), "torch.linalg.ldl_solve", "B");
                             FL_CHECK(b.size(-2) == ld.size(-2), RuntimeError,
                                      "torch.linalg.ldl_solve: Incompatible shapes of LD and B: {} and {}",
                                      to_string(ld.sizes()), to_string(b.sizes()));
                             const Sizes batch =
                                 broadcast_sizes(batch_sizes(ld.sizes()), batch_sizes(b.sizes()));
                             const SymInt n = ld.size(-1);
                             return _ldl_solve(expand(ld, with_sizes(batch, {n, n})),
                                               expand(pivots, with_sizes(batch, {n})),
                                               expand(b, with_sizes(batch, {n, b.size(-1)})), hermitian);
                           },
                       .samples = samples::custom(
                           [](SampleMaker& m, const Samples&) {
                             const auto [ld, pivots, info] = ldl_factor_ex(definite_matrices(m, {3, 3}));
                             return std::vector<Sample>{{{ld, pivots, m.make({3, 2})}, "", ""},
                                                        {{ld, pivots, m.make({2, 3, 2})}, "broadcast", ""}};
                           },
                           {.dtypes = dtypes::full_floats, .tolerance = 1e-4})});
}

}  // namespace

void define_linalg_factors(OpTable& t) {
  define_cholesky(t);
  define_lu(t);
  define_qr(t);
  define_ldl(t);
}

}  // namespace fl
