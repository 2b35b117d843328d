#include "flambeau/ops/prims/factorization.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/matrices.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive;

TensorSpec info_spec(const TensorSpec& a) { return make_spec(batch_sizes(a.sizes), DType::Int32, a.device); }
TensorSpec like_matrices(const TensorSpec& a) {
  return matrices_spec(batch_sizes(a.sizes), a.sizes[a.dim() - 2], a.sizes[a.dim() - 1], a.dtype, a.device);
}
SymInt shorter_side(const TensorSpec& a) { return min(a.sizes[a.dim() - 2], a.sizes[a.dim() - 1]); }

InferResult cholesky_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_square(a, "linalg.cholesky");
  check_lapack_dtype(a, "linalg.cholesky");
  return {like_matrices(a), info_spec(a)};
}

/// Half of what the lower triangle and its mirror image give (I. Murray, "Differentiation of the Cholesky
/// decomposition", 2016): A' = 1/2 L^-H (P + P^H) L^-1, P = tril(L^H L') with half its diagonal.
Tensor cholesky_gradient(GradCtx& c, const Tensor& g) {
  const bool upper = c.arg(1).to_bool();
  const Tensor l = upper ? adjoint(c.out(0)) : c.out(0), slope = upper ? adjoint(g) : g;
  const Tensor p = tril(matmul(adjoint(l), slope));
  const Tensor strict = tril(p, -1), middle = real(diagonal_of(p));
  const Tensor symmetric = add(add(strict, adjoint(strict)), as_diagonal(to_dtype(middle, p.dtype())));
  const Tensor left = _solve_triangular(adjoint(l), symmetric, true);
  return mul(_solve_triangular(l, left, false, false), 0.5);
}

InferResult lu_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_matrix(a, "linalg.lu_factor");
  check_lapack_dtype(a, "linalg.lu_factor");
  return {like_matrices(a), vectors_spec(a, shorter_side(a), DType::Int32), info_spec(a)};
}

/// By L and U, of A's rows in L's order, for any shape: the square part is that of S. Walter et al.,
/// "Algorithmic differentiation of linear algebra functions with application in optimum experimental
/// design", 2010; the rest follows from A2 = L U2 (or L2 U).
Tensor lu_gradient(GradCtx& c, const Tensor& g) {
  const Tensor lu = c.out(0);
  const SymInt m = lu.size(-2), n = lu.size(-1), k = min(m, n);
  const Tensor square = narrow(narrow(lu, -2, 0, k), -1, 0, k);
  const Tensor l = add(tril(square, -1), square_eye(k, lu.dtype(), lu.device())), u = triu(square);
  const Tensor slope = narrow(narrow(g, -2, 0, k), -1, 0, k);
  Tensor lower = matmul(adjoint(l), tril(slope, -1)), upper = matmul(triu(slope), adjoint(u));
  Tensor rest;
  if (m < n) {
    rest = narrow(g, -1, k, n - k);
    lower = sub(lower, matmul(rest, adjoint(narrow(lu, -1, k, n - k))));
    rest = _solve_triangular(adjoint(l), rest, true, true, true);
  } else if (n < m) {
    rest = narrow(g, -2, k, m - k);
    upper = sub(upper, matmul(adjoint(narrow(lu, -2, k, m - k)), rest));
    rest = _solve_triangular(adjoint(u), rest, false, false);
  }
  Tensor a = add(tril(lower, -1), triu(upper));
  a = _solve_triangular(adjoint(l), a, true, true, true);
  a = _solve_triangular(adjoint(u), a, false, false);
  if (rest.defined()) a = cat(std::vector<Tensor>{a, rest}, m < n ? -1 : -2);
  const Tensor rows = unsqueeze(_lu_permutation(c.out(1), m, true), -1);
  return gather(a, -2, expand(rows, a.sizes()));
}

InferResult permutation_rule(const InferCtx& c, int) {
  const TensorSpec& pivots = c.spec(0);
  FL_CHECK(pivots.dtype == DType::Int32 && pivots.dim() > 0, RuntimeError,
           "expected pivots of dtype int32 with at least one dimension, got {} with {}", name(pivots.dtype),
           pivots.dim());
  return {make_spec(with_sizes(leading_sizes(pivots.sizes), {c.sym_int(1)}), DType::Int64, pivots.device)};
}

