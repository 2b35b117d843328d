#include "flambeau/runtime/staging.h"

#include <cstdlib>
#include <memory>
#include <utility>

namespace fl::runtime {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
struct Memory {
  std::unique_ptr<void, Free> bytes;
  int64_t size = 0;
};

}  // namespace

char* staging_memory(int64_t count) {
  static thread_local Memory memory;
  if (count > memory.size) {
    memory.bytes.reset();
    memory.size = (count + 4095) / 4096 * 4096;
    memory.bytes.reset(std::aligned_alloc(64, memory.size));
    if (!memory.bytes) {
      const int64_t wanted = std::exchange(memory.size, 0);
      FL_RAISE(OutOfMemoryError, "no memory for copies of a library call's operands: {} bytes", wanted);
    }
  }
  return static_cast<char*>(memory.bytes.get());
}

int64_t StagingPlan::reserve(int64_t count) {
  const int64_t offset = total_;
  total_ += (count + 63) / 64 * 64;
  return offset;
}

void StagedOperand::stage(StagingPlan& plan, DType dtype, std::vector<int64_t> strides) {
  copies_in_.emplace(layout_.sizes, dtype, strides, layout_.dtype, layout_.strides);
  copies_out_.emplace(layout_.sizes, layout_.dtype, layout_.strides, dtype, strides);
  layout_.dtype = dtype;
  layout_.strides = std::move(strides);
  offset_ = plan.reserve(element_count(layout_.sizes) * size_of(dtype));
}

void* StagedOperand::read(void* operand, char* staging) const {
  if (!copies_in_) return operand;
  copies_in_->run(staging + offset_, operand);
  return staging + offset_;
}

void StagedOperand::store(void* result, char* staging) const {
  if (copies_out_) copies_out_->run(result, staging + offset_);
}

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= std::max<int64_t>(sizes[i], 1)) strides[i] = step;
  return strides;
}

int64_t element_count(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

}  // namespace fl::runtime
