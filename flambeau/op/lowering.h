// What a primitive is made of: for each element of the output, scalar operations on elements of the inputs.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "flambeau/op/reduce_op.h"
#include "flambeau/op/scalar_ops.h"
#include "flambeau/op/value.h"

namespace fl {

using sym::Expr;
using Index = std::vector<Expr>;  ///< one expression a dimension

/// Bodies of primitives run against this: scalar operations and reads of the operator's tensor arguments.
class BodyOps : public ScalarOps {
 public:
  /// Element of argument number `arg` (of its list's tensor `item`) at an index in its own dimensions; zero,
  /// without a memory access, where a mask is given and false. Halves arrive as float32.
  virtual Val load(int arg, std::span<const Expr> index, Val mask = {}, int item = 0) = 0;
  /// An index from data: negative values count from the end; outside [-size, size) the call raises IndexError
  /// (`name` is the argument that the message blames). Returns the index, and in `valid` the mask for the
  /// accesses with it.
  virtual Expr indirect(Val index, const Expr& size, std::string_view name, Val* valid) = 0;
  /// A value that is known to lie in range, as an index.
  virtual Expr as_index(Val v) = 0;
  /// A Scalar or float argument in the given dtype. A constant in a graph, an argument of the kernel in eager
  /// mode.
  virtual Val number(int arg, DType dtype) = 0;
};

/// The meaning of one call of a primitive, as data. Index expressions are over the loop variables that the
/// functions get. The functions may run several times, and after the call that made them returned.
struct Lowered {
  enum class Kind : uint8_t { Pointwise, Reduction, Scan, Scatter, View };
  Kind kind = Kind::Pointwise;
  std::vector<Expr>
      sizes;  ///< of the outputs (all equal). Scatter: of the updates. Scan: with the scanned dimension.
  std::vector<Expr> reduce_sizes;
  ReduceOp reduce = ReduceOp::Sum;
  /// Reduction over a window whose sizes are the call's numbers: its points combine one after the other.
  bool window = false;
  int scan_dim = -1;

  /// Pointwise: a value for each output. Reduction and Scan: the operands at a point (i: output index, r:
  /// reduction index).
  std::function<std::vector<Val>(BodyOps&, std::span<const Expr> i, std::span<const Expr> r)> body;
  /// Reduction and Scan: the outputs' values from the results; empty: the results themselves.
  std::function<std::vector<Val>(BodyOps&, std::span<const Expr> i, std::span<const Val> results)> finish;

  /// Scatter: output = copy of argument `input`, then for every i one store.
  struct Update {
    Index index;
    Val value;
    Val mask;
  };
  std::function<Update(BodyOps&, std::span<const Expr> i)> update;
  StoreMode mode = StoreMode::Set;

  /// View: the input's index for an output's.
  int input = 0;
  std::function<Index(std::span<const Expr> i)> map;
};

}  // namespace fl
