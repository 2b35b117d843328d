// Determinants, over LU factors.
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

using samples::kLapackDTypes;

/// 1, or -1 where the number of rows that were exchanged is odd.
Tensor permutation_sign(const Tensor& pivots, DType dtype) {
  const Tensor stays = arange(1, Scalar(pivots.size(-1) + SymInt(1)), 1, DType::Int32, pivots.device());
  const Tensor exchanged = sum(ne(pivots, stays), IntList{-1}, false, DType::Int64);
  return to_dtype(sub(1, mul(remainder(exchanged, 2), 2)), dtype);
}

std::tuple<Tensor, Tensor, Tensor> determinant(Tensor a) {
  check_square(a.spec(), "linalg.det");
  check_lapack_dtype(a.spec(), "linalg.det");
  const auto [lu, pivots, info] = _linalg_lu(a, "");
  return {mul(prod(diagonal_of(lu), -1), permutation_sign(pivots, lu.dtype())), lu, pivots};
}

/// det^* A^-H A'. Of a singular matrix that is the adjugate: the product with U's zeros moved away from 0,
/// which they cancel out of.
Tensor determinant_gradient(GradCtx& c, const Tensor& g) {
  const auto scaled = [&](const Tensor& det) {
    return unsqueeze(unsqueeze(mul(g, conj_if_complex(det)), -1), -1);
  };
  if (is_recording()) return mul(scaled(c.out(0)), adjoint(linalg_inv(c.in(0))));
  const Tensor lu = c.out(1), pivots = c.out(2);
  if (lu.numel() == SymInt(0)) return zeros_like(c.in(0));
  const Tensor d = diagonal_of(lu);
  const Tensor largest = amax(abs(lu), IntList{-2, -1}, true);
  const Tensor little =
      to_dtype(mul(squeeze_dim(clamp(largest, Scalar(1e-30)), -1), epsilon_of(lu.dtype())), lu.dtype());
  const Tensor moved = where(eq(d, 0), little, d);
  const Tensor det = mul(prod(moved, -1), permutation_sign(pivots, lu.dtype()));
  const Tensor one = square_eye(lu.size(-1), lu.dtype(), lu.device());
  return linalg_lu_solve(with_diagonal(lu, moved), pivots, mul(scaled(det), one), true, true);
}

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Four sign_and_log(Tensor a) {
  check_square(a.spec(), "linalg.slogdet");
  check_lapack_dtype(a.spec(), "linalg.slogdet");
  const auto [lu, pivots, info] = _linalg_lu(a, "");
  const Tensor d = diagonal_of(lu);
  return {mul(prod(sgn(d), -1), permutation_sign(pivots, lu.dtype())), sum(log(abs(d)), IntList{-1}), lu,
          pivots};
}

/// A^-H times the logarithm's gradient, and of a complex matrix minus i Im(sign'^* sign).
Tensor sign_and_log_gradient(GradCtx& c, const Tensor&) {
  const Tensor sign = c.out(0);
  Tensor w = to_dtype(c.grad(1), sign.dtype());
  if (is_complex(sign.dtype())) {
    const Tensor turn = imag(mul(conj_if_complex(c.grad(0)), sign));
    w = sub(w, complex(zeros_like(turn), turn));
  }
  const Tensor scale = unsqueeze(unsqueeze(w, -1), -1);
  if (is_recording()) return mul(scale, adjoint(linalg_inv(c.in(0))));
  const Tensor lu = c.out(2), one = square_eye(lu.size(-1), lu.dtype(), lu.device());
  return linalg_lu_solve(lu, c.out(3), mul(scale, one), true, true);
}

Tensor log_of_determinant(Tensor self) {
  const auto [sign, log_modulus, lu, pivots] = _linalg_slogdet(self);
  if (is_complex(self.dtype())) return complex(log_modulus, angle(sign));
  return where(lt(sign, 0), std::numeric_limits<double>::quiet_NaN(), log_modulus);
}

Samples matrices() {
  return samples::custom(samples::square_matrices, {.dtypes = kLapackDTypes, .tolerance = 1e-4});
}
Samples definite() {
  return samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{samples::definite_matrices(m, {2, 3, 3})}, "", ""}};
      },
      {.dtypes = dtypes::full_floats, .tolerance = 1e-4});
}

}  // namespace

void define_linalg_det(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive;
  Samples hidden = matrices();
  hidden.gradient = false;  // of the factors there is none here
  t.define(_linalg_det, {.doc = "The determinants of square matrices, and their LU factors.",
                         .tags = kTags,
                         .decompose = determinant,
                         .saves = saves::in({0}) | saves::out({0, 1, 2}),
                         .grad = determinant_gradient,
                         .samples = hidden});
  t.define(_linalg_slogdet, {.doc = "Signs and logarithms of the moduli of determinants, and LU factors.",
                             .tags = kTags,
                             .decompose = sign_and_log,
                             .saves = saves::in({0}) | saves::out({0, 2, 3}),
                             .grad = sign_and_log_gradient,
                             .samples = hidden});
  t.define(linalg_det, {.doc = "The determinants of square matrices.",
                        .tags = Tag::NoInPlace,
                        .decompose = [](Tensor a) { return std::get<0>(_linalg_det(a)); },
                        .samples = matrices()});
  t.define(det, {.doc = "`linalg_det`.",
                 .tags = Tag::NoInPlace | Tag::NoOut,
                 .decompose = [](Tensor a) { return std::get<0>(_linalg_det(a)); },
                 .samples = matrices()});
  const auto both = [](Tensor a) {
    const auto [sign, log_modulus, lu, pivots] = _linalg_slogdet(a);
    return std::tuple(sign, log_modulus);
  };
  t.define(linalg_slogdet,
           {.doc = "The signs (of complex matrices numbers of modulus 1) of determinants, and the "
                   "logarithms of their moduli: 0 and -inf where the matrix is singular.",
            .tags = Tag::NoInPlace,
            .decompose = both,
            .samples = matrices()});
  t.define(slogdet,
           {.doc = "`linalg_slogdet`.", .tags = Tag::NoInPlace, .decompose = both, .samples = matrices()});
  t.define(logdet, {.doc = "The logarithms of determinants: nan where one is negative.",
                    .tags = Tag::NoInPlace | Tag::NoOut,
                    .decompose = log_of_determinant,
                    .samples = definite()});
}

}  // namespace fl