void define_factors(OpTable& t) {
  t.define(
      _linalg_cholesky,
      {.doc = "The triangular factor of a positive definite matrix, of which one triangle is read; info is "
              "the order of the first leading minor that is not positive, or 0.",
       .tags = kTags,
       .infer = cholesky_rule,
       .library = LibraryCall::HostRoutine,
       .saves = saves::out({0}),
       .grad = cholesky_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{{{samples::definite_matrices(m, {3, 3}), false, ""}, "", ""},
                                        {{samples::definite_matrices(m, {2, 3, 3}), true, ""}, "upper", ""},
                                        {{m.make({2, 0, 0}), false, ""}, "size 0", ""},
                                        {{neg(samples::definite_matrices(m, {2, 2})), false, "here"},
                                         "not definite",
                                         "RuntimeError: here: The factorization could not be completed"}};
           },
           {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4, .gradient = false})});
  t.define(
      _linalg_lu,
      {.doc = "P A = L U by partial pivoting: L (its diagonal of ones left out) and U in one matrix, the row "
              "that each row was exchanged with, counted from 1, and the first zero of U's diagonal.",
       .tags = kTags,
       .infer = lu_rule,
       .library = LibraryCall::HostRoutine,
       .saves = saves::out({0, 1}),
       .grad = lu_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{
                 {{samples::regular_matrices(m, {3, 3}), ""}, "", ""},
                 {{m.make({2, 3, 4}, -2, 2), ""}, "wide", ""},
                 {{m.make_transposed({2, 4, 3}, -2, 2), ""}, "tall", ""},
                 {{m.make({0, 3}), ""}, "size 0", ""},
                 {{zeros({2, 2}, m.dtype()), "here"}, "singular", "RuntimeError: here"}};
           },
           {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
  t.define(
      _lu_permutation,
      {.doc = "Exchanges of rows, counted from 1, as one permutation of so many rows.",
       .tags = kTags | Tag::NonDifferentiable,
       .infer = permutation_rule,
       .library = LibraryCall::HostRoutine,
       .samples = samples::custom([](SampleMaker&, const Samples&) {
         const Tensor pivots = to_dtype(tensor_from<int64_t>({2, 3, 3, 1, 2, 4}, Sizes{2, 3}), DType::Int32);
         return std::vector<Sample>{{{pivots, 4}, "", ""}, {{pivots, 4, true}, "inverse", ""}};
       })});
}

InferResult qr_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_matrix(a, "torch.geqrf", "input");
  check_lapack_dtype(a, "torch.geqrf");
  return {like_matrices(a), vectors_spec(a, shorter_side(a), a.dtype)};
}

void check_reflectors(const TensorSpec& a, const TensorSpec& tau, std::string_view caller) {
  check_matrix(a, caller, "input");
  check_lapack_dtype(a, caller);
  FL_CHECK(tau.dtype == a.dtype, RuntimeError, "{}: tau dtype {} does not match input dtype {}", caller,
           name(tau.dtype), name(a.dtype));
  bool fits = tau.dim() == a.dim() - 1;
  for (int d = 0; fits && d + 2 < a.dim(); ++d) fits = tau.sizes[d] == a.sizes[d];
  FL_CHECK(fits, RuntimeError,
           "{}: Expected tau to have one dimension less than input and its batch, got tau {} and input {}",
           caller, to_string(tau.sizes), to_string(a.sizes));
}

InferResult reflectors_product_rule(const InferCtx& c, int) {
  const TensorSpec &a = c.spec(0), &tau = c.spec(1);
  check_reflectors(a, tau, "torch.linalg.householder_product");
  const SymInt m = a.sizes[a.dim() - 2], n = a.sizes[a.dim() - 1];
  FL_CHECK(
      m >= n, RuntimeError,
      "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], "
      "got {} and {}",
      m, n);
  FL_CHECK(
      n >= tau.sizes.back(), RuntimeError,
      "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1], got "
      "{} and {}",
      n, tau.sizes.back());
  return {like_matrices(a)};
}

