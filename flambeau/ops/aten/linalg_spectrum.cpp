// Eigenvalues, singular values, pseudo-inverses and ranks.
#include "flambeau/ops/aten/linalg.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/factorization.h"
#include "flambeau/ops/prims/matrices.h"
#include "flambeau/ops/prims/spectrum.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using samples::kLapackDTypes;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// Eigenvalues' and singular values' gradients need the vectors.
bool needs_vectors(const Tensor& a) { return is_recording() && a.requires_grad(); }

Tensor symmetric_values(Tensor a, std::string_view triangle) {
  return std::get<0>(_linalg_eigh(a, triangle, needs_vectors(a)));
}
Tensor singular_values(Tensor a, std::optional<std::string_view> driver) {
  return std::get<1>(_linalg_svd(a, false, needs_vectors(a), driver));
}

Samples squares(bool gradient, DTypeSet dtypes = kLapackDTypes) {
  return samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{m.make({3, 3}, -1, 1)}, "", ""},
                                   {{m.make({2, 3, 3}, -1, 1)}, "batch", ""},
                                   {{m.make({2, 3})}, "wide", "RuntimeError: square matrices"}};
      },
      {.dtypes = dtypes, .tolerance = 1e-4, .gradient = gradient});
}
Samples any_shape(bool gradient = true) {
  return samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{m.make({3, 3})}, "", ""},
                                   {{m.make({2, 4, 3})}, "tall", ""},
                                   {{m.make({3, 4})}, "wide", ""},
                                   {{m.make({0, 3})}, "size 0", ""},
                                   {{m.make({3})}, "vector", "RuntimeError: at least 2 dimensions"}};
      },
      {.dtypes = kLapackDTypes, .tolerance = 1e-3, .gradient = gradient});
}

void define_eigenvalues(OpTable& t) {
  t.define(linalg_eigh,
           {.doc = "Eigenvalues in ascending order, and eigenvectors as columns, of a symmetric or Hermitian "
                   "matrix, of which the lower (\"L\") or upper (\"U\") triangle is read.",
            .tags = Tag::NoInPlace,
            .decompose = [](Tensor a, std::string_view triangle) { return _linalg_eigh(a, triangle, true); },
            .samples = squares(false)});
  t.define(linalg_eigvalsh, {.doc = "`linalg_eigh`'s eigenvalues alone.",
                             .tags = Tag::NoInPlace,
                             .decompose = symmetric_values,
                             .samples = squares(false)});
  t.define(linalg_eig, {.doc = "Complex eigenvalues, in no order, and eigenvectors of length 1 as columns.",
                        .tags = Tag::NoInPlace,
                        .decompose = [](Tensor a) { return _linalg_eig(a, true); },
                        .samples = squares(false)});
  t.define(linalg_eigvals,
           {.doc = "`linalg_eig`'s eigenvalues alone.",
            .tags = Tag::NoInPlace,
            .decompose = [](Tensor a) { return std::get<0>(_linalg_eig(a, needs_vectors(a))); },
            .samples = squares(false)});
  t.define(torch_matrix_exp, {.doc = "`linalg_matrix_exp`.",
                              .tags = Tag::NoInPlace | Tag::NoOut,
                              .decompose = [](Tensor a) { return matrix_exp(a); },
                              .samples = squares(true)});
}

Three transposed_svd(Tensor a, bool some, bool compute) {
  if (!compute) {
    const Tensor s = singular_values(a, std::nullopt);
    const IntList batch = batch_sizes(a.sizes());
    const SymInt m = a.size(-2), n = a.size(-1);
    return {zeros(with_sizes(batch, {m, m}), a.dtype()), s, zeros(with_sizes(batch, {n, n}), a.dtype())};
  }
  const auto [u, s, vh] = _linalg_svd(a, !some);
  return {u, s, adjoint(vh)};
}

void define_singular_values(OpTable& t) {
  t.define(linalg_svd, {.doc = "A = U diag(S) Vh: S in descending order, orthonormal columns of U and rows "
                               "of Vh; square ones with full_matrices.",
                        .tags = Tag::NoInPlace,
                        .decompose =
                            [](Tensor a, bool full, std::optional<std::string_view> driver) {
                              return _linalg_svd(a, full, true, driver);
                            },
                        .samples = any_shape(false)});
  t.define(linalg_svdvals, {.doc = "Singular values in descending order.",
                            .tags = Tag::NoInPlace,
                            .decompose = singular_values,
                            .samples = any_shape()});
  t.define(svd, {.doc = "U, S and V (not its adjoint); zeros for U and V without compute_uv.",
                 .tags = Tag::NoInPlace,
                 .decompose = transposed_svd,
                 .samples = any_shape(false)});
}

