// Factorizations and systems that they solve.
#include "flambeau/library/linalg/matrices.h"
#include "flambeau/runtime/matrix_batch.h"
#include "flambeau/runtime/routine.h"

namespace fl::runtime {
namespace {

std::string_view text(const CallArguments& call, std::string_view name) {
  const Value* value = call.find(name);
  return value && !value->is_none() ? value->str() : std::string_view();
}

/// Zeros of the triangle that a factor does not have.
template <class T>
void clear_triangle(const Matrix<T>& m, bool upper) {
  for (int j = 0; j < m.columns(); ++j)
    for (int i = 0; i < m.rows(); ++i)
      if (upper ? i < j : i > j) m.at(i, j) = T(0);
}

struct Cholesky {
  bool upper;
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> factor = item.out<T>(0);
    std::vector<T> a = item.in<T>(0).dense();
    item.out<int32_t>(1).at(0) = library::cholesky(upper, factor.rows(), a.data());
    factor.assign(a);
    clear_triangle(factor, !upper);
  }
};

PreparedCall prepare_cholesky(const CallArguments& call) {
  PreparedCall run = run_batch(MatrixBatch(call, {{"self", 2}}, {2, 0}), Cholesky{call.flag("upper", false)},
                               call.op.name());
  return checking_info(std::move(run), call, 1, text(call, "caller"), [](int info) {
    return fmt::format(
        "The factorization could not be completed because the input is not positive-definite (the leading "
        "minor of order {} is not positive-definite).",
        info);
  });
}

struct Lu {
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> factors = item.out<T>(0);
    const Matrix<int32_t> pivots = item.out<int32_t>(1);
    std::vector<T> a = item.in<T>(0).dense();
    std::vector<int> rows(pivots.rows());
    item.out<int32_t>(2).at(0) = library::lu(factors.rows(), factors.columns(), a.data(), rows.data());
    factors.assign(a);
    pivots.assign(rows);
  }
};

PreparedCall prepare_lu(const CallArguments& call) {
  PreparedCall run = run_batch(MatrixBatch(call, {{"self", 2}}, {2, 1, 0}), Lu{}, call.op.name());
  return checking_info(std::move(run), call, 2, text(call, "caller"), [](int info) {
    return fmt::format("The matrix is singular: element {} of the diagonal of its factor U is zero.", info);
  });
}

/// Row exchanges one after the other as one permutation. Not a routine of LAPACK's: of any batch.
PreparedCall prepare_permutation(const CallArguments& call) {
  const bool inverse = call.flag("inverse", false);
  auto batch = std::make_shared<const MatrixBatch>(
      call, std::initializer_list<MatrixBatch::Operand>{{"self", 1}}, std::initializer_list<int>{1});
  return [batch, inverse](void* const* operands, void* const* results) {
    for (int64_t i = 0; i < batch->count(); ++i) {
      const BatchItem item(*batch, operands, results, i);
      const Matrix<const int32_t> pivots = item.in<int32_t>(0);
      const Matrix<int64_t> out = item.out<int64_t>(0);
      std::vector<int64_t> rows(out.rows());
      for (int k = 0; k < out.rows(); ++k) rows[k] = k;
      for (int k = 0; k < pivots.rows(); ++k) {
        const int with = pivots.at(k) - 1;
        FL_CHECK(with >= 0 && with < out.rows(), RuntimeError,
                 "a pivot is {}, and the matrix has {} rows, counted from 1", with + 1, out.rows());
        std::swap(rows[k], rows[with]);
      }
      for (int k = 0; k < out.rows(); ++k) {
        if (inverse)
          out.at(static_cast<int>(rows[k])) = k;
        else
          out.at(k) = rows[k];
      }
    }
  };
}

struct Qr {
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> factors = item.out<T>(0), tau = item.out<T>(1);
    std::vector<T> a = item.in<T>(0).dense(), factor(tau.rows());
    library::qr(factors.rows(), factors.columns(), a.data(), factor.data());
    factors.assign(a);
    tau.assign(factor);
  }
};
PreparedCall prepare_qr(const CallArguments& call) {
  return run_batch(MatrixBatch(call, {{"self", 2}}, {2, 1}), Qr{}, call.op.name());
}

struct ReflectorsProduct {
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> out = item.out<T>(0);
    std::vector<T> a = item.in<T>(0).dense();
    const std::vector<T> tau = item.in<T>(1).dense();
    library::reflectors_product(out.rows(), out.columns(), static_cast<int>(tau.size()), a.data(),
                                tau.data());
    out.assign(a);
  }
};
PreparedCall prepare_reflectors_product(const CallArguments& call) {
  return run_batch(MatrixBatch(call, {{"input", 2}, {"tau", 1}}, {2}), ReflectorsProduct{}, call.op.name());
}

struct ApplyReflectors {
  bool left, adjoint;
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> out = item.out<T>(0);
    const std::vector<T> a = item.in<T>(0).dense(), tau = item.in<T>(1).dense();
    std::vector<T> c = item.in<T>(2).dense();
    library::apply_reflectors(left, adjoint, out.rows(), out.columns(), static_cast<int>(tau.size()),
                              a.data(), tau.data(), c.data());
    out.assign(c);
  }
};
PreparedCall prepare_apply_reflectors(const CallArguments& call) {
  return run_batch(MatrixBatch(call, {{"self", 2}, {"input2", 1}, {"input3", 2}}, {2}),
                   ApplyReflectors{call.flag("left", true), call.flag("transpose", false)}, call.op.name());
}