/// Vector number k of the reflectors 1 - tau v v^H: column k of a below the diagonal, with 1 on it.
Tensor reflector(const Tensor& a, int64_t k) {
  const Tensor unit = narrow(square_eye(a.size(-2), a.dtype(), a.device()), 1, k, 1);
  return add(tril(narrow(a, -1, k, 1), -1 - k), unit);
}
Tensor reflector_factor(const Tensor& tau, int64_t k, bool turned) {
  const Tensor factor = unsqueeze(narrow(tau, -1, k, 1), -1);
  return turned ? conj_if_complex(factor) : factor;
}
int64_t reflector_count(const Tensor& tau) { return tau.size(-1).guard_int(); }

struct ReflectorGradients {
  Tensor a, tau, x;
};

/// Of Q x, or (turned) of Q^H x, for Q = H_0 H_1 ...: back through one reflector after the other.
/// y = x - tau v w with w = v^H x has tau' = -v^H y' w^H, v' = -tau^* y' w^H - tau x y'^H v and
/// x' = y' - tau^* v v^H y'.
ReflectorGradients reflectors_gradient(const Tensor& a, const Tensor& tau, const Tensor& x, bool turned,
                                       const Tensor& slope) {
  const int64_t count = reflector_count(tau);
  const auto number = [&](int64_t step) { return turned ? step : count - 1 - step; };
  std::vector<Tensor> inputs{x};
  for (int64_t i = 0; i + 1 < count; ++i) {
    const Tensor v = reflector(a, number(i)), factor = reflector_factor(tau, number(i), turned);
    inputs.push_back(sub(inputs.back(), matmul(mul(v, factor), matmul(adjoint(v), inputs.back()))));
  }
  std::vector<Tensor> columns(count), factors(count);
  Tensor g = slope;
  for (int64_t i = count; i-- > 0;) {
    const int64_t k = number(i);
    const Tensor v = reflector(a, k), vh = adjoint(v), factor = reflector_factor(tau, k, turned);
    const Tensor w = matmul(vh, inputs[i]), along = matmul(vh, g), back = conj_if_complex(factor);
    const Tensor of_factor = neg(matmul(along, adjoint(w)));
    factors[k] = turned ? conj_if_complex(of_factor) : of_factor;
    const Tensor of_vector =
        add(mul(back, matmul(g, adjoint(w))), mul(factor, matmul(inputs[i], adjoint(along))));
    columns[k] = tril(neg(of_vector), -1 - k);
    g = sub(g, matmul(mul(v, back), along));
  }
  if (count == 0) return {zeros_like(a), zeros_like(tau), g};
  if (a.size(-1) > SymInt(count))
    columns.push_back(zeros_like(narrow(a, -1, count, a.size(-1) - SymInt(count))));
  return {cat(columns, -1), squeeze_dim(cat(factors, -2), -1), g};
}

Tensors reflectors_product_gradient(GradCtx& c, const Tensor& g) {
  if (g.numel() == SymInt(0) || c.in(1).numel() == SymInt(0)) return {{}, {}};
  const Tensor a = c.in(0), start = narrow(square_eye(a.size(-2), a.dtype(), a.device()), 1, 0, a.size(-1));
  const ReflectorGradients r = reflectors_gradient(a, c.in(1), expand(start, a.sizes()), false, g);
  return {r.a, r.tau};
}

/// x Q is (Q^H x^H)^H.
Tensors ormqr_gradient(GradCtx& c, const Tensor& g) {
  const bool left = c.arg(3).to_bool(), turned = c.arg(4).to_bool();
  const Tensor x = c.in(2);
  if (left) {
    const ReflectorGradients r = reflectors_gradient(c.in(0), c.in(1), x, turned, g);
    return {r.a, r.tau, r.x};
  }
  const ReflectorGradients r = reflectors_gradient(c.in(0), c.in(1), adjoint(x), !turned, adjoint(g));
  return {r.a, r.tau, adjoint(r.x)};
}

