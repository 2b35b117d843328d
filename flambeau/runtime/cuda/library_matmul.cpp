// Matrix products through cuBLASLt, with copies where it does not take a layout.
#include "flambeau/library/cuda/matmul.h"

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
enum class Copies { None, OddLayouts, All };

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
  for (const Copies copies : {Copies::None, Copies::OddLayouts, Copies::All}) {
    auto product = std::make_shared<const Product>(device, a, b, c, *dtype, copies);
    if (!product->plan) continue;
    return [product, left, right](void* const* operands, void* const* results) {
      product->run(operands[left], operands[right], results[0]);
    };
  }
  return {};
}

}  // namespace fl::runtime::cuda
