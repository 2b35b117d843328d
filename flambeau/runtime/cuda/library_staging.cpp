#include "flambeau/runtime/cuda/library_staging.h"

#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/strided_copy.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime::cuda {
namespace {

constexpr int64_t kAlignment = 256;

}  // namespace

std::optional<library::ScalarKind> library_kind(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return library::ScalarKind::F32;
    case DType::BFloat16:
      return library::ScalarKind::BF16;
    case DType::Float16:
      return library::ScalarKind::F16;
    case DType::Float64:
      return library::ScalarKind::F64;
    default:
      return std::nullopt;
  }
}

void* StreamWorkspace::bytes(int64_t count) { return workspace(device_, static_cast<size_t>(count)); }

StagingMemory::StagingMemory(int device, int64_t bytes) : device_(device), bytes_(bytes) {
  if (bytes != 0) data_ = device_allocator(device).allocate(static_cast<size_t>(bytes));
}

StagingMemory::~StagingMemory() {
  // Given out again only to work that comes later in the stream.
  if (data_) device_allocator(device_).release(data_, static_cast<size_t>(bytes_));
}

DeviceOperand::DeviceOperand(int device, OperandLayout layout)
    : device_{DeviceType::CUDA, static_cast<int8_t>(device)}, given_(layout), layout_(std::move(layout)) {}

int64_t DeviceOperand::bytes() const {
  if (element_count(layout_.sizes) == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < layout_.sizes.size(); ++d) last += (layout_.sizes[d] - 1) * layout_.strides[d];
  return (last + 1) * size_of(layout_.dtype);
}

void DeviceOperand::stage(std::vector<int64_t> strides, int64_t& total) {
  layout_.strides = std::move(strides);
  offset_ = total;
  total += (bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

void DeviceOperand::stage_larger(std::vector<int64_t> sizes, std::vector<int64_t> strides, bool zeros,
                                 int64_t& total) {
  layout_.sizes = std::move(sizes);
  zeros_ = zeros && layout_.sizes != given_.sizes;
  stage(std::move(strides), total);
}

OperandLayout DeviceOperand::within() const {
  OperandLayout out = given_;
  out.strides = layout_.strides;
  return out;
}

void DeviceOperand::clear_added(char* place) const {
  const Stream stream = current_stream(device_.index);
  const auto size = static_cast<size_t>(size_of(layout_.dtype));
  for (size_t d = 0; d < layout_.sizes.size(); ++d) {
    // What a dimension gained is one piece for each index of the dimensions around it.
    const auto stride = static_cast<size_t>(layout_.strides[d]) * size;
    const auto kept = static_cast<size_t>(given_.sizes[d]) * stride,
               all = static_cast<size_t>(layout_.sizes[d]) * stride;
    if (kept == all) continue;
    const size_t pieces = static_cast<size_t>(bytes()) / all;
    FL_CUDA(cuMemsetD2D8Async, reinterpret_cast<CUdeviceptr>(place + kept), all, 0, all - kept, pieces,
            stream.handle);
  }
}

void* DeviceOperand::target(void* result, const StagingMemory& memory) const {
  return offset_ < 0 ? result : memory.data() + offset_;
}

void* DeviceOperand::read(void* operand, const StagingMemory& memory) const {
  void* const place = target(operand, memory);
  if (place == operand) return place;
  if (zeros_) clear_added(static_cast<char*>(place));
  copy_strided(device_, within(), place, given_, operand);
  return place;
}

void DeviceOperand::store(void* result, const StagingMemory& memory) const {
  if (offset_ >= 0) copy_strided(device_, given_, result, within(), memory.data() + offset_);
}

}  // namespace fl::runtime::cuda
