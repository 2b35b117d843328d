// Eigenvalues, singular values, and the exponential of matrices.
#include "flambeau/library/linalg/matrices.h"
#include "flambeau/runtime/matrix_batch.h"
#include "flambeau/runtime/routine.h"

namespace fl::runtime {
namespace {

template <class T>
void check_finite(const std::vector<T>& a, const char* op) {
  for (const T v : a)
    FL_CHECK(std::isfinite(std::abs(v)), LinAlgError,
             "{}: The algorithm failed to converge because the input matrix contained non-finite values.",
             op);
}

void check_converged(int info, const char* op) {
  FL_CHECK(info == 0, LinAlgError,
           "{}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
           "repeated values (LAPACK's info is {}).",
           op, info);
}

struct Eigh {
  bool upper, vectors;
  template <class T>
  void operator()(const BatchItem& item) const {
    using R = library::Real<T>;
    const Matrix<R> values = item.out<R>(0);
    std::vector<T> a = item.in<T>(0).dense();
    check_finite(a, "linalg.eigh");
    std::vector<R> w(values.rows());
    check_converged(library::eigh(upper, vectors, values.rows(), a.data(), w.data()), "linalg.eigh");
    values.assign(w);
    if (vectors) item.out<T>(1).assign(a);
  }
};
PreparedCall prepare_eigh(const CallArguments& call) {
  const std::string_view triangle = call.find("UPLO")->str();
  return run_batch(MatrixBatch(call, {{"self", 2}}, {1, 2}),
                   Eigh{triangle == "U" || triangle == "u", call.flag("compute_v", true)}, call.op.name());
}

struct Eig {
  bool vectors;
  template <class T>
  void operator()(const BatchItem& item) const {
    using C = library::Complex<T>;
    const Matrix<C> values = item.out<C>(0);
    const int n = values.rows();
    std::vector<T> a = item.in<T>(0).dense();
    for (const T v : a)
      FL_CHECK(std::isfinite(std::abs(v)), RuntimeError,
               "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    std::vector<C> w(n), v(vectors ? static_cast<size_t>(n) * n : 0);
    check_converged(library::eig(n, a.data(), w.data(), vectors ? v.data() : nullptr), "linalg.eig");
    values.assign(w);
    if (vectors) item.out<C>(1).assign(v);
  }
};
PreparedCall prepare_eig(const CallArguments& call) {
  return run_batch(MatrixBatch(call, {{"self", 2}}, {1, 2}), Eig{call.flag("compute_v", true)},
                   call.op.name());
}

struct Svd {
  bool full, vectors;
  library::SvdDriver driver;
  template <class T>
  void operator()(const BatchItem& item) const {
    using R = library::Real<T>;
    const Matrix<const T> in = item.in<T>(0);
    const Matrix<T> u = item.out<T>(0), vh = item.out<T>(2);
    const int m = in.rows(), n = in.columns(), least = std::min(m, n);
    std::vector<T> a = in.dense();
    check_finite(a, "linalg.svd");
    std::vector<R> s(least);
    const int columns = full ? m : least, rows = full ? n : least;
    std::vector<T> left(vectors ? static_cast<size_t>(m) * columns : 0);
    std::vector<T> right(vectors ? static_cast<size_t>(rows) * n : 0);
    using library::SvdVectors;
    const SvdVectors which = !vectors ? SvdVectors::None : full ? SvdVectors::All : SvdVectors::Reduced;
    if (least == 0 && vectors) {
      for (int k = 0; k < columns && k < m; ++k) left[k + static_cast<size_t>(k) * m] = T(1);
      for (int k = 0; k < rows && k < n; ++k) right[k + static_cast<size_t>(k) * rows] = T(1);
    }
    check_converged(library::svd(which, driver, m, n, a.data(), s.data(), left.data(), right.data()),
                    "linalg.svd");
    item.out<R>(1).assign(s);
    if (!vectors) return;
    u.assign(left);
    vh.assign(right);
  }
};
PreparedCall prepare_svd(const CallArguments& call) {
  const Value* driver = call.find("driver");
  const bool iterates = driver && !driver->is_none() && driver->str() == "gesvd";
  return run_batch(MatrixBatch(call, {{"A", 2}}, {2, 1, 2}),
                   Svd{call.flag("full_matrices", false), call.flag("compute_uv", true),
                       iterates ? library::SvdDriver::QrIteration : library::SvdDriver::DivideAndConquer},
                   call.op.name());
}

struct Exponential {
  template <class T>
  void operator()(const BatchItem& item) const {
    std::vector<T> a = item.in<T>(0).dense();
    library::matrix_exponential(item.out<T>(0).rows(), a.data());
    item.out<T>(0).assign(a);
  }
};
PreparedCall prepare_exponential(const CallArguments& call) {
  return run_batch(MatrixBatch(call, {{"self", 2}}, {2}), Exponential{}, call.op.name());
}

}  // namespace

std::span<const NamedRoutine> spectrum_routines() {
  static constexpr NamedRoutine kTable[] = {
      {"_linalg_eigh", prepare_eigh},
      {"_linalg_eig", prepare_eig},
      {"_linalg_svd", prepare_svd},
      {"linalg_matrix_exp", prepare_exponential},
  };
  return kTable;
}

}  // namespace fl::runtime