struct SolveTriangular {
  bool upper, left, unit_diagonal;
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> out = item.out<T>(0);
    const std::vector<T> a = item.in<T>(0).dense();
    std::vector<T> b = item.in<T>(1).dense();
    library::solve_triangular(left, upper, unit_diagonal, out.rows(), out.columns(), a.data(), b.data());
    out.assign(b);
  }
};
PreparedCall prepare_solve_triangular(const CallArguments& call) {
  return run_batch(
      MatrixBatch(call, {{"self", 2}, {"B", 2}}, {2}),
      SolveTriangular{call.flag("upper", true), call.flag("left", true), call.flag("unitriangular", false)},
      call.op.name());
}

struct Ldl {
  bool hermitian;
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> factors = item.out<T>(0);
    const Matrix<int32_t> pivots = item.out<int32_t>(1);
    std::vector<T> a = item.in<T>(0).dense();
    std::vector<int> rows(pivots.rows());
    item.out<int32_t>(2).at(0) = library::ldl(hermitian, factors.rows(), a.data(), rows.data());
    factors.assign(a);
    clear_triangle(factors, true);
    pivots.assign(rows);
  }
};
PreparedCall prepare_ldl(const CallArguments& call) {
  PreparedCall run = run_batch(MatrixBatch(call, {{"self", 2}}, {2, 1, 0}),
                               Ldl{call.flag("hermitian", false)}, call.op.name());
  if (!call.flag("check_errors", false)) return run;
  return checking_info(std::move(run), call, 2, "linalg.ldl_factor", [](int info) {
    return fmt::format("The matrix is singular: block {} of its factor D is zero.", info);
  });
}

struct LdlSolve {
  bool hermitian;
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<T> out = item.out<T>(0);
    const std::vector<T> factors = item.in<T>(0).dense();
    const std::vector<int> pivots = item.in<int32_t>(1).dense();
    std::vector<T> b = item.in<T>(2).dense();
    library::ldl_solve(hermitian, out.rows(), out.columns(), factors.data(), pivots.data(), b.data());
    out.assign(b);
  }
};
PreparedCall prepare_ldl_solve(const CallArguments& call) {
  return run_batch(MatrixBatch(call, {{"self", 2}, {"pivots", 1}, {"B", 2}}, {2}),
                   LdlSolve{call.flag("hermitian", false)}, call.op.name());
}

struct SolveLeastSquares {
  library::LeastSquares method;
  double rcond;
  template <class T>
  void operator()(const BatchItem& item) const {
    const Matrix<const T> a = item.in<T>(0), right = item.in<T>(1);
    const Matrix<T> solution = item.out<T>(0);
    const Matrix<library::Real<T>> values = item.out<library::Real<T>>(3);
    const int rows = std::max(a.rows(), a.columns());
    std::vector<T> factors = a.dense(), b = right.dense(rows);
    std::vector<library::Real<T>> found(std::min(a.rows(), a.columns()));
    int rank = 0;
    const int info = library::least_squares(method, a.rows(), a.columns(), right.columns(), factors.data(),
                                            b.data(), rcond, &rank, found.data());
    FL_CHECK(info == 0, LinAlgError,
             "torch.linalg.lstsq: the least squares solution could not be computed: LAPACK's info is {}",
             info);
    solution.assign(b, rows);
    residuals(a.rows(), a.columns(), b, rows, item.out<library::Real<T>>(1));
    item.out<int64_t>(2).at(0) = rank;
    if (values.rows() > 0) values.assign(found);
  }

  /// Squares of what is left of each right side, which the methods leave below the solution.
  template <class T, class R>
  static void residuals(int m, int n, const std::vector<T>& b, int rows, const Matrix<R>& out) {
    for (int j = 0; j < out.rows(); ++j) {
      R sum = 0;
      for (int i = n; i < m; ++i) sum += std::norm(b[i + static_cast<size_t>(j) * rows]);
      out.at(j) = sum;
    }
  }
};

PreparedCall prepare_least_squares(const CallArguments& call) {
  const std::string_view driver = text(call, "driver");
  using library::LeastSquares;
  const LeastSquares method = driver == "gels"    ? LeastSquares::FullRank
                              : driver == "gelsy" ? LeastSquares::PivotedQr
                              : driver == "gelss" ? LeastSquares::Svd
                                                  : LeastSquares::SvdDivideAndConquer;
  return run_batch(MatrixBatch(call, {{"self", 2}, {"B", 2}}, {2, 1, 0, 1}),
                   SolveLeastSquares{method, call.find("rcond")->to_double()}, call.op.name());
}

}  // namespace

std::span<const NamedRoutine> factorization_routines() {
  static constexpr NamedRoutine kTable[] = {
      {"_linalg_cholesky", prepare_cholesky},
      {"_linalg_lu", prepare_lu},
      {"_lu_permutation", prepare_permutation},
      {"geqrf", prepare_qr},
      {"linalg_householder_product", prepare_reflectors_product},
      {"ormqr", prepare_apply_reflectors},
      {"_solve_triangular", prepare_solve_triangular},
      {"linalg_ldl_factor_ex", prepare_ldl},
      {"_ldl_solve", prepare_ldl_solve},
      {"_linalg_lstsq", prepare_least_squares},
  };
  return kTable;
}

}  // namespace fl::runtime
