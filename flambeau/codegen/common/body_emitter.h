// Writes the instructions of a kernel's stages: index arithmetic, loads, operations, checks and stores, for
// the lanes of one vector axis. The loops around it are the caller's.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "flambeau/codegen/common/lane_ops.h"

namespace fl::codegen {

class BodyEmitter : public LaneOps {
 public:
  /// What the kernel is given, as values of level 0 in the order of its buffers, sizes and parameters.
  struct Arguments {
    std::vector<llvm::Value*> buffers;  ///< pointers; null where `values` has the element itself
    std::vector<Lanes> values;          ///< of buffers given by value; may be shorter
    std::vector<llvm::Value*> sizes;
    std::vector<Lanes> params;
  };
  BodyEmitter(const loop::Kernel& k, llvm::Function* function, llvm::IRBuilder<>& builder,
              const Machine& machine);
  void set_arguments(Arguments arguments) { arguments_ = std::move(arguments); }

  /// The variable's value at the present level, until that level closes.
  void set_variable(const sym::Expr& variable, llvm::Value* value);
  /// The variable's value is base + lane, for `count` lanes, of which those in mask (null: all) exist.
  void set_axis(const sym::Expr& variable, llvm::Value* base, int count, llvm::Value* mask, int level);
  void clear_axis() { axis_ = {}; }
  /// The variable's value in the part that is being written; another part gives it another one.
  void set_part_variable(const sym::Expr& variable, llvm::Value* value) {
    part_variable_ = {variable, value, level()};
  }
  void clear_part_variable() { part_variable_ = {sym::Expr(0), nullptr, 0}; }
  /// Values that differ from lane to lane are kept for each part of a step of several vectors.
  void set_part(int part);
  /// Loads go no further out than this level: outside of it their memory may not exist.
  void set_load_floor(int level) { load_floor_ = level; }
  /// Tells which contiguous accesses of whole vectors start at a multiple of the vector's size, or of 16
  /// bytes where that is less. Without it none is known to.
  using IsAligned = std::function<bool(int32_t buffer, const sym::Expr& index)>;
  void set_alignment(IsAligned is_aligned) { is_aligned_ = std::move(is_aligned); }
  /// Forgets the values of the body, before it is written once more elsewhere.
  void clear_values();

  Lanes expr(const sym::Expr& e);
  llvm::Value* scalar(const sym::Expr& e);  ///< One that is the same for all lanes.
  void inst(int32_t id);
  Val value(int32_t id) const;  ///< Of the present part, or of the first where it is the same for all.
  void set_value(int32_t id, Val v) { values_[part_][id] = v; }
  void store(const loop::Store& s);
  llvm::Value* mask() const { return axis_.mask; }
  int lane_count() const { return axis_.count; }
  /// condition and the mask of existing lanes, as the caller's check needs them; null where all lanes pass.
  llvm::Value* failing_lanes(const loop::Assert& a);

  void close_level_of_body();

  /// The pointer where it is wanted, else one to kZeroBytes zeros, aligned to 16.
  llvm::Value* or_zeros(llvm::Value* wanted, llvm::Value* pointer);
  Lanes load_scalar(DType d, llvm::Value* pointer, llvm::Value* mask);
  llvm::Value* from_memory(DType d, llvm::Value* v);
  llvm::Value* to_memory(DType d, llvm::Value* v);

 protected:
  /// Whether the store's element may be changed by other threads meanwhile.
  virtual bool is_contended(const loop::Store&) const { return false; }
  /// Combines one element in memory with a value, all at once, at the insertion point.
  virtual void combine_atomically(DType d, loop::StoreMode mode, llvm::Value* pointer, const Lanes& value);

 private:
  struct Axis {
    sym::Expr variable;
    llvm::Value* base = nullptr;
    llvm::Value* mask = nullptr;
    int count = 1;
    int level = 0;
  };
  struct Access {
    enum class Kind { Uniform, Contiguous, Strided, Indexed } kind;
    sym::Expr coefficient, rest;
    bool aligned = false;
  };
  struct Memo {
    int part;
    Lanes lanes;
  };
  struct Variable {
    sym::Expr symbol;
    llvm::Value* value;
    int level;
  };

  Access classify(int32_t buffer, const sym::Expr& index);
  bool varies(const sym::Expr& e) const;
  Lanes symbol(const sym::Expr& s);
  Lanes compute(const sym::Expr& e);
  Lanes combine(sym::Kind kind, const Lanes& a, const Lanes& b, bool nonnegative);
  llvm::Type* element_type(DType d) const;
  llvm::Value* element_pointer(int32_t buffer, const sym::Expr& rest);
  llvm::Value* lane_numbers();
  llvm::Value* pointers(int32_t buffer, const sym::Expr& index, const Access& access);
  Lanes load(const loop::Inst& i);
  Lanes load_contiguous(DType d, llvm::Value* pointer, llvm::Value* mask, llvm::Align align);
  Lanes load_one_by_one(DType d, const Access& access, llvm::Value* pointers, llvm::Value* mask);
  Lanes gather(DType d, llvm::Value* pointers, llvm::Value* mask);
  Lanes given_value(const loop::Inst& i);
  llvm::Value* both(llvm::Value* a, llvm::Value* b);
  Lanes read(DType d, const Access& access, llvm::Value* pointer, llvm::Value* mask);
  void write(DType d, const Access& access, llvm::Value* pointer, Lanes v, llvm::Value* mask);
  void write_scalar(DType d, llvm::Value* pointer, const Lanes& v);
  llvm::Value* lane_pointer(DType d, const Access& access, llvm::Value* pointers, int lane);
  Lanes lane_of(const Lanes& v, int lane);
  llvm::Align alignment(DType d, const Access& access) const;
  bool moves_vectors(const Access& access, llvm::Value* mask) const;
  /// Runs f where the condition (null: always) holds.
  void where(llvm::Value* condition, const std::function<void()>& f);
  Val updated(const loop::Store& s, const Access& access, llvm::Value* pointer, llvm::Value* mask);

  const loop::Kernel& k_;
  Arguments arguments_;
  IsAligned is_aligned_;
  std::vector<Variable> variables_;
  Axis axis_;
  Variable part_variable_{sym::Expr(0), nullptr, 0};
  int part_ = 0, load_floor_ = 0;
  std::vector<std::vector<Val>> values_;
  std::unordered_map<const void*, std::vector<Memo>> exprs_;
  struct PointerMemo {
    int32_t buffer;
    sym::Expr rest;
    llvm::Value* pointer;
    int level;
  };
  std::vector<PointerMemo> pointers_;
  static constexpr int64_t kZeroBytes = 128;
  llvm::Value* zeros_ = nullptr;
  std::vector<bool> written_;
};

}  // namespace fl::codegen
