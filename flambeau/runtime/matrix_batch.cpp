#include "flambeau/runtime/matrix_batch.h"

#include <algorithm>
#include <limits>

namespace fl::runtime {
namespace {

int lapack_size(int64_t size) {
  FL_CHECK(size <= std::numeric_limits<int>::max(), NotImplementedError,
           "LAPACK counts in 32 bits, and a matrix has a dimension of {}", size);
  return static_cast<int>(size);
}

int64_t item_offset(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t item) {
  int64_t at = 0;
  for (size_t d = sizes.size(); d-- > 0; item /= sizes[d]) at += item % sizes[d] * strides[d];
  return at;
}

}  // namespace

BatchPart::BatchPart(const OperandLayout& layout, int rank, int at) : dtype(layout.dtype), position(at) {
  if (layout.sizes.size() < static_cast<size_t>(rank)) {  // a result that was not asked for
    rows = columns = 0;
    return;
  }
  const size_t batch = layout.sizes.size() - rank;
  batch_strides.assign(layout.strides.begin(), layout.strides.begin() + static_cast<int64_t>(batch));
  if (rank == 0) return;
  rows = lapack_size(layout.sizes[batch]);
  row_stride = layout.strides[batch];
  if (rank == 1) return;
  columns = lapack_size(layout.sizes[batch + 1]);
  column_stride = layout.strides[batch + 1];
}

MatrixBatch::MatrixBatch(const CallArguments& call, std::initializer_list<Operand> operands,
                         std::initializer_list<int> result_ranks) {
  for (const Operand& o : operands) {
    const int position = call.required_operand(o.name);
    in_.emplace_back(call.operands[position], o.rank, position);
  }
  int next = 0;
  for (const int rank : result_ranks) {
    out_.emplace_back(call.result(next), rank, next);
    ++next;
  }
  const OperandLayout& first = call.operands[in_[0].position];
  sizes_.assign(first.sizes.begin(), first.sizes.begin() + static_cast<int64_t>(in_[0].batch_strides.size()));
  for (auto* list : {&in_, &out_})
    for (BatchPart& p : *list) p.batch_strides.resize(sizes_.size(), 0);
  for (const int64_t size : sizes_) count_ *= size;
}

int64_t MatrixBatch::grain() const {
  constexpr int64_t kPieceWork = 1 << 15, kLibraryWork = 1 << 21;
  int64_t work = 1;
  for (const auto* list : {&in_, &out_})
    for (const BatchPart& p : *list)
      work = std::max(work, static_cast<int64_t>(p.rows) * p.columns * std::max(p.rows, p.columns));
  if (work >= kLibraryWork && count_ < num_threads()) return count_;
  return std::max<int64_t>(1, kPieceWork / work);
}

int64_t MatrixBatch::offset(const BatchPart& part, int64_t item) const {
  return item_offset(sizes_, part.batch_strides, item);
}

PreparedCall checking_info(PreparedCall run, const CallArguments& call, int index, std::string_view caller,
                           std::function<std::string(int info)> message) {
  if (caller.empty()) return run;
  return [run = std::move(run), layout = call.result(index), index, caller = std::string(caller),
          message = std::move(message)](void* const* operands, void* const* results) {
    run(operands, results);
    int64_t count = 1;
    for (const int64_t size : layout.sizes) count *= size;
    for (int64_t item = 0; item < count; ++item) {
      const int32_t info =
          static_cast<const int32_t*>(results[index])[item_offset(layout.sizes, layout.strides, item)];
      FL_CHECK(info == 0, LinAlgError, "{}: {}{}", caller,
               layout.sizes.empty() ? "" : fmt::format("(Batch element {}): ", item), message(info));
    }
  };
}

}  // namespace fl::runtime
