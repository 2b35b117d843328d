// Matrix products through the library, with copies where it does not take a layout or a dtype.
#include "flambeau/runtime/direct_convolution.h"
#include "flambeau/runtime/matrix_product.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime {
namespace {

library::ScalarKind scalar_kind(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return library::ScalarKind::F32;
    case DType::BFloat16:
      return library::ScalarKind::BF16;
    case DType::Float16:
      return library::ScalarKind::F16;
    default:
      FL_RAISE(InternalError, "the library multiplies no matrices of {}", name(dtype));
  }
}

/// What is copied before the library is asked.
enum class Copies { None, OddLayouts, All, AllAsFloat32 };

struct Product {
  StagedOperand a, b, c;
  StagingPlan staging;
  std::shared_ptr<const library::MatmulPlan> plan;

  Product(const OperandLayout& left, const OperandLayout& right, const OperandLayout& product, Copies copies)
      : a(left), b(right), c(product) {
    for (StagedOperand* operand : {&a, &b, &c}) {
      const OperandLayout& given = operand->layout();
      const bool odd = copies == Copies::OddLayouts && !is_plain_matrix(given);
      if (copies == Copies::AllAsFloat32)
        operand->stage(staging, DType::Float32, row_major(given.sizes));
      else if (odd || copies == Copies::All)
        operand->stage(staging, given.dtype, row_major(given.sizes));
    }
    plan = library::plan_matmul(desc());
  }

  library::MatmulDesc desc() const {
    library::MatmulDesc d = describe_product(a.layout(), b.layout(), c.layout());
    d.dtype = scalar_kind(c.layout().dtype);
    return d;
  }

  void run(void* left, void* right, void* product) const {
    char* const memory = staging.total() ? staging_memory(staging.total()) : nullptr;
    const void* const x = a.read(left, memory);
    const void* const y = b.read(right, memory);
    plan->run(x, y, nullptr, c.target(product, memory), library::thread_workspace());
    c.store(product, memory);
  }
};

/// By definition, for dtypes that the library lacks and where there is no library: a convolution of images
/// of one point, with rows as the batch and k channels.
struct DirectProduct {
  int64_t batch, element_size;
  std::array<int64_t, 3> batch_strides;  // of a, b, c
  DirectConvolution matrix;

  DirectProduct(const OperandLayout& a, const OperandLayout& b, const OperandLayout& c)
      : batch(a.sizes.size() == 3 ? a.sizes[0] : 1),
        element_size(size_of(c.dtype)),
        batch_strides{matrix_strides(a).batch[1], matrix_strides(b).batch[1], matrix_strides(c).batch[1]},
        matrix(as_convolution(a, b, c), c.dtype, 0) {}

  static library::ConvolutionDesc as_convolution(const OperandLayout& a, const OperandLayout& b,
                                                 const OperandLayout& c) {
    const library::MatrixStrides x = matrix_strides(a), y = matrix_strides(b), z = matrix_strides(c);
    library::ConvolutionDesc d;
    d.spatial = 1;
    d.batch = a.sizes[a.sizes.size() - 2];
    d.in_channels = a.sizes.back();
    d.out_channels = b.sizes.back();
    d.input_strides = {x.row, x.column};
    d.weight_strides = {y.column, y.row};
    d.output_strides = {z.row, z.column};
    return d;
  }
  void run(const void* a, const void* b, void* c) const {
    for (int64_t i = 0; i < batch; ++i) matrix.run({at(a, 0, i), at(b, 1, i), nullptr, at(c, 2, i)});
  }
  const char* at(const void* data, int operand, int64_t i) const {
    return static_cast<const char*>(data) + i * batch_strides[operand] * element_size;
  }
};

}  // namespace

PreparedCall prepare_matmul(const CallArguments& call) {
  const int left = call.required_operand("self"), right = call.required_operand("mat2");
  const OperandLayout &a = call.operands[left], &b = call.operands[right], &c = call.result(0);
  check_product(call, a, b, c);
  const bool half = c.dtype == DType::BFloat16 || c.dtype == DType::Float16;
  if (half || c.dtype == DType::Float32)
    for (const Copies copies : {Copies::None, Copies::OddLayouts, Copies::All, Copies::AllAsFloat32}) {
      if (copies == Copies::AllAsFloat32 && !half) continue;
      auto product = std::make_shared<const Product>(a, b, c, copies);
      if (!product->plan) continue;
      return [product, left, right](void* const* operands, void* const* results) {
        product->run(operands[left], operands[right], results[0]);
      };
    }
  FL_CHECK(c.dtype != DType::Bool, NotImplementedError, "{} of bool matrices", call.op.name());
  auto direct = std::make_shared<const DirectProduct>(a, b, c);
  return [direct, left, right](void* const* operands, void* const* results) {
    direct->run(operands[left], operands[right], results[0]);
  };
}

}  // namespace fl::runtime