/// What counts as zero among values: max(atol, rtol * largest).
Tensor cutoff(const Tensor& largest, const Tensor& atol, const Tensor& rtol) {
  const auto column = [](const Tensor& x) { return unsqueeze(x, -1); };
  return maximum(to_dtype(column(atol), largest.dtype()),
                 mul(to_dtype(column(rtol), largest.dtype()), largest));
}

/// The tolerances as tensors: rtol is eps * max(m, n) where neither was given, and where atol is 0.
std::pair<Tensor, Tensor> tolerances(const Tensor& a, Tensor atol, Tensor rtol) {
  const DType dtype = real_dtype(a.dtype());
  const double least = epsilon_of(a.dtype()) * static_cast<double>(max(a.size(-2), a.size(-1)).guard_int());
  const Tensor usual = full(IntList(), least, dtype, a.device()),
               zero = full(IntList(), 0.0, dtype, a.device());
  if (!rtol.defined()) rtol = atol.defined() ? where(gt(atol, 0), zero, usual) : usual;
  if (!atol.defined()) atol = zero;
  return {atol, rtol};
}
Tensor as_tensor(const Tensor& like, std::optional<double> value) {
  return value ? full(IntList(), *value, real_dtype(like.dtype()), like.device()) : Tensor();
}

Tensor pseudo_inverse(Tensor a, Tensor given_atol, Tensor given_rtol, bool hermitian) {
  check_matrix(a.spec(), "linalg.pinv");
  check_lapack_dtype(a.spec(), "linalg.pinv");
  const SymInt m = a.size(-2), n = a.size(-1);
  if (a.numel() == SymInt(0)) return zeros(with_sizes(batch_sizes(a.sizes()), {n, m}), a.dtype(), a.device());
  const auto [atol, rtol] = tolerances(a, given_atol, given_rtol);
  if (hermitian) {
    const auto [values, v] = _linalg_eigh(a, "L", true);
    const Tensor size = abs(values), limit = cutoff(amax(size, IntList{-1}, true), atol, rtol);
    const Tensor inverse = to_dtype(where(gt(size, limit), reciprocal(values), 0), a.dtype());
    return matmul(mul(v, unsqueeze(inverse, -2)), adjoint(v));
  }
  const auto [u, s, vh] = _linalg_svd(a, false, true);
  const Tensor limit = cutoff(narrow(s, -1, 0, 1), atol, rtol);
  const Tensor inverse = to_dtype(where(gt(s, limit), reciprocal(s), 0), a.dtype());
  return matmul(mul(adjoint(vh), unsqueeze(inverse, -2)), adjoint(u));
}

/// -P^H P' P^H + (1 - A P) P'^H P P^H + P^H P P'^H (1 - P A).
Tensor pseudo_inverse_gradient(GradCtx& c, const Tensor& g) {
  const Tensor a = c.in(0), p = c.out(0), ph = adjoint(p), gh = adjoint(g);
  const Tensor second = matmul(gh, matmul(p, ph)), third = matmul(matmul(ph, p), gh);
  const Tensor rest = add(sub(second, matmul(a, matmul(p, second))), sub(third, matmul(matmul(third, p), a)));
  return sub(rest, matmul(ph, matmul(g, ph)));
}

