// Threads that share an item: who is who, and how their states come together.
#pragma once
#include <llvm/IR/Module.h>

#include "flambeau/codegen/common/accumulators.h"
#include "flambeau/codegen/gpu/grid_plan.h"

namespace fl::codegen {

class Team : public Exchange {
 public:
  /// One of `size` threads. Reads the thread's place at the insertion point, where everything that follows
  /// can use it.
  Team(BodyEmitter& body, const GridPlan& plan, int size, llvm::Module& module);

  int size() const { return size_; }
  llvm::Value* rank() const { return rank_; }  ///< of the thread in its team, int64
  llvm::Value* number() const {
    return number_;
  }  ///< of the team in its block (Columns: of the column), int64
  llvm::Value* across() const { return across_; }      ///< Columns: how many lie side by side
  llvm::Value* is_first() const { return is_first_; }  ///< rank() == 0; null in a team of one
  /// Waits for the team's other threads; what they wrote is there afterwards. All of them must come here.
  void barrier();
  State reduce(const State& mine, const Merge& merge, bool commutes) override;
  State broadcast(const State& mine) override;
  /// Gives the memory that threads share its size, at the end of the kernel.
  void finish();

 private:
  bool is_warp() const { return plan_.kind != GridPlan::Kind::Columns && size_ <= 32; }
  llvm::Value* shuffle(llvm::Value* v, llvm::Value* lane, int offset);
  template <class F>
  State each_element(const State& s, F&& f);
  State from_partner(const State& mine, int offset);
  State choose(llvm::Value* condition, const State& a, const State& b);
  State butterfly(State mine, int from, const Merge& merge, bool commutes);
  State reduce_warps(const State& mine, const Merge& merge, bool commutes);
  State reduce_columns(const State& mine, const Merge& merge);
  llvm::Value* slot(llvm::Type* type, uint64_t& offset, llvm::Value* position, uint64_t positions);
  template <class F>
  void each_slot(const State& model, llvm::Value* position, F&& f);
  void put(const State& s, llvm::Value* position);
  State get(const State& model, llvm::Value* position);

  BodyEmitter& body_;
  llvm::IRBuilder<>& b_;
  GridPlan plan_;
  int size_;
  llvm::Module& module_;
  llvm::Value *thread_, *rank_, *number_, *across_ = nullptr, *is_first_ = nullptr;
  llvm::Value *lane_ = nullptr, *members_ = nullptr;  // of a warp, int32
  llvm::GlobalVariable* shared_ = nullptr;
  uint64_t shared_bytes_ = 0;
};

/// Of the launch: threads of a block, number of the thread in it, blocks, number of the block; int64.
enum class GridRegister : uint8_t { BlockSize, Thread, Blocks, Block };
llvm::Value* read_register(llvm::IRBuilder<>& b, GridRegister r);

}  // namespace fl::codegen
