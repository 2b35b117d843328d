// Scratch memory of a library call, and operands brought there because the library does not take their
// layout or dtype.
#pragma once
#include <optional>

#include "flambeau/runtime/library_calls.h"
#include "flambeau/runtime/strided_copy.h"

namespace fl::runtime {

/// At least `count` bytes of the calling thread's, aligned to 64, valid until its next call. Apart from
/// library::thread_workspace(), which a plan may take while staged operands are in use.
char* staging_memory(int64_t count);

/// Places in staging memory, decided when a call is prepared.
class StagingPlan {
 public:
  /// The offset of `count` bytes, aligned to 64.
  int64_t reserve(int64_t count);
  int64_t total() const { return total_; }

 private:
  int64_t total_ = 0;
};

/// One operand as the routine sees it: in place, or in staging memory.
class StagedOperand {
 public:
  explicit StagedOperand(OperandLayout layout) : layout_(std::move(layout)) {}
  /// Moves the operand to staging memory with these strides and dtype.
  void stage(StagingPlan& plan, DType dtype, std::vector<int64_t> strides);

  const OperandLayout& layout() const { return layout_; }
  /// An input's address for the routine; copies where it is staged.
  void* read(void* operand, char* staging) const;
  /// A result's address for the routine; store() afterwards copies it to where it belongs.
  void* target(void* result, char* staging) const { return copies_in_ ? staging + offset_ : result; }
  void store(void* result, char* staging) const;

 private:
  OperandLayout layout_;
  std::optional<StridedCopy> copies_in_, copies_out_;
  int64_t offset_ = 0;
};

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes);
int64_t element_count(const std::vector<int64_t>& sizes);

}  // namespace fl::runtime
