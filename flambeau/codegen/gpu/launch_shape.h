// How many blocks and threads a kernel is launched with, from its sizes.
#pragma once
#include <cstdint>
#include <vector>

#include "flambeau/sym/expr.h"

namespace fl::codegen {

struct LaunchShape {
  unsigned blocks = 0, threads = 0, shared_bytes = 0;
};

/// Integer expressions over sizes, as a list of steps that is run without allocating.
class SizeProgram {
 public:
  SizeProgram() = default;
  /// The value of e, whose symbols are all among sizes.
  SizeProgram(const sym::Expr& e, const std::vector<sym::Expr>& sizes);
  int64_t operator()(const int64_t* sizes) const;

 private:
  struct Step {
    sym::Kind kind;
    int64_t value;  ///< of Const; the number of the size of Symbol
  };
  void add(const sym::Expr& e, const std::vector<sym::Expr>& sizes);
  std::vector<Step> steps_;  ///< in postfix order
};

struct ShapeRule {
  SizeProgram rows;  ///< points of the outer loops; without the last one where its points lie across a block
  int64_t items_per_block = 1;
  int64_t most_blocks = 1;
  unsigned threads = 1;

  /// Rows of at most `longest` points are taken in another way, so many by a block; shorter ones come first.
  struct ShortRows {
    int64_t longest, items_per_block;
  };
  std::vector<ShortRows> short_rows;
  SizeProgram row;  ///< points of a row, where there are short ones

  SizeProgram columns;  ///< points of the last outer loop
  unsigned across = 0;  ///< threads side by side in a block, each for a column; 0: there are no columns
  /// Where there are as many blocks when each thread takes `lanes` columns, it does.
  int64_t lanes = 1, enough_wide_blocks = 1;

  LaunchShape operator()(const int64_t* sizes) const;
};

}  // namespace fl::codegen
