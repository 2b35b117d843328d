// Matrix products: c = relu(a @ b + bias + beta * c), batched, in any layout that the library takes natively.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "flambeau/library/library.h"

namespace fl::library {

/// Strides of a batch of matrices, in elements.
struct MatrixStrides {
  std::array<int64_t, 2> batch{0, 0};  // 0 repeats one matrix
  int64_t row = 0;
  int64_t column = 0;
  bool operator==(const MatrixStrides&) const = default;
};

struct MatmulDesc {
  ScalarKind dtype = ScalarKind::F32;
  std::array<int64_t, 2> batch{1, 1};
  int64_t m = 0, n = 0, k = 0;  // a is m x k, b is k x n, c is m x n
  MatrixStrides a, b, c;
  /// Added before beta * c, with any strides: a vector along n has row stride 0, a residual has a matrix's.
  bool bias = false;
  MatrixStrides bias_strides;
  /// 0: c is not read. The sum is rounded once to dtype, unless the layout needs c as an intermediate.
  float beta = 0;
  /// nan stays nan, as in our own kernels (the library's own makes it 0).
  bool relu = false;

  bool operator==(const MatmulDesc&) const = default;
  uint64_t hash() const;
  std::string text() const;
  /// Dense row-major operands, one matrix.
  static MatmulDesc dense(ScalarKind dtype, int64_t m, int64_t n, int64_t k);
};

/// A resolved call. Reentrant; equal inputs give equal bits every time for one number of threads.
class MatmulPlan {
 public:
  virtual ~MatmulPlan() = default;
  /// Bytes of scratch for usable_threads() as it was when the plan was made.
  virtual int64_t scratch_bytes() const = 0;
  /// `scratch`: scratch_bytes() bytes aligned to 64. c overlaps no input (to add onto c use beta).
  /// Where usable_threads() has changed since, another plan runs in the thread's own workspace.
  virtual void run(const void* a, const void* b, const void* bias, void* c, void* scratch) const = 0;
  void run(const void* a, const void* b, const void* bias, void* c, Workspace& workspace) const {
    run(a, b, bias, c, scratch_bytes() ? workspace.bytes(scratch_bytes()) : nullptr);
  }
  /// The library's kernel, for logs and benchmarks.
  virtual std::string implementation() const = 0;
};

/// The plan for usable_threads(), cached; null where the library has no fast kernel for the description.
std::shared_ptr<const MatmulPlan> plan_matmul(const MatmulDesc& desc);

/// False: use a generated kernel, or copy operands to a layout that is taken.
bool matmul_supported(const MatmulDesc& desc);

/// One call through the cache; raises NotImplementedError where matmul_supported() is false.
void matmul(const MatmulDesc& desc, const void* a, const void* b, const void* bias_or_null, void* c);

}  // namespace fl::library