void define_pseudo_inverse(OpTable& t) {
  t.define(
      linalg_pinv_tensors,
      {.doc = "The Moore-Penrose inverse; singular values of at most max(atol, rtol * the largest) count as "
              "0. Gradient: G. Golub, V. Pereyra, \"The differentiation of pseudo-inverses and nonlinear "
              "least squares problems whose variables separate\", 1973, for matrices of constant rank.",
       .tags = Tag::NoInPlace | Tag::ComputeIntensive,
       .decompose = pseudo_inverse,
       .saves = saves::in({0}) | saves::out({0}),
       .grad = pseudo_inverse_gradient,
       .samples = any_shape()});
  t.define(linalg_pinv_floats,
           {.doc = "The Moore-Penrose inverse.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor a, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
                  return linalg_pinv_tensors(a, as_tensor(a, atol), as_tensor(a, rtol), hermitian);
                },
            .samples = any_shape()});
  const auto by_rcond = [](Tensor a, double rcond, bool hermitian) {
    return linalg_pinv_tensors(a, as_tensor(a, 0.0), as_tensor(a, rcond), hermitian);
  };
  const Samples with_number = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{m.make({4, 3}), 1e-5}, "", ""}};
      },
      {.dtypes = kLapackDTypes, .tolerance = 1e-3});
  t.define(linalg_pinv, {.doc = "The Moore-Penrose inverse; rcond is rtol.",
                         .tags = Tag::NoInPlace,
                         .decompose = by_rcond,
                         .samples = with_number});
  t.define(linalg_pinv_rcond, {.doc = "The Moore-Penrose inverse; rcond is rtol, one for each matrix.",
                               .tags = Tag::NoInPlace,
                               .decompose =
                                   [](Tensor a, Tensor rcond, bool hermitian) {
                                     return linalg_pinv_tensors(a, as_tensor(a, 0.0), rcond, hermitian);
                                   },
                               .samples = samples::custom(
                                   [](SampleMaker& m, const Samples&) {
                                     const Tensor rcond = full(Sizes{2}, 1e-5, real_dtype(m.dtype()));
                                     return std::vector<Sample>{{{m.make({2, 4, 3}), rcond}, "", ""}};
                                   },
                                   {.dtypes = kLapackDTypes, .tolerance = 1e-3, .gradient = false})});
  t.define(pinverse, {.doc = "The Moore-Penrose inverse; rcond is rtol.",
                      .tags = Tag::NoInPlace | Tag::NoOut,
                      .decompose =
                          [](Tensor a, double rcond) {
                            return linalg_pinv_tensors(a, as_tensor(a, 0.0), as_tensor(a, rcond), false);
                          },
                      .samples = with_number});
}

Tensor rank_of(Tensor a, Tensor given_atol, Tensor given_rtol, bool hermitian) {
  check_matrix(a.spec(), "torch.linalg.matrix_rank", "input");
  check_lapack_dtype(a.spec(), "torch.linalg.matrix_rank");
  const Tensor x = detach(a);
  if (a.numel() == SymInt(0)) return zeros(batch_sizes(a.sizes()), DType::Int64, a.device());
  const auto [atol, rtol] = tolerances(x, given_atol, given_rtol);
  const Tensor values = hermitian ? abs(symmetric_values(x, "L")) : singular_values(x, std::nullopt);
  const Tensor limit = cutoff(amax(values, IntList{-1}, true), atol, rtol);
  return sum(gt(values, limit), IntList{-1}, false, DType::Int64);
}

void define_rank(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NonDifferentiable;
  t.define(matrix_rank_tensors, {.doc = "How many singular values (hermitian: moduli of eigenvalues) are "
                                        "above max(atol, rtol * the largest).",
                                 .tags = kTags,
                                 .decompose = rank_of,
                                 .samples = any_shape()});
  t.define(matrix_rank_floats,
           {.doc = "How many singular values are above max(atol, rtol * the largest).",
            .tags = kTags,
            .decompose =
                [](Tensor a, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
                  return rank_of(a, as_tensor(a, atol), as_tensor(a, rtol), hermitian);
                },
            .samples = any_shape()});
  t.define(matrix_rank, {.doc = "How many singular values are above tol.",
                         .tags = kTags,
                         .decompose =
                             [](Tensor a, double tol, bool hermitian) {
                               return rank_of(a, as_tensor(a, tol), as_tensor(a, 0.0), hermitian);
                             },
                         .samples = samples::custom(
                             [](SampleMaker& m, const Samples&) {
                               return std::vector<Sample>{{{m.make({2, 4, 3}), 1.5}, "", ""}};
                             },
                             {.dtypes = kLapackDTypes})});
  t.define(matrix_rank_tol,
           {.doc = "How many singular values are above tol, one for each matrix.",
            .tags = kTags,
            .decompose = [](Tensor a, Tensor tol,
                            bool hermitian) { return rank_of(a, tol, as_tensor(a, 0.0), hermitian); },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  const Tensor tol = full(Sizes{2}, 1.5, real_dtype(m.dtype()));
                  return std::vector<Sample>{{{m.make({2, 4, 3}), tol}, "", ""}};
                },
                {.dtypes = kLapackDTypes})});
}

