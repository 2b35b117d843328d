#include "flambeau/ops/prims/spectrum.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/factorization.h"
#include "flambeau/ops/prims/matrices.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive;

/// x_j - x_i for each i, j of the last dimension, 1 where that is the diagonal.
Tensor differences(const Tensor& x) {
  const Tensor d = sub(unsqueeze(x, -2), unsqueeze(x, -1));
  return with_diagonal(d, ones(x.sizes(), x.dtype(), x.device()));
}

InferResult eigh_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_square(a, "linalg.eigh");
  check_lapack_dtype(a, "linalg.eigh");
  const std::string_view triangle = c.arg(1).str();
  FL_CHECK(triangle == "L" || triangle == "U" || triangle == "l" || triangle == "u", RuntimeError,
           "Expected UPLO argument to be 'L' or 'U', but got {}", triangle);
  const SymInt n = a.sizes.back();
  TensorSpec vectors = matrices_spec(batch_sizes(a.sizes), n, n, a.dtype, a.device);
  if (!c.flag(2)) vectors = make_spec(Sizes{SymInt(0)}, a.dtype, a.device);
  return {vectors_spec(a, n, real_dtype(a.dtype)), vectors};
}

/// A' = V (diag(w') + V^H V' / (w_j - w_i)) V^H (M. Giles, "Collected matrix derivative results for forward
/// and reverse mode algorithmic differentiation", 2008).
Tensor eigh_gradient(GradCtx& c, const Tensor&) {
  FL_CHECK(c.arg(2).to_bool(), RuntimeError,
           "linalg.eigvalsh: its gradient needs the eigenvectors, and they were not computed");
  const Tensor values = c.out(0), v = c.out(1);
  const Tensor slope = to_dtype(c.grad(0), v.dtype());
  if (!c.grad_defined(1)) return matmul(mul(v, unsqueeze(slope, -2)), adjoint(v));
  const Tensor inner = div(matmul(adjoint(v), c.grad(1)), to_dtype(differences(values), v.dtype()));
  return matmul(matmul(v, with_diagonal(inner, slope)), adjoint(v));
}

InferResult eig_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_square(a, "linalg.eig");
  check_lapack_dtype(a, "linalg.eig");
  const SymInt n = a.sizes.back();
  const DType complex_type = complex_dtype(a.dtype);
  TensorSpec vectors = matrices_spec(batch_sizes(a.sizes), n, n, complex_type, a.device);
  if (!c.flag(1)) vectors = make_spec(Sizes{SymInt(0)}, complex_type, a.device);
  return {vectors_spec(a, n, complex_type), vectors};
}

/// C. Boeddeker et al., "On the computation of complex-valued gradients with application to statistically
/// optimum beamforming", 2017, for vectors of length 1.
Tensor eig_gradient(GradCtx& c, const Tensor&) {
  FL_CHECK(c.arg(1).to_bool(), RuntimeError,
           "linalg.eigvals: its gradient needs the eigenvectors, and they were not computed");
  const Tensor values = c.out(0), v = c.out(1), vh = adjoint(v);
  Tensor inner;
  if (c.grad_defined(1)) {
    const Tensor slopes = matmul(vh, c.grad(1));
    const Tensor along = to_dtype(real(diagonal_of(slopes)), v.dtype());
    const Tensor across = sub(slopes, mul(matmul(vh, v), unsqueeze(along, -2)));
    inner = with_diagonal(div(across, conj_if_complex(differences(values))), c.grad(0));
  } else {
    inner = as_diagonal(c.grad(0));
  }
  const auto [lu, pivots, info] = _linalg_lu(vh, "linalg.eig");
  const Tensor rows = unsqueeze(_lu_permutation(pivots, v.size(-1)), -1);
  const Tensor right = matmul(inner, vh);
  const Tensor ordered = gather(right, -2, expand(rows, right.sizes()));
  const Tensor g = _solve_triangular(lu, _solve_triangular(lu, ordered, false, true, true), true);
  return is_complex(c.in_spec(0).dtype) ? g : real(g);
}

InferResult svd_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_matrix(a, "linalg.svd");
  check_lapack_dtype(a, "linalg.svd");
  if (c.has(3)) {
    const std::string_view driver = c.arg(3).str();
    FL_CHECK(driver == "gesdd" || driver == "gesvd", RuntimeError,
             "linalg.svd: keyword argument `driver=` on the CPU is 'gesdd' or 'gesvd', got {}", driver);
  }
  const IntList batch = batch_sizes(a.sizes);
  const SymInt m = a.sizes[a.dim() - 2], n = a.sizes[a.dim() - 1], k = min(m, n);
  const TensorSpec s = vectors_spec(a, k, real_dtype(a.dtype));
  if (!c.flag(2)) {
    const TensorSpec none = make_spec(Sizes{SymInt(0)}, a.dtype, a.device);
    return {none, s, none};
  }
  const bool full = c.flag(1);
  return {matrices_spec(batch, m, full ? m : k, a.dtype, a.device), s,
          matrices_spec(batch, full ? n : k, n, a.dtype, a.device)};
}

Tensor skew(const Tensor& x) { return sub(x, adjoint(x)); }

