// Matrix products through cuBLASLt, with copies where it does not take a layout.
#include "flambeau/library/cuda/matmul.h"

#include <algorithm>

#include "flambeau/library/cuda/precision.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/graph.h"
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
enum class Copies { Pieces, None, OddLayouts, All };

/// Matrix units read and write pieces of so many bytes of a row (or a column, where that is contiguous): rows
/// that start or end elsewhere take several times as long.
constexpr int64_t kPieceBytes = 16;
/// Sizes from which copies are a small part of the product.
constexpr int64_t kLargeSize = 128;

bool runs_along_rows(const OperandLayout& m) { return m.strides.back() == 1; }

/// The dimension along which the elements lie side by side.
size_t contiguous_dim(const OperandLayout& m) { return m.sizes.size() - (runs_along_rows(m) ? 1 : 2); }
size_t other_dim(const OperandLayout& m) { return m.sizes.size() - (runs_along_rows(m) ? 2 : 1); }

/// The product's sizes m, n, k.
struct ProductSizes {
  int64_t m, n, k;
};

int64_t up_to_pieces(int64_t size, DType dtype) {
  const int64_t unit = kPieceBytes / size_of(dtype);
  return (size + unit - 1) / unit * unit;
}

/// Whether every row (or column) starts where a piece does, as the first one does.
bool starts_pieces(const OperandLayout& m) {
  const auto whole = [&](int64_t stride) { return up_to_pieces(stride, m.dtype) == stride; };
  return whole(m.strides[other_dim(m)]) && (m.sizes.size() < 3 || whole(m.strides[0]));
}

/// The sizes with whole pieces along what is contiguous in an operand. Large products in the dtypes of the
/// matrix units only, where this gains more than copies take.
std::optional<ProductSizes> in_pieces(const OperandLayout& a, const OperandLayout& b,
                                      const OperandLayout& c) {
  if (size_of(c.dtype) != 2) return std::nullopt;
  const size_t rank = c.sizes.size(), rows = rank - 2, columns = rank - 1;
  ProductSizes s{c.sizes[rows], c.sizes[columns], a.sizes[columns]};
  if (std::min({s.m, s.n, s.k}) < kLargeSize) return std::nullopt;
  bool odd = false;
  const auto look_at = [&](const OperandLayout& x, int64_t& row_size, int64_t& column_size) {
    const bool plain = is_plain_matrix(x);  // or a copy in rows
    int64_t& size = !plain || runs_along_rows(x) ? column_size : row_size;
    const int64_t whole = up_to_pieces(size, x.dtype);
    odd = odd || whole != size || (plain && !starts_pieces(x));
    size = whole;
  };
  look_at(a, s.m, s.k);
  look_at(b, s.k, s.n);
  look_at(c, s.m, s.n);
  return odd ? std::optional(s) : std::nullopt;
}

/// Stages an operand that has other sizes, or rows that start within a piece.
void stage_pieces(DeviceOperand& operand, int64_t rows, int64_t columns, bool zeros, int64_t& total) {
  const OperandLayout& given = operand.layout();
  std::vector<int64_t> sizes = given.sizes;
  const size_t rank = sizes.size();
  sizes[rank - 2] = rows;
  sizes[rank - 1] = columns;
  if (!is_plain_matrix(given)) return operand.stage_larger(sizes, row_major(sizes), zeros, total);
  if (sizes == given.sizes && starts_pieces(given)) return;
  const size_t along = contiguous_dim(given), across = other_dim(given);
  std::vector<int64_t> strides(rank, 1);
  strides[across] = sizes[along];
  if (rank == 3) strides[0] = sizes[along] * sizes[across];
  operand.stage_larger(sizes, strides, zeros, total);
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
    if (copies == Copies::Pieces) {
      const ProductSizes s = in_pieces(left, right, product).value();
      const bool zeros = s.k != left.sizes.back();  // times whatever is there otherwise
      stage_pieces(a, s.m, s.k, zeros, staged_bytes);
      stage_pieces(b, s.k, s.n, zeros, staged_bytes);
      stage_pieces(c, s.m, s.n, false, staged_bytes);
    }
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
    if (Graph* graph = recording()) graph->keep(other ? other : plan);
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
  for (const Copies copies : {Copies::Pieces, Copies::None, Copies::OddLayouts, Copies::All}) {
    if (copies == Copies::Pieces && !in_pieces(a, b, c)) continue;
    auto product = std::make_shared<const Product>(device, a, b, c, *dtype, copies);
    if (!product->plan) continue;
    return [product, left, right](void* const* operands, void* const* results) {
      product->run(operands[left], operands[right], results[0]);
    };
  }
  return {};
}

}  // namespace fl::runtime::cuda
