// Matrix products through cuBLASLt, with copies where it does not take a layout.
#include "flambeau/library/cuda/matmul.h"

#include <algorithm>

#include "flambeau/library/cuda/precision.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/library_routines.h"
#include "flambeau/runtime/cuda/library_staging.h"
#include "flambeau/runtime/matrix_product.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime::cuda {
namespace {

using library::ScalarKind;
using library::cuda::DeviceMatmul;
using library::cuda::Tf32;

/// What is copied before the library is asked.
enum class Copies { UnevenRows, None, OddLayouts, All };

/// Matrix units read rows (or columns) that start at multiples of so many bytes: the others take several
/// times as long.
constexpr int64_t kRowBytes = 16;
/// Sizes from which a copy is a small part of the product.
constexpr int64_t kLargeSize = 128;

bool runs_along_rows(const OperandLayout& m) { return m.strides.back() == 1; }

/// The stride between rows, or between columns where these are contiguous.
int64_t leading_stride(const OperandLayout& m) {
  return runs_along_rows(m) ? m.strides[m.strides.size() - 2] : m.strides.back();
}

bool has_uneven_rows(const OperandLayout& m) {
  return is_plain_matrix(m) && leading_stride(m) * size_of(m.dtype) % kRowBytes != 0;
}

std::vector<int64_t> even_rows(const OperandLayout& m) {
  const size_t rank = m.sizes.size();
  const int64_t unit = kRowBytes / size_of(m.dtype);
  const auto rounded = [&](int64_t size) { return (size + unit - 1) / unit * unit; };
  std::vector<int64_t> strides(rank, 1);
  const size_t along = runs_along_rows(m) ? rank - 1 : rank - 2,
               across = runs_along_rows(m) ? rank - 2 : rank - 1;
  strides[across] = rounded(m.sizes[along]);
  if (rank == 3) strides[0] = strides[across] * m.sizes[across];
  return strides;
}

/// Whether copies of uneven operands gain: the product is large, and in a dtype of the matrix units.
bool gains_by_even_rows(const OperandLayout& a, const OperandLayout& b, const OperandLayout& c) {
  if (size_of(c.dtype) != 2) return false;
  const size_t rank = c.sizes.size();
  if (std::min({c.sizes[rank - 2], c.sizes[rank - 1], a.sizes[rank - 1]}) < kLargeSize) return false;
  return has_uneven_rows(a) || has_uneven_rows(b) || has_uneven_rows(c);
}

struct Product {
  int device;
  DeviceOperand a, b, c;
  int64_t staged_bytes = 0;
  library::MatmulDesc desc;
  std::shared_ptr<const DeviceMatmul> plan;
  bool tf32;  // what the plan was made for

  Product(int device, const OperandLayout& left, const OperandLayout& right, const OperandLayout& product,
          ScalarKind dtype, Copies copies)
      : device(device), a(device, left), b(device, right), c(device, product) {
    for (DeviceOperand* operand : {&a, &b, &c}) {
      const OperandLayout& given = operand->layout();
      if (copies == Copies::UnevenRows && has_uneven_rows(given))
        operand->stage(even_rows(given), staged_bytes);
      if (copies == Copies::All || (copies == Copies::OddLayouts && !is_plain_matrix(given)))
        operand->stage(row_major(given.sizes), staged_bytes);
    }
    desc = describe_product(a.layout(), b.layout(), c.layout());
    desc.dtype = dtype;
    tf32 = wants_tf32();
    plan = library::cuda::plan_matmul(desc, device, {.tf32 = tf32});
  }

  bool wants_tf32() const {
    return desc.dtype == ScalarKind::F32 && library::cuda::tf32_allowed(Tf32::Matmul);
  }

  void run(void* left, void* right, void* product) const {
    std::shared_ptr<const DeviceMatmul> other;
    if (wants_tf32() != tf32) [[unlikely]]
      other = library::cuda::plan_matmul(desc, device, {.tf32 = !tf32});
    const StagingMemory memory(device, staged_bytes);
    StreamWorkspace workspace(device);
    const void* const x = a.read(left, memory);
    const void* const y = b.read(right, memory);
    (other ? *other : *plan)
        .run(x, y, nullptr, c.target(product, memory), current_stream(device).handle, workspace);
    c.store(product, memory);
  }
};

}  // namespace

PreparedCall prepare_cuda_matmul(const CallArguments& call, int device) {
  const int left = call.required_operand("self"), right = call.required_operand("mat2");
  const OperandLayout &a = call.operands[left], &b = call.operands[right], &c = call.result(0);
  check_product(call, a, b, c);
  const std::optional<ScalarKind> dtype = library_kind(c.dtype);
  if (!dtype) return {};
  activate(device);
  for (const Copies copies : {Copies::UnevenRows, Copies::None, Copies::OddLayouts, Copies::All}) {
    if (copies == Copies::UnevenRows && !gains_by_even_rows(a, b, c)) continue;
    auto product = std::make_shared<const Product>(device, a, b, c, *dtype, copies);
    if (!product->plan) continue;
    return [product, left, right](void* const* operands, void* const* results) {
      product->run(operands[left], operands[right], results[0]);
    };
  }
  return {};
}

}  // namespace fl::runtime::cuda