/// Sums of pairs x_i + x_j.
Tensor pair_sums(const Tensor& x, DType dtype) {
  return to_dtype(add(unsqueeze(x, -2), unsqueeze(x, -1)), dtype);
}

std::tuple<Tensor, Tensor> polar_factors(Tensor a) {
  check_matrix(a.spec(), "linalg.polar");
  check_lapack_dtype(a.spec(), "linalg.polar");
  FL_CHECK(a.size(-2) >= a.size(-1), RuntimeError,
           "linalg.polar: expected matrices with at least as many rows as columns, got {} by {}", a.size(-2),
           a.size(-1));
  const auto [u, s, vh] = _linalg_svd(a, false, true);
  return {matmul(u, vh), matmul(mul(adjoint(vh), to_dtype(unsqueeze(s, -2), a.dtype())), vh)};
}

/// From H = U^H A, and from dU = P (B - B^H) / (s_i + s_j) Q^H + (1 - P P^H) dA Q S^-1 Q^H with A = P S Q^H
/// and B = P^H dA Q.
Tensor polar_gradient(GradCtx& c, const Tensor&) {
  const Tensor a = c.in(0);
  const auto [p, s, qh] = _linalg_svd(a, false, true);
  const Tensor unitary = matmul(p, qh), q = adjoint(qh), gh = c.grad(1);
  const Tensor gu = add(c.grad(0), matmul(a, adjoint(gh)));
  const Tensor inner = matmul(adjoint(p), matmul(gu, q));
  const Tensor turned = div(sub(inner, adjoint(inner)), pair_sums(s, a.dtype()));
  Tensor g = add(matmul(unitary, gh), matmul(matmul(p, turned), qh));
  if (a.size(-1) < a.size(-2)) {
    const Tensor w = div(matmul(gu, q), to_dtype(unsqueeze(s, -2), a.dtype()));
    g = add(g, matmul(sub(w, matmul(p, matmul(adjoint(p), w))), qh));
  }
  return g;
}

Tensor symmetric_root(Tensor a) {
  check_square(a.spec(), "linalg.matrix_sqrth");
  check_lapack_dtype(a.spec(), "linalg.matrix_sqrth");
  const auto [w, v] = _linalg_eigh(a, "L", true);
  return matmul(mul(v, to_dtype(unsqueeze(sqrt(w), -2), a.dtype())), adjoint(v));
}

void define_roots(OpTable& t) {
  t.define(linalg_polar, {.doc = "A = U H: U with orthonormal columns, H symmetric (Hermitian) and positive "
                                 "semidefinite; A has at least as many rows as columns.",
                          .tags = Tag::NoInPlace | Tag::ComputeIntensive,
                          .decompose = polar_factors,
                          .saves = saves::in({0}),
                          .grad = polar_gradient,
                          .samples = samples::custom(
                              [](SampleMaker& m, const Samples&) {
                                return std::vector<Sample>{{{m.make({3, 3})}, "", ""},
                                                           {{m.make({2, 4, 3})}, "tall", ""},
                                                           {{m.make({3, 4})}, "wide", "RuntimeError: rows"}};
                              },
                              {.dtypes = kLapackDTypes, .tolerance = 1e-3})});
  t.define(matrix_sqrth,
           {.doc = "The symmetric (Hermitian) positive definite X with X X = A, of which the lower "
                   "triangle is read.",
            .tags = Tag::NoInPlace | Tag::ComputeIntensive,
            .decompose = symmetric_root,
            .saves = saves::out({0}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  // X dX + dX X = dA, in X's eigenvectors.
                  const auto [w, v] = _linalg_eigh(c.out(0), "L", true);
                  const Tensor inner = matmul(adjoint(v), matmul(g, v));
                  return matmul(v, matmul(div(inner, pair_sums(w, g.dtype())), adjoint(v)));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{samples::definite_matrices(m, {2, 3, 3})}, "", ""}};
                },
                {.dtypes = kLapackDTypes, .tolerance = 1e-3, .gradient = false})});
}

}  // namespace

void define_linalg_spectrum(OpTable& t) {
  define_eigenvalues(t);
  define_singular_values(t);
  define_pseudo_inverse(t);
  define_rank(t);
  define_roots(t);
}

}  // namespace fl
