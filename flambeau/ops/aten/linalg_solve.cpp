// Systems of linear equations, inverses and least squares.
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
using samples::regular_matrices;

void check_same_dtype(const Tensor& a, const Tensor& b, std::string_view caller) {
  FL_CHECK(a.dtype() == b.dtype(), RuntimeError,
           "{}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
           caller, name(a.dtype()), name(b.dtype()));
}

/// Matrices with a common batch.
std::pair<Tensor, Tensor> with_common_batch(const Tensor& a, const Tensor& b) {
  const Sizes batch = broadcast_sizes(batch_sizes(a.sizes()), batch_sizes(b.sizes()));
  return {expand(a, with_sizes(batch, {a.size(-2), a.size(-1)})),
          expand(b, with_sizes(batch, {b.size(-2), b.size(-1)}))};
}

Tensor triangular_solution(Tensor a, Tensor b, bool upper, bool left, bool unit) {
  check_square(a.spec(), "linalg.solve_triangular");
  check_lapack_dtype(a.spec(), "linalg.solve_triangular");
  check_matrix(b.spec(), "linalg.solve_triangular", "B");
  check_same_dtype(a, b, "linalg.solve_triangular");
  FL_CHECK(a.size(-1) == b.size(left ? -2 : -1), RuntimeError,
           "linalg.solve_triangular: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})",
           left ? "AX = B" : "XA = B", a.size(-2), a.size(-1), b.size(-2), b.size(-1));
  const auto [x, y] = with_common_batch(a, b);
  return _solve_triangular(x, y, upper, left, unit);
}

/// The rows of x in the order that the pivots make, or back.
Tensor permuted_rows(const Tensor& x, const Tensor& pivots, bool back) {
  const Tensor rows = unsqueeze(_lu_permutation(pivots, x.size(-2), back), -1);
  return gather(x, -2, expand(rows, x.sizes()));
}

Tensor lu_solution(Tensor lu, Tensor pivots, Tensor b, bool left, bool adjoint_of) {
  check_square(lu.spec(), "torch.linalg.lu_solve", "LU");
  check_matrix(b.spec(), "torch.linalg.lu_solve", "B");
  FL_CHECK(pivots.dtype() == DType::Int32, RuntimeError,
           "torch.linalg.lu_solve: Expected pivots to be torch.int32, got {}", name(pivots.dtype()));
  check_same_dtype(lu, b, "linalg.lu_solve");
  FL_CHECK(lu.size(-1) == b.size(left ? -2 : -1), RuntimeError,
           "linalg.lu_solve: Incompatible shapes of LU and B for the equation {} ({}x{} and {}x{})",
           left ? "AX = B" : "XA = B", lu.size(-2), lu.size(-1), b.size(-2), b.size(-1));
  if (!left) return adjoint(lu_solution(lu, pivots, adjoint(b), true, !adjoint_of));
  const auto [factors, right] = with_common_batch(lu, b);
  const Tensor order = expand(pivots, with_sizes(batch_sizes(right.sizes()), {pivots.size(-1)}));
  if (!adjoint_of) {
    const Tensor x = _solve_triangular(factors, permuted_rows(right, order, false), false, true, true);
    return _solve_triangular(factors, x, true);
  }
  const Tensor turned = adjoint(factors);
  const Tensor x = _solve_triangular(turned, _solve_triangular(turned, right, false), true, true, true);
  return permuted_rows(x, order, true);
}

