// Scalar operations as LLVM instructions on one value (count 1) or on a vector of lanes, placed as far out of
// the loops as their operands allow.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <unordered_map>
#include <vector>

#include "flambeau/codegen/common/machine.h"
#include "flambeau/loop/ir.h"
#include "flambeau/op/scalar_ops.h"

namespace fl::codegen {

/// A value in registers. Bool is i1, half types are their bits in i16, complex numbers are two values. One
/// with count 1 is a scalar that stands for all lanes.
struct Lanes {
  llvm::Value* re = nullptr;
  llvm::Value* im = nullptr;
  int count = 1;
  int level = 0;  ///< The depth of loops at which it changes.
};

class LaneOps : public ScalarOps {
 public:
  LaneOps(llvm::Function* function, llvm::IRBuilder<>& builder, const Machine& machine);

  Val emit(ScalarOp op, DType dtype, Val a, Val b = {}, Val c = {}) override;
  Val constant(DType dtype, Literal value) override;
  Val index(const sym::Expr& e) override;

  Val add_lanes(DType dtype, Lanes lanes);
  const Lanes& lanes(Val v) const { return table_[v.id]; }
  /// v with `count` lanes: a scalar is repeated.
  Lanes widened(Val v, int count);
  llvm::Value* widened(llvm::Value* scalar, int level, int count);
  /// Whether a vector of bools has a true one.
  llvm::Value* any_lane(llvm::Value* bools);

  /// Opens the next level; what belongs to the present one is from now on put before the end of `hoist`.
  void open_level(llvm::BasicBlock* hoist);
  void close_level();
  int level() const { return static_cast<int>(hoist_.size()); }
  /// Moves the insertion point to where values of this level go, until the guard dies.
  class Place {
   public:
    Place(LaneOps& ops, int level);

   private:
    llvm::IRBuilder<>::InsertPointGuard guard_;
  };

  llvm::IRBuilder<>& builder() { return b_; }
  const Machine& machine() const { return machine_; }
  llvm::Type* register_type(DType dtype) const;  ///< Of one part of a complex number.
  llvm::Type* memory_type(DType dtype) const;    ///< Likewise.
  static llvm::Type* with_count(llvm::Type* element, int count);
  llvm::AllocaInst* stack_slot(llvm::Type* type, std::string_view name);

 protected:
  /// The operation on values that no instruction computes.
  virtual llvm::Value* call_library(ScalarOp op, DType d, llvm::Value* a, llvm::Value* b, int count);

  llvm::IRBuilder<>& b_;
  llvm::Function* function_;
  const Machine& machine_;

 private:
  Lanes convert(DType to, DType from, const Lanes& a);
  Lanes convert_real(DType to, DType from, llvm::Value* x, int count);
  llvm::Value* half_to_float(DType from, llvm::Value* x, int count);
  llvm::Value* float_to_half(DType to, llvm::Value* x, int count);
  llvm::Value* float_to_integer(DType to, DType from, llvm::Value* x);
  llvm::Value* integer_op(ScalarOp op, DType d, llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* bool_op(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* float_op(ScalarOp op, DType d, llvm::Value* a, llvm::Value* b, llvm::Value* c, int count);
  Lanes complex_op(ScalarOp op, const Lanes& a, const Lanes& b);
  Lanes complex_divide(const Lanes& a, const Lanes& b);
  llvm::Value* compare(ScalarOp op, DType d, const Lanes& a, const Lanes& b);
  llvm::Value* divide_integers(ScalarOp op, DType d, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(ScalarOp op, DType d, llvm::Value* a, llvm::Value* b);
  llvm::Value* choose_extreme(llvm::Value* wins, llvm::Value* a, llvm::Value* b);
  llvm::Value* number(llvm::Value* like, double v);
  llvm::Value* integer(llvm::Value* like, int64_t v);

  std::vector<Lanes> table_;
  std::vector<llvm::BasicBlock*> hoist_;
  struct Splat {
    llvm::Value* vector;
    int level;
  };
  std::vector<std::pair<std::pair<llvm::Value*, int>, Splat>> splats_;
};

}  // namespace fl::codegen
