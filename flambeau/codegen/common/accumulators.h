// The running states of a stage's reductions and scans, in registers or on the stack.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "flambeau/codegen/common/body_emitter.h"
#include "flambeau/loop/reduce.h"

namespace fl::codegen {

/// Threads that take parts of one loop and put their states together.
class Exchange {
 public:
  using State = loop::State;
  using Merge = std::function<State(const State& low, const State& high)>;
  virtual ~Exchange() = default;
  /// The tree of halves over the threads' states, and then over their lanes where those are points; every
  /// thread gets the result. commutes: merge() gives the same for its operands exchanged.
  virtual State reduce(const State& mine, const Merge& merge, bool commutes) = 0;
  /// The state of the first thread.
  virtual State broadcast(const State& mine) = 0;
};

/// Lanes [from, from + count) of a state.
loop::State lanes_of(LaneOps& ops, const loop::State& s, int from, int count);
/// The tree of halves over the lanes of a state.
loop::State merge_lanes(LaneOps& ops, loop::State s, const Exchange::Merge& merge);

class Accumulators {
 public:
  /// How many counts of points Welford's states keep, where many states have seen as many points.
  enum class Counts : uint8_t { EachLane, EachVector, One };
  struct Layout {
    int parts = 1;  ///< vectors of states
    /// Where more than parts: the documented tree has so many, and the others have no points.
    int all_parts = 0;
    int count = 1;  ///< lanes of each
    bool lanes_are_points =
        false;               ///< Lanes are points of the reduction: the mask decides which of them count.
    bool in_memory = false;  ///< The part of a step is chosen at run time.
    Counts counts = Counts::EachLane;
    Exchange* exchange = nullptr;  ///< with others that run the same code, each for its own points
  };
  Accumulators(BodyEmitter& body, const loop::Kernel& k, const loop::Stage& stage, Layout layout);

  const Layout& layout() const { return layout_; }
  void reset();
  /// The selected part only.
  void reset_part();
  /// Takes the operands of the present point (or vector of points) into states `part`, where the condition
  /// (null: always) holds.
  void step(int part, llvm::Value* condition = nullptr);
  void scan(int number, int part);
  void end_step();
  /// Moves the states from registers to memory, each with its own count.
  void spill();
  /// The part of the following steps, where it is known at run time only.
  void select_part(llvm::Value* part) { dynamic_part_ = part; }
  /// Combines parts a and b, chosen at run time, into a.
  void merge_pair(llvm::Value* a, llvm::Value* b);
  /// Combines all parts, threads and (where they are points) lanes in the documented tree; the results become
  /// values of the kernel.
  void merge();
  /// Results of states whose lanes are not combined.
  void results(int part);

 private:
  struct Slot {
    DType dtype;
    std::vector<llvm::AllocaInst*> re, im;                  // one a part, while they are in registers
    llvm::AllocaInst *all_re = nullptr, *all_im = nullptr;  // arrays of all parts
    llvm::AllocaInst* shared = nullptr;
    int count = 1;  // lanes
  };
  struct Item {
    const loop::Reduction* reduction;
    std::vector<Slot> state;
    std::vector<Val> pending;  // new values of shared slots
  };

  Item make_item(const loop::Reduction& r);
  loop::State identity_of(const Item& item);
  void advance(Item& item, int part, llvm::Value* condition);
  Val chosen(llvm::Value* condition, Val a, Val b, int count);
  llvm::Value* address(const Slot& slot, bool imaginary, llvm::Type* type, int part);
  bool is_shared(const Slot& slot) const { return slot.shared && !in_memory_; }
  Val load(const Slot& slot, int part);
  void store(const Slot& slot, int part, Val v);
  loop::State load_state(const Item& item, int part);
  void publish(const Item& item, const loop::State& state);
  loop::State tree(std::vector<loop::State> states, const Exchange::Merge& merge_pair,
                   const std::function<loop::State(const loop::State&)>& with_none, bool commutes);

  BodyEmitter& body_;
  const loop::Kernel& k_;
  Layout layout_;
  std::vector<Item> reductions_, scans_;
  llvm::Value* dynamic_part_ = nullptr;
  bool in_memory_;
};

}  // namespace fl::codegen
