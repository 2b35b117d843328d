// Copies between layouts, resolved once: what brings an operand into a layout that a routine takes.
#pragma once
#include <vector>

#include "flambeau/tensor/dtype.h"

namespace fl::runtime {

/// to[i...] = from[i...] for all i below sizes; strides in elements, 0 in from_strides repeats. Dtypes are
/// equal, or a 16-bit float and float32. In parallel; the operands do not overlap.
class StridedCopy {
 public:
  StridedCopy(const std::vector<int64_t>& sizes, DType to_dtype, const std::vector<int64_t>& to_strides,
              DType from_dtype, const std::vector<int64_t>& from_strides);
  void run(void* to, const void* from) const;

 private:
  struct Dim {
    int64_t size, to, from;
  };
  /// Copies a tile of rows by columns.
  using Tile = void (*)(void* to, const void* from, const Dim& rows, const Dim& columns);

  void merge();
  void choose_tile();
  static Tile tile_for(DType to, DType from);

  std::vector<Dim> outer_;  // walked one by one
  Dim rows_{1, 0, 0};       // the dimension along which `from` is dense, where it is not the columns
  Dim columns_{1, 0, 0};    // the dimension along which `to` is dense
  int64_t tile_rows_ = 1, tile_columns_ = 1;
  int64_t tiles_ = 0;  // 0: nothing to copy
  int64_t to_size_, from_size_;
  Tile tile_;
};

}  // namespace fl::runtime
