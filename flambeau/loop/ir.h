// Loop IR: one kernel as a nest of loops over scalar operations. docs/loop-ir.md describes it with examples.
//
//   kernel softmax(x: f32 in, y: f32 out) sizes(s0, s1) vector inner
//   for i0 < s0
//     stage for r0 < s1
//       %0 = load f32 x[i0*s1 + r0]
//       %1, %2 = reduce online_softmax %0
//     stage for r0 < s1
//       %3 = load f32 x[i0*s1 + r0]
//       %4 = sub f32 %3, %1
//       %5 = exp f32 %4
//       %6 = div f32 %5, %2
//       store y[i0*s1 + r0] = %6
//
// Outer loops: every iteration is independent of the others and they may run in any order and in parallel.
// Stages of one outer iteration run one after the other; a stage's inner loops are nested, the first
// outermost, and run in order. A value of a stage without inner loops, and the result of a reduction, can be
// used in later stages; every other value belongs to one point of its stage.
#pragma once
#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flambeau/op/reduce_op.h"
#include "flambeau/op/scalar_ops.h"
#include "flambeau/sym/expr.h"

namespace fl::loop {

using sym::Expr;
using sym::Range;

enum class InstKind : uint8_t {
  Operation,  ///< op applied to a, b, c
  Constant,   ///< value
  Param,      ///< a scalar argument of the kernel, number `slot`
  Index,      ///< the value of `index`, int64
  Load,  ///< buffer `slot` at `index`; where the bool a is given and false, zero, and memory is not touched
  Reduced,  ///< result number b of reduction number a of its stage
  Scanned,  ///< result number b of scan number a of its stage: the inclusive prefix at this point
};

/// One value. Index expressions are over loop variables, size symbols and, as symbol "%7", the int64 value 7.
struct Inst {
  InstKind kind = InstKind::Operation;
  ScalarOp op = ScalarOp::Constant;
  DType dtype = DType::Float32;
  int32_t a = -1, b = -1, c = -1;
  int32_t slot = -1;
  Expr index;
  int64_t integer = 0;            ///< Constant of a bool or integer dtype
  std::complex<double> number{};  ///< Constant of a floating or complex dtype
};

using fl::ReduceOp;
using fl::StoreMode;
std::string_view name(ReduceOp op);
int operand_count(ReduceOp op);
int result_count(ReduceOp op);

/// The symbol that stands for the int64 value `id` in index expressions, and back (-1 for other symbols).
Expr symbol_of(int32_t id);
int32_t value_of(const Expr& symbol);

struct Reduction {
  ReduceOp op;
  std::vector<int32_t> operands;
  std::vector<int32_t> results;  ///< the Reduced (or Scanned) insts
};

struct Store {
  int32_t buffer;
  Expr index;
  int32_t value;
  StoreMode mode = StoreMode::Set;
  int32_t mask = -1;  ///< bool; where false nothing is stored
};

/// A condition on run-time data. A false one makes the launch raise IndexError with the message, in which
/// "{}" stands for the value and "{s0*4}" for what an expression over the sizes is in this launch; the kernel
/// still touches no memory outside its buffers.
struct Assert {
  int32_t condition;
  int32_t value;
  std::string message;
};

struct Stage {
  std::vector<Range> inner;
  std::vector<int32_t> insts;  ///< in order of evaluation, Scanned ones included, Reduced ones not
  std::vector<Reduction> reductions;
  std::vector<Reduction> scans;  ///< along the last inner loop; need exactly one inner loop
  std::vector<Store> stores;
  std::vector<Assert> asserts;
};

struct Buffer {
  std::string name;
  DType dtype;
  bool written = false;
  /// One element that is given with the launch: never written, read at index 0. Where kernels run in another
  /// memory than the host's, it is a number or a small tensor of the host's.
  bool by_value = false;
};

/// Order of a reduction, the same wherever it runs: with Inner and OuterTree a loop of n points is cut into
/// Kernel::lanes interleaved partial results (point p belongs to p % lanes), which are combined as a balanced
/// tree (halves: lane l with lane l + lanes/2). Otherwise points combine one after the other.
inline constexpr int kReduceLanes = 64, kMostReduceLanes = 1024;

/// Which loop's iterations are the lanes of a vector.
enum class VectorAxis : uint8_t {
  None,
  Outer,  ///< the last outer loop
  Inner,  ///< the last inner loop of every stage that has one
  /// The last outer loop, where points combine in the order of Inner: for reductions whose memory runs along
  /// the outputs, but whose order of points is that of another layout.
  OuterTree,
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Expr> sizes;    ///< symbols given at launch, int64
  std::vector<DType> params;  ///< scalars given at launch
  std::vector<Range> outer;
  std::vector<Inst> insts;
  std::vector<Stage> stages;
  VectorAxis vector = VectorAxis::None;
  int lanes = kReduceLanes;  ///< Partial results of cut reductions: a power of two up to kMostReduceLanes.

  std::string str() const;
};

/// Raises ValueError with the line of the first thing that breaks the rules of this file.
void verify(const Kernel& k);
/// Reads what str() prints, and verifies it.
Kernel parse_kernel(std::string_view text);

}  // namespace fl::loop