void define_triangular(OpTable& t) {
  t.define(solve_triangular,
           {.doc = "The solution of A X = B, or of X A = B, with a triangular A, of which the other triangle "
                   "(and with unitriangular the diagonal) is not read; batches broadcast.",
            .tags = Tag::NoInPlace,
            .decompose = triangular_solution,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{
                      {{regular_matrices(m, {3, 3}), m.make({3, 2}), true}, "", ""},
                      {{regular_matrices(m, {2, 1, 3, 3}), m.make({2, 3, 2}), false}, "broadcast", ""},
                      {{regular_matrices(m, {3, 3}), m.make({3, 2}), true, false},
                       "sizes",
                       "RuntimeError: XA = B"}};
                },
                {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(triangular_solve,
           {.doc = "The solution of A X = self with a triangular A, or its transpose, and a copy of A.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor b, Tensor a, bool upper, bool transposed, bool unit) {
                  check_square(a.spec(), "triangular_solve");
                  check_matrix(b.spec(), "triangular_solve", "b");
                  const auto [x, y] = with_common_batch(a, b);
                  const Tensor factor = transposed ? transpose(x, -2, -1) : x;
                  return std::tuple(_solve_triangular(factor, y, upper != transposed, true, unit), clone(x));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{
                      {{m.make({3, 2}), regular_matrices(m, {3, 3})}, "", ""},
                      {{m.make({2, 3, 2}), regular_matrices(m, {3, 3}), false, true}, "transposed", ""}};
                },
                {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(
      linalg_lu_solve,
      {.doc = "The solution of A X = B (left), X A = B, or with A^H (adjoint), from `linalg_lu_factor` of A; "
              "batches broadcast.",
       .tags = Tag::NoInPlace,
       .decompose = lu_solution,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             const auto [lu, pivots, info] = _linalg_lu(regular_matrices(m, {2, 3, 3}), "");
             return std::vector<Sample>{{{lu, pivots, m.make({2, 3, 2})}, "", ""},
                                        {{lu, pivots, m.make({3, 2}), true, true}, "adjoint", ""},
                                        {{lu, pivots, m.make({2, 2, 3}), false}, "right", ""}};
           },
           {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(lu_solve, {.doc = "The solution of A X = self from A's LU factors.",
                      .tags = Tag::NoInPlace,
                      .decompose = [](Tensor b, Tensor lu,
                                      Tensor pivots) { return lu_solution(lu, pivots, b, true, false); },
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples&) {
                            const auto [lu, pivots, info] = _linalg_lu(regular_matrices(m, {3, 3}), "");
                            return std::vector<Sample>{{{m.make({3, 2}), lu, pivots}, "", ""}};
                          },
                          {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
}

/// Whether b is a vector (or a batch of them) rather than matrices.
bool is_vector_for(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  if (b.dim() != a.dim() - 1) return false;
  for (int d = 0; d < b.dim(); ++d)
    if (b.sizes()[d] != a.sizes()[d]) return false;
  return true;
}

std::pair<Tensor, Tensor> general_solution(const Tensor& a, const Tensor& b, bool left,
                                           std::string_view caller) {
  check_square(a.spec(), "linalg.solve");
  check_lapack_dtype(a.spec(), "linalg.solve");
  check_same_dtype(a, b, "linalg.solve");
  const bool vector = is_vector_for(a, b);
  FL_CHECK(left || !vector, RuntimeError,
           "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.");
  const Tensor right = vector ? unsqueeze(b, -1) : b;
  FL_CHECK(a.size(-1) == right.size(left ? -2 : -1), RuntimeError,
           "linalg.solve: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})",
           left ? "AX = B" : "XA = B", a.size(-2), a.size(-1), right.size(-2), right.size(-1));
  if (!left) {
    const auto [x, lu, pivots, info] = _linalg_solve(transpose(a, -2, -1), transpose(right, -2, -1), caller);
    return {transpose(x, -2, -1), info};
  }
  const auto [x, lu, pivots, info] = _linalg_solve(a, right, caller);
  return {vector ? squeeze_dim(x, -1) : x, info};
}

/// B' = A^-H X', A' = -B' X^H.
Tensors solve_gradient(GradCtx& c, const Tensor& g) {
  const Tensor b = is_recording() ? std::get<0>(_linalg_solve(adjoint(c.in(0)), g, ""))
                                  : linalg_lu_solve(c.out(1), c.out(2), g, true, true);
  return {c.needs(0) ? neg(matmul(b, adjoint(c.out(0)))) : Tensor(), b};
}

void define_solve(OpTable& t) {
  t.define(_linalg_solve, {.doc = "The solution of A X = B, and A's LU factors; batches broadcast.",
                           .tags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive,
                           .decompose =
                               [](Tensor a, Tensor b, std::string_view caller) {
                                 const auto [lu, pivots, info] = _linalg_lu(a, caller);
                                 return std::tuple(lu_solution(lu, pivots, b, true, false), lu, pivots, info);
                               },
                           .saves = saves::in({0}) | saves::out({0, 1, 2}),
                           .grad = solve_gradient,
                           .samples = samples::custom(
                               [](SampleMaker& m, const Samples&) {
                                 return std::vector<Sample>{
                                     {{regular_matrices(m, {3, 3}), m.make({3, 2}), ""}, "", ""},
                                     {{regular_matrices(m, {3, 3}), m.make({2, 3, 1}), ""}, "broadcast", ""}};
                               },
                               {.dtypes = kLapackDTypes, .tolerance = 1e-4, .gradient = false})});
  const Samples systems = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{
            {{regular_matrices(m, {3, 3}), m.make({3, 2})}, "", ""},
            {{regular_matrices(m, {3, 3}), m.make({3})}, "vector", ""},
            {{regular_matrices(m, {2, 3, 3}), m.make({2, 3})}, "vectors", ""},
            {{regular_matrices(m, {2, 1, 3, 3}), m.make({2, 3, 2})}, "broadcast", ""},
            {{regular_matrices(m, {3, 3}), m.make({2, 3}), false}, "right", ""},
            {{m.make({0, 0}), m.make({0, 2})}, "size 0", ""},
            {{regular_matrices(m, {3, 3}), m.make({2, 3})}, "sizes", "RuntimeError: Incompatible shapes"}};
      },
      {.dtypes = kLapackDTypes, .tolerance = 1e-4});
  t.define(linalg_solve,
           {.doc = "The solution of A X = B, or (left=False) of X A = B; B holds vectors where its sizes are "
                   "A's without the last. Raises LinAlgError where A is singular.",
            .tags = Tag::NoInPlace,
            .decompose = [](Tensor a, Tensor b,
                            bool left) { return general_solution(a, b, left, "torch.linalg.solve").first; },
            .samples = systems});
  t.define(linalg_solve_ex,
           {.doc = "`linalg_solve`, and the number of the zero on U's diagonal, or 0, instead of an error.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor a, Tensor b, bool left, bool check) {
                  const auto [x, info] = general_solution(a, b, left, check ? "torch.linalg.solve_ex" : "");
                  return std::tuple(x, info);
                },
            .samples = systems});
}

std::tuple<Tensor, Tensor> inverted(Tensor a, std::string_view caller) {
  check_square(a.spec(), "linalg.inv");
  check_lapack_dtype(a.spec(), "linalg.inv");
  const auto [lu, pivots, info] = _linalg_lu(a, caller);
  const Tensor one = square_eye(a.size(-1), a.dtype(), a.device());
  return {lu_solution(lu, pivots, expand(one, a.sizes()), true, false), info};
}

void define_inverse(OpTable& t) {
  const Samples matrices =
      samples::custom(samples::square_matrices, {.dtypes = kLapackDTypes, .tolerance = 1e-4});
  t.define(_linalg_inv,
           {.doc = "The inverse of square matrices, and the number of a zero on U's diagonal, or 0.",
            .tags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive,
            .decompose = inverted,
            .saves = saves::out({0}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const Tensor x = adjoint(c.out(0));
                  return neg(matmul(x, matmul(g, x)));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{regular_matrices(m, {2, 3, 3}), ""}, "", ""}};
                },
                {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(linalg_inv, {.doc = "The inverse of square matrices. Raises LinAlgError where there is none.",
                        .tags = Tag::NoInPlace,
                        .decompose = [](Tensor a) { return std::get<0>(_linalg_inv(a, "linalg.inv")); },
                        .samples = matrices});
  t.define(inverse, {.doc = "`linalg_inv`.",
                     .tags = Tag::NoInPlace,
                     .decompose = [](Tensor a) { return std::get<0>(_linalg_inv(a, "linalg.inv")); },
                     .samples = matrices});
  t.define(linalg_inv_ex,
           {.doc = "`linalg_inv`, and the number of the zero on U's diagonal, or 0, instead of an error.",
            .tags = Tag::NoInPlace,
            .decompose = [](Tensor a, bool check) { return _linalg_inv(a, check ? "linalg.inv_ex" : ""); },
            .samples = matrices});
}

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Four least_squares(Tensor a, Tensor b, std::optional<double> rcond, std::optional<std::string_view> given) {
  check_matrix(a.spec(), "torch.linalg.lstsq", "input");
  check_lapack_dtype(a.spec(), "torch.linalg.lstsq");
  FL_CHECK(b.dim() >= 1, RuntimeError, "torch.linalg.lstsq: other must have at least 1 dimension.");
  FL_CHECK(a.dtype() == b.dtype(), RuntimeError,
           "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype {} "
           "and other's dtype {}",
           name(a.dtype()), name(b.dtype()));
  const std::string_view driver = given.value_or("gelsy");
  FL_CHECK(driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss", RuntimeError,
           "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {}",
           driver);
  const bool vector = is_vector_for(a, b);
  const Tensor right = vector ? unsqueeze(b, -1) : b;
  const SymInt m = a.size(-2), n = a.size(-1);
  FL_CHECK(right.size(-2) == m, RuntimeError,
           "torch.linalg.lstsq: input.size(-2) should match other.size({}), got {} and {}", vector ? -1 : -2,
           m, right.size(-2));
  const double limit = rcond ? *rcond : epsilon_of(a.dtype()) * static_cast<double>(max(m, n).guard_int());
  const auto [x, y] = with_common_batch(a, right);
  const auto [found, residuals, rank, values] = _linalg_lstsq(x, y, limit, driver);
  const Tensor solution = _lstsq_solution(x, y, found);
  const auto none = [&](const Tensor& like) { return zeros({SymInt(0)}, like.dtype(), like.device()); };
  const bool has_residuals =
      m > n && driver != "gelsy" && (driver == "gels" || all_all(eq(rank, Scalar(n))).item().to_bool());
  Tensor left_over = residuals;
  if (is_recording() && solution.requires_grad())
    left_over = sum(square(abs(sub(matmul(x, solution), y))), IntList{-2});
  if (!has_residuals) left_over = narrow(reshape(left_over, {SymInt(-1)}), 0, 0, 0);
  return {vector ? squeeze_dim(solution, -1) : solution, left_over, driver == "gels" ? none(rank) : rank,
          driver == "gelsd" || driver == "gelss" ? values : none(values)};
}

/// That of pinv(A) B.
Tensors least_squares_gradient(GradCtx& c, const Tensor& g) {
  const Tensor a = c.in(0), right = c.in(1), x = c.in(2);
  const Tensor p = linalg_pinv_floats(a), ph = adjoint(p);
  const Tensor gb = matmul(ph, g);
  // -P^H G P^H + (1 - A P) G^H P P^H + P^H P G^H (1 - P A), with G = g B^H.
  const Tensor gh = matmul(right, adjoint(g)), gph = matmul(gh, matmul(p, ph));
  Tensor ga = sub(gph, matmul(a, matmul(p, gph)));
  const Tensor third = matmul(matmul(ph, p), gh);
  ga = add(ga, sub(third, matmul(matmul(third, p), a)));
  return {sub(ga, matmul(gb, adjoint(is_recording() ? matmul(p, right) : x))), gb, Tensor()};
}

/// Sizes as ints, for products of parts of them.
SymInt product_of(const Sizes& sizes, size_t begin, size_t end) {
  SymInt out = 1;
  for (size_t d = begin; d < end; ++d) out *= sizes[d];
  return out;
}

Tensor inverse_of_map(Tensor self, int64_t ind) {
  FL_CHECK(ind > 0, RuntimeError, "Expected a strictly positive integer for 'ind'");
  const size_t cut = static_cast<size_t>(ind), rank = self.sizes().size();
  FL_CHECK(cut <= rank, RuntimeError, "linalg.tensorinv: 'ind' is {}, and the tensor has {} dimensions", ind,
           rank);
  const Sizes sizes = self.sizes();
  const SymInt rows = product_of(sizes, 0, cut), columns = product_of(sizes, cut, rank);
  FL_CHECK(rows == columns, RuntimeError,
           "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but "
           "got {} != {}",
           columns, rows);
  Sizes out(sizes.begin() + ind, sizes.end());
  out.insert(out.end(), sizes.begin(), sizes.begin() + ind);
  return reshape(linalg_inv(reshape(self, {rows, columns})), out);
}

Tensor solution_of_map(Tensor self, Tensor other, std::optional<IntList> dims) {
  Tensor a = self;
  if (dims) {
    std::vector<int64_t> order, last;
    for (const SymInt d : *dims) last.push_back(wrap_dim(d.expect_int(), self.dim()));
    for (int64_t d = 0; d < self.dim(); ++d)
      if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
    order.insert(order.end(), last.begin(), last.end());
    Sizes list;
    for (const int64_t d : order) list.push_back(d);
    a = permute(self, list);
  }
  const Sizes sizes = a.sizes();
  const size_t cut = other.sizes().size();
  FL_CHECK(cut <= sizes.size(), RuntimeError, "linalg.tensorsolve: other has {} dimensions, self only {}",
           cut, sizes.size());
  const SymInt rows = product_of(other.sizes(), 0, cut), columns = product_of(sizes, cut, sizes.size());
  FL_CHECK(rows == columns, RuntimeError,
           "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
           "prod(self.shape[:other.ndim]), but got {} != {}",
           columns, rows);
  const Tensor x = linalg_solve(reshape(a, {rows, columns}), reshape(other, {rows}));
  return reshape(x, IntList(sizes.data() + cut, sizes.size() - cut));
}

void define_least_squares(OpTable& t) {
  t.define(
      linalg_lstsq,
      {.doc = "The X that makes |A X - B| least; the squares of that where A has full rank and more rows "
              "than columns, A's rank, and its singular values, as far as the driver finds them. Drivers: "
              "\"gelsy\" (by pivoted QR), \"gels\" (QR, full rank only), \"gelsd\" and \"gelss\" (SVD). The "
              "gradient is that of pinv(A) B (G. Golub, V. Pereyra, \"The differentiation of pseudo-inverses "
              "and nonlinear least squares problems whose variables separate\", 1973).",
       .tags = Tag::NoInPlace,
       .decompose = least_squares,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{
                 {{m.make({5, 3}), m.make({5, 2})}, "", ""},
                 {{m.make({2, 3, 4}), m.make({2, 3, 2})}, "wide", ""},
                 {{m.make({5, 3}), m.make({5})}, "vector", ""},
                 {{m.make({5, 3}), m.make({4, 2})}, "sizes", "RuntimeError: should match"}};
           },
           {.dtypes = kLapackDTypes, .tolerance = 1e-3})});
  t.define(_lstsq_solution,
           {.doc = "The solution that is given, as a function of the system that it solves; equal batches.",
            .tags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive,
            .decompose = [](Tensor, Tensor, Tensor solution) { return clone(solution); },
            .saves = saves::in({0, 1, 2}),
            .grad = least_squares_gradient,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{m.make({5, 3}), m.make({5, 2}), m.make({3, 2})}, "", ""}};
                },
                {.dtypes = kLapackDTypes, .gradient = false})});
  t.define(tensorinv,
           {.doc = "The inverse of a tensor as a map from its dimensions from ind on to the first ind.",
            .tags = Tag::NoInPlace,
            .decompose = inverse_of_map,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  const Tensor x = reshape(regular_matrices(m, {6, 6}), {2, 3, 6});
                  return std::vector<Sample>{{{x}, "", ""}, {{x, 0}, "none", "RuntimeError: positive"}};
                },
                {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
  t.define(tensorsolve, {.doc = "The X of tensordot(self, X) = other, dims of self moved to its end first.",
                         .tags = Tag::NoInPlace,
                         .decompose = solution_of_map,
                         .samples = samples::custom(
                             [](SampleMaker& m, const Samples&) {
                               const Tensor x = reshape(regular_matrices(m, {6, 6}), {2, 3, 6});
                               return std::vector<Sample>{
                                   {{x, m.make({2, 3})}, "", ""},
                                   {{permute(x, {2, 0, 1}), m.make({2, 3}), Sizes{0}}, "moved", ""}};
                             },
                             {.dtypes = kLapackDTypes, .tolerance = 1e-4})});
}

}  // namespace

void define_linalg_solve(OpTable& t) {
  define_triangular(t);
  define_solve(t);
  define_inverse(t);
  define_least_squares(t);
}

}  // namespace fl