InferResult ormqr_rule(const InferCtx& c, int) {
  const TensorSpec &a = c.spec(0), &tau = c.spec(1), &other = c.spec(2);
  check_reflectors(a, tau, "torch.ormqr");
  check_matrix(other, "torch.ormqr", "other");
  FL_CHECK(
      other.dtype == a.dtype, RuntimeError,
      "torch.ormqr: Expected input and other to have the same dtype, but input has dtype {} and other has {}",
      name(a.dtype), name(other.dtype));
  const bool left = c.flag(3);
  bool fits = other.dim() == a.dim() && other.sizes[other.dim() - (left ? 2 : 1)] == a.sizes[a.dim() - 2];
  for (int d = 0; fits && d + 2 < a.dim(); ++d) fits = other.sizes[d] == a.sizes[d];
  FL_CHECK(fits, RuntimeError, "torch.ormqr: other.shape[{}] must be equal to input.shape[-2], got {} and {}",
           left ? -2 : -1, to_string(other.sizes), to_string(a.sizes));
  FL_CHECK(a.sizes.back() >= tau.sizes.back(), RuntimeError,
           "torch.ormqr: tau.shape[-1] must be at most input.shape[-1], got {} and {}", tau.sizes.back(),
           a.sizes.back());
  return {like_matrices(other)};
}

