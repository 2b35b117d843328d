// How the points of a kernel spread over the threads of a grid, decided from the kernel alone.
#pragma once
#include <utility>
#include <vector>

#include "flambeau/codegen/gpu/launch_shape.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

/// bytes of the address, or of `offset` elements of size `element` alone, are a multiple of `multiple`.
struct AlignmentTest {
  int32_t buffer;  ///< -1: only the offset
  sym::Expr offset;
  int64_t element, multiple;
};

struct GridPlan {
  /// An item is what a team of threads takes at once. Points: a thread takes points (or vectors of them) of
  /// the flattened outer loops. Rows: a team takes a point of the outer loops, its threads the points of
  /// inner loops. Columns: as Rows, but each thread takes a vector of points of the last outer loop, and the
  /// threads side by side in a block take neighbouring ones.
  enum class Kind : uint8_t { Points, Rows, Columns };
  Kind kind = Kind::Points;
  bool serial = false;  ///< One team takes all items in order.
  int team = 1;         ///< threads that share an item; a power of two
  int across = 1;       ///< Columns: threads side by side
  int block = 256;      ///< threads of a block
  /// Elements that a thread takes at once where memory is aligned: 1: there is no version for that.
  int lanes = 1;
  std::vector<AlignmentTest> tests;                    ///< when the version of several lanes may run
  std::vector<std::pair<int32_t, sym::Expr>> aligned;  ///< buffers and indices of accesses that tests cover

  /// Rows that are read by several stages: a row of at most so many vectors a thread is held in registers. 0:
  /// there is no version for that.
  int held = 0;
  /// For each value that loads what an earlier stage has loaded at the same point: that value; else -1.
  std::vector<int32_t> loaded_before;

  bool is_aligned(int32_t buffer, const sym::Expr& index) const;
};

/// Columns: with as many blocks of the version of several lanes, it is used.
inline constexpr int64_t kEnoughBlocks = 96;

GridPlan plan_grid(const loop::Kernel& k, bool deterministic);
ShapeRule shape_rule(const loop::Kernel& k, const GridPlan& plan);

/// Whether the points of the stage are cut into partial results that threads share.
bool is_cut(const loop::Kernel& k, const loop::Stage& stage);

}  // namespace fl::codegen
