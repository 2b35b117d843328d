// Writes kernels: a ScalarOps whose operations become instructions of the current stage.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/loop/ir.h"

namespace fl::loop {

/// Equal operations of one stage are recorded once; operations on constants are folded by the interpreter's
/// rules.
class Builder : public ScalarOps {
 public:
  explicit Builder(std::string name);

  int add_buffer(std::string name, DType dtype, bool written);
  int add_param(DType dtype);
  void add_size(const Expr& symbol);  ///< Does nothing where the kernel has it.
  void set_outer(std::vector<Range> outer);
  void begin_stage(std::vector<Range> inner);

  Val emit(ScalarOp op, DType dtype, Val a, Val b, Val c) override;
  Val constant(DType dtype, Literal value) override;
  Val index(const Expr& e) override;
  Val param(int slot);
  Val load(int buffer, const Expr& index, Val mask = {});
  /// The symbol that stands for an int64 value in index expressions of this stage (or a later one).
  static Expr symbol_of(Val v) { return loop::symbol_of(v.id); }
  std::vector<Val> reduce(ReduceOp op, const std::vector<Val>& operands);
  std::vector<Val> scan(ReduceOp op, const std::vector<Val>& operands);
  void store(int buffer, const Expr& index, Val value, StoreMode mode = StoreMode::Set, Val mask = {});
  void check(Val condition, Val value, std::string message);

  /// The kernel as far as it is recorded, for those who ask about dtypes and values.
  const Kernel& kernel() const { return kernel_; }

  /// The finished kernel: dead instructions dropped, size symbols collected, verified.
  Kernel finish(VectorAxis vector);

 private:
  Stage& stage();
  Val append(Inst inst, bool shared);
  std::vector<Val> combine(ReduceOp op, const std::vector<Val>& operands, InstKind kind);
  bool is_constant(Val v) const;
  void forget_loads(int buffer);

  Kernel kernel_;
  /// Text of an instruction -> its value, where it is visible: of the current stage, and of earlier ones.
  std::unordered_map<std::string, int32_t> here_, before_;
};

}  // namespace fl::loop
