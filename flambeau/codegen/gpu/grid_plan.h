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

/// One way to take rows or columns.
struct GridVersion {
  int team = 1;  ///< threads that share an item; a power of two
  /// Elements that a thread takes at once: more than 1 only where memory is aligned.
  int lanes = 1;
  /// Vectors of a row that a thread holds in registers from one stage to the next; 0: it walks along the row
  /// in every stage.
  int held = 0;

  int64_t longest_row() const { return int64_t{1} * team * lanes * held; }
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
  /// Elements that a thread takes at once where memory is aligned; 1: never more than one.
  int lanes = 1;
  std::vector<AlignmentTest> tests;                    ///< when the version of several lanes may run
  std::vector<std::pair<int32_t, sym::Expr>> aligned;  ///< buffers and indices of accesses that tests cover

  /// Rows and Columns: the first that fits takes an item; the last one takes any.
  std::vector<GridVersion> versions;
  sym::Expr row = 0;  ///< Rows with held versions: points of the inner loops
  /// For each value that is what an earlier stage has computed or loaded at the same point: that value; else
  /// -1. Held rows alone keep such values.
  std::vector<int32_t> known_before;

  bool is_aligned(int32_t buffer, const sym::Expr& index) const;
};

/// Columns: with as many blocks of the version of several lanes, it is used.
inline constexpr int64_t kEnoughBlocks = 96;

GridPlan plan_grid(const loop::Kernel& k, bool deterministic);
ShapeRule shape_rule(const loop::Kernel& k, const GridPlan& plan);

/// Whether the points of the stage are cut into partial results that threads share.
bool is_cut(const loop::Kernel& k, const loop::Stage& stage);

}  // namespace fl::codegen