/// J. Townsend, "Differentiating the singular value decomposition", 2016, and Z.-Q. Wan, S.-X. Zhang,
/// "Automatic differentiation for complex valued SVD", 2019, for the phases of complex vectors.
Tensor svd_gradient(GradCtx& c, const Tensor&) {
  FL_CHECK(c.arg(2).to_bool(), RuntimeError,
           "linalg.svdvals: its gradient needs the singular vectors, and they were not computed");
  const Tensor s = c.out(1);
  const SymInt k = s.size(-1);
  const Tensor u = narrow(c.out(0), -1, 0, k), vh = narrow(c.out(2), -2, 0, k);
  const DType dtype = u.dtype();
  const Tensor s_slope = to_dtype(c.grad(1), dtype);
  if (!c.grad_defined(0) && !c.grad_defined(2)) return matmul(mul(u, unsqueeze(s_slope, -2)), vh);
  // Columns beyond the singular values' number could be others: what depends on them does not count.
  const Tensor gu = narrow(c.grad(0), -1, 0, k), gv = adjoint(narrow(c.grad(2), -2, 0, k)), v = adjoint(vh);
  const Tensor gaps = to_dtype(differences(square(s)), dtype), row = to_dtype(unsqueeze(s, -2), dtype);
  const Tensor of_u = skew(matmul(adjoint(u), gu)), of_v = skew(matmul(vh, gv));
  Tensor inner = add(mul(div(of_u, gaps), row), mul(div(of_v, gaps), transpose(row, -2, -1)));
  Tensor middle = s_slope;
  if (is_complex(dtype)) middle = add(middle, div(diagonal_of(of_u), mul(to_dtype(s, dtype), 2)));
  inner = with_diagonal(inner, middle);
  Tensor g = matmul(matmul(u, inner), vh);
  if (k < u.size(-2)) {
    const Tensor w = div(gu, row);
    g = add(g, matmul(sub(w, matmul(u, matmul(adjoint(u), w))), vh));
  }
  if (k < vh.size(-1)) {
    const Tensor w = div(adjoint(gv), transpose(row, -2, -1));
    g = add(g, matmul(u, sub(w, matmul(matmul(w, v), vh))));
  }
  return g;
}

/// Of [[A^H, A'], [0, A^H]] the exponential's upper right block is the gradient (R. Mathias, "A chain rule
/// for matrix functions and applications", 1996).
Tensor matrix_exp_gradient(GradCtx& c, const Tensor& g) {
  const Tensor a = adjoint(c.in(0));
  const SymInt n = a.size(-1);
  const Tensor above = cat(std::vector<Tensor>{a, g}, -1);
  const Tensor below = cat(std::vector<Tensor>{zeros_like(a), a}, -1);
  return narrow(narrow(matrix_exp(cat(std::vector<Tensor>{above, below}, -2)), -2, 0, n), -1, n, n);
}

InferResult matrix_exp_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_square(a, "linalg.matrix_exp");
  FL_CHECK(is_floating(a.dtype) || is_complex(a.dtype), RuntimeError,
           "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {}", name(a.dtype));
  return {make_spec(a.sizes, a.dtype, a.device)};
}

std::vector<Sample> matrices(SampleMaker& m, std::vector<Value> more) {
  std::vector<Sample> out{{{m.make({3, 3}, -1, 1)}, "", ""},
                          {{m.make({2, 3, 3}, -1, 1)}, "batch", ""},
                          {{m.make_transposed({4, 3, 3}, -1, 1)}, "transposed", ""},
                          {{m.make({0, 0})}, "size 0", ""},
                          {{m.make({3})}, "vector", "RuntimeError: at least 2 dimensions"}};
  for (Sample& s : out) s.args.insert(s.args.end(), more.begin(), more.end());
  return out;
}

}  // namespace

void define_spectrum(OpTable& t) {
  const DTypeSet dtypes = samples::kLapackDTypes;
  t.define(
      _linalg_eigh,
      {.doc =
           "Eigenvalues in ascending order, and eigenvectors as columns, of a symmetric or Hermitian matrix, "
           "of which one triangle is read.",
       .tags = kTags,
       .infer = eigh_rule,
       .library = LibraryCall::HostRoutine,
       .saves = saves::out({0, 1}),
       .grad = eigh_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return matrices(m, {"L", true});
           },
           {.dtypes = dtypes, .tolerance = 1e-4, .gradient = false})});
  t.define(_linalg_eig,
           {.doc = "Eigenvalues and eigenvectors of length 1, as columns, of a square matrix: complex.",
            .tags = kTags,
            .infer = eig_rule,
            .library = LibraryCall::HostRoutine,
            .saves = saves::out({0, 1}),
            .grad = eig_gradient,
            .samples = samples::custom([](SampleMaker& m, const Samples&) { return matrices(m, {true}); },
                                       {.dtypes = dtypes, .tolerance = 1e-4, .gradient = false})});
  t.define(
      _linalg_svd,
      {.doc =
           "A = U diag(S) Vh, S in descending order; U and Vh square with full_matrices, else with as many "
           "columns and rows as S has elements.",
       .tags = kTags,
       .infer = svd_rule,
       .library = LibraryCall::HostRoutine,
       .saves = saves::out({0, 1, 2}),
       .grad = svd_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             std::vector<Sample> out = matrices(m, {});
             out.push_back({{m.make({4, 3})}, "tall", ""});
             out.push_back({{m.make({2, 3, 4})}, "wide", ""});
             return out;
           },
           {.dtypes = dtypes, .tolerance = 1e-4})});
  t.define(matrix_exp,
           {.doc = "The exponential of square matrices.",
            .tags = Tag::NoInPlace | Tag::ComputeIntensive,
            .infer = matrix_exp_rule,
            .library = LibraryCall::HostRoutine,
            .saves = saves::in({0}),
            .grad = matrix_exp_gradient,
            .samples = samples::custom([](SampleMaker& m, const Samples&) { return matrices(m, {}); },
                                       {.dtypes = dtypes, .tolerance = 1e-4})});
}

}  // namespace fl
