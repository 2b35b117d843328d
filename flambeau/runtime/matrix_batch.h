// Runs a routine of one matrix over a batch: operands and results of any strides, in parallel where there are
// many matrices; of few large ones the library itself uses the threads.
#pragma once
#include <memory>
#include <vector>

#include "flambeau/base/parallel.h"
#include "flambeau/runtime/call_arguments.h"
#include "flambeau/tensor/element.h"

namespace fl::runtime {

/// One operand or result: the leading dimensions count the batch, the last `rank` (0, 1 or 2) are an item's.
struct BatchPart {
  DType dtype = DType::Float32;
  int position = 0;  ///< among the call's operands or results
  int rows = 1, columns = 1;
  int64_t row_stride = 0, column_stride = 0;
  std::vector<int64_t> batch_strides;

  BatchPart(const OperandLayout& layout, int rank, int position);
};

/// An item's matrix, or vector as one column, in its place.
template <class T>
class Matrix {
 public:
  Matrix(const BatchPart& part, void* data) : part_(part), data_(static_cast<T*>(data)) {}
  int rows() const { return part_.rows; }
  int columns() const { return part_.columns; }
  T& at(int i, int j = 0) const { return data_[i * part_.row_stride + j * part_.column_stride]; }
  /// A column-major copy without gaps; `rows` may be more than the matrix has.
  std::vector<std::remove_const_t<T>> dense(int rows = -1) const {
    const int64_t height = rows < 0 ? part_.rows : rows;
    std::vector<std::remove_const_t<T>> out(static_cast<size_t>(height) * part_.columns);
    for (int j = 0; j < part_.columns; ++j)
      for (int i = 0; i < part_.rows; ++i) out[i + j * height] = at(i, j);
    return out;
  }
  /// From a column-major matrix with `height` rows, of which the first are taken.
  void assign(const T* dense, int height = -1) const {
    const int64_t step = height < 0 ? part_.rows : height;
    for (int j = 0; j < part_.columns; ++j)
      for (int i = 0; i < part_.rows; ++i) at(i, j) = dense[i + j * step];
  }
  void assign(const std::vector<T>& dense, int height = -1) const { assign(dense.data(), height); }

 private:
  const BatchPart& part_;
  T* data_;
};

/// The batch of a call.
class MatrixBatch {
 public:
  struct Operand {
    std::string_view name;
    int rank;
  };
  /// All operands and results have the batch of operand 0. Ranks of the results in order.
  MatrixBatch(const CallArguments& call, std::initializer_list<Operand> operands,
              std::initializer_list<int> result_ranks);

  const BatchPart& in(int k) const { return in_[k]; }
  const BatchPart& out(int k) const { return out_[k]; }
  int64_t count() const { return count_; }
  /// Items that a thread takes at once, so that a piece is worth its start.
  int64_t grain() const;
  int64_t offset(const BatchPart& part, int64_t item) const;

 private:
  std::vector<BatchPart> in_, out_;
  std::vector<int64_t> sizes_;
  int64_t count_ = 1;
};

/// The matrices of one item.
class BatchItem {
 public:
  BatchItem(const MatrixBatch& batch, void* const* operands, void* const* results, int64_t item)
      : batch_(batch), operands_(operands), results_(results), item_(item) {}
  template <class T>
  Matrix<const T> in(int k) const {
    const BatchPart& p = batch_.in(k);
    return {p, address<T>(p, operands_)};
  }
  template <class T>
  Matrix<T> out(int k) const {
    const BatchPart& p = batch_.out(k);
    return {p, address<T>(p, results_)};
  }

 private:
  template <class T>
  T* address(const BatchPart& p, void* const* list) const {
    return static_cast<T*>(list[p.position]) + batch_.offset(p, item_);
  }

  const MatrixBatch& batch_;
  void* const* operands_;
  void* const* results_;
  int64_t item_;
};

/// f.operator()<T>(item) for every item, T the element type of operand 0; raises NotImplementedError where
/// that is none of LAPACK's.
template <class F>
PreparedCall run_batch(MatrixBatch prepared, F f, std::string_view op) {
  const DType dtype = prepared.in(0).dtype;
  FL_CHECK(dtype == DType::Float32 || dtype == DType::Float64 || is_complex(dtype), NotImplementedError,
           "{} of {}: expected float32, float64, complex64 or complex128", op, name(dtype));
  const auto batch = std::make_shared<const MatrixBatch>(std::move(prepared));
  return [batch, f, dtype](void* const* operands, void* const* results) {
    visit_dtype(dtype, [&]<class T>(T*) {
      if constexpr (std::is_floating_point_v<T> || is_complex_type<T>::value)
        parallel_for(batch->count(), batch->grain(), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            f.template operator()<T>(BatchItem(*batch, operands, results, i));
        });
    });
  };
}

/// After the call, raises LinAlgError with message(item's info) for the first item whose info (result
/// `index`, int32) is not 0; does not look where caller is empty.
PreparedCall checking_info(PreparedCall run, const CallArguments& call, int index, std::string_view caller,
                           std::function<std::string(int info)> message);

}  // namespace fl::runtime