void define_reflectors(OpTable& t) {
  const Samples made = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{
            {{m.make({4, 3}, -1, 1), m.make({3}, -1, 1)}, "", ""},
            {{m.make({2, 3, 3}, -1, 1), m.make({2, 2}, -1, 1)}, "batch", ""},
            {{m.make({2, 3}), m.make({2})}, "wide", "RuntimeError: greater than or equal"}};
      },
      {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4});
  t.define(geqrf,
           {.doc = "A = Q R: R above, and the reflectors whose product is Q below the diagonal, with their "
                   "factors.",
            .tags = kTags | Tag::NonDifferentiable,
            .infer = qr_rule,
            .library = LibraryCall::HostRoutine,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{m.make({4, 3})}, "", ""},
                                             {{m.make_transposed({2, 3, 4})}, "wide", ""},
                                             {{m.make({3, 0})}, "size 0", ""}};
                },
                {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
  t.define(householder_product,
           {.doc = "The first columns of the product of reflectors 1 - tau v v^H, where v is a "
                   "column below the diagonal with 1 on it.",
            .tags = Tag::NoInPlace | Tag::ComputeIntensive,
            .infer = reflectors_product_rule,
            .library = LibraryCall::HostRoutine,
            .saves = saves::in({0, 1}),
            .grad = reflectors_product_gradient,
            .samples = made});
  t.define(
      ormqr,
      {.doc = "The product of `geqrf`'s Q (self and its factors input2), or of its adjoint, with input3.",
       .tags = Tag::NoInPlace | Tag::ComputeIntensive,
       .infer = ormqr_rule,
       .library = LibraryCall::HostRoutine,
       .saves = saves::in({0, 1, 2}),
       .grad = ormqr_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             const auto x = [&](IntList sizes) { return m.make(sizes, -1, 1); };
             return std::vector<Sample>{{{x({4, 3}), x({3}), x({4, 2})}, "", ""},
                                        {{x({4, 3}), x({3}), x({2, 4}), false, true}, "right", ""}};
           },
           {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
}

InferResult solve_triangular_rule(const InferCtx& c, int) {
  const TensorSpec &a = c.spec(0), &b = c.spec(1);
  check_square(a, "linalg.solve_triangular");
  check_lapack_dtype(a, "linalg.solve_triangular");
  check_matrix(b, "linalg.solve_triangular", "B");
  FL_CHECK(a.dtype == b.dtype, RuntimeError,
           "linalg.solve_triangular: Expected A and B to have the same dtype, but found {} and {}",
           name(a.dtype), name(b.dtype));
  return {like_matrices(b)};
}

/// B' = A^-H X', A' = -B' X^H in the triangle.
Tensors solve_triangular_gradient(GradCtx& c, const Tensor& g) {
  const bool upper = c.arg(2).to_bool(), left = c.arg(3).to_bool(), unit = c.arg(4).to_bool();
  const Tensor b = _solve_triangular(adjoint(c.in(0)), g, !upper, left, unit);
  Tensors out{Tensor(), b};
  if (!c.needs(0)) return out;
  const Tensor x = c.out(0);
  const Tensor a = neg(left ? matmul(b, adjoint(x)) : matmul(adjoint(x), b));
  out[0] = upper ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0);
  return out;
}

InferResult ldl_rule(const InferCtx& c, int) {
  const TensorSpec& a = c.spec(0);
  check_square(a, "torch.linalg.ldl_factor_ex");
  check_lapack_dtype(a, "torch.linalg.ldl_factor_ex");
  return {like_matrices(a), vectors_spec(a, a.sizes.back(), DType::Int32), info_spec(a)};
}

InferResult lstsq_rule(const InferCtx& c, int) {
  const TensorSpec &a = c.spec(0), &b = c.spec(1);
  const bool has_values = c.arg(3).str() == "gelsd" || c.arg(3).str() == "gelss";
  const IntList batch = batch_sizes(a.sizes);
  const SymInt columns = b.sizes.back();
  return {matrices_spec(batch, a.sizes.back(), columns, a.dtype, a.device),
          vectors_spec(a, columns, real_dtype(a.dtype)), make_spec(batch, DType::Int64, a.device),
          vectors_spec(a, has_values ? shorter_side(a) : SymInt(0), real_dtype(a.dtype))};
}

void define_systems(OpTable& t) {
  t.define(_solve_triangular,
           {.doc = "The solution of self X = B or of X self = B, of which one triangle is read.",
            .tags = kTags,
            .infer = solve_triangular_rule,
            .library = LibraryCall::HostRoutine,
            .saves = saves::in({0}) | saves::out({0}),
            .grad = solve_triangular_gradient,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  const auto a = [&](IntList sizes) { return samples::regular_matrices(m, sizes); };
                  return std::vector<Sample>{
                      {{a({3, 3}), m.make({3, 2}), true}, "upper", ""},
                      {{a({2, 3, 3}), m.make({2, 4, 3}), false, false}, "right", ""},
                      {{a({3, 3}), m.make_strided({3, 2}), false, true, true}, "unit", ""},
                      {{m.make({0, 0}), m.make({0, 2}), true}, "size 0", ""},
                      {{m.make({2, 3}), m.make({3, 2}), true}, "sizes", "RuntimeError: square"}};
                },
                {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
  t.define(
      ldl_factor_ex,
      {.doc =
           "A = L D L^T (or L D L^H) of a symmetric matrix, of which the lower triangle is read: L and the "
           "blocks of D in one matrix, and LAPACK's pivots.",
       .tags = Tag::NoInPlace | Tag::ComputeIntensive | Tag::NonDifferentiable,
       .infer = ldl_rule,
       .library = LibraryCall::HostRoutine,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{{{samples::definite_matrices(m, {3, 3})}, "", ""},
                                        {{samples::definite_matrices(m, {2, 3, 3}), true}, "hermitian", ""}};
           },
           {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
  t.define(_ldl_solve,
           {.doc = "The solution of A X = B from `linalg_ldl_factor_ex` of A; equal batches.",
            .tags = kTags | Tag::NonDifferentiable,
            .infer = [](const InferCtx& c, int) { return InferResult{like_matrices(c.spec(2))}; },
            .library = LibraryCall::HostRoutine,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  const auto [ld, pivots, info] = ldl_factor_ex(samples::definite_matrices(m, {3, 3}));
                  return std::vector<Sample>{{{ld, pivots, m.make({3, 2}), false}, "", ""}};
                },
                {.dtypes = dtypes::full_floats, .tolerance = 1e-4})});
  t.define(
      _linalg_lstsq,
      {.doc =
           "The X that makes |A X - B| least, the squares of that, A's rank and its singular values as far "
           "as the driver finds them; equal batches.",
       .tags = kTags | Tag::NonDifferentiable,
       .infer = lstsq_rule,
       .library = LibraryCall::HostRoutine,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             std::vector<Sample> out;
             for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"})
               out.push_back({{m.make({2, 5, 3}), m.make({2, 5, 2}), 1e-6, driver}, driver, ""});
             out.push_back({{m.make({3, 5}), m.make({3, 2}), 1e-6, "gelsd"}, "wide", ""});
             return out;
           },
           {.dtypes = samples::kLapackDTypes, .tolerance = 1e-4})});
}

}  // namespace

void define_factorization(OpTable& t) {
  define_factors(t);
  define_reflectors(t);
  define_systems(t);
}

}  // namespace fl
