#include "flambeau/runtime/strided_copy.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "flambeau/base/parallel.h"
#include "flambeau/tensor/element.h"

namespace fl::runtime {
namespace {

constexpr int64_t kGrainElements = 1 << 15;
constexpr int64_t kTileSide = 32;       // two tiles of 8-byte elements fit a first-level cache
constexpr int64_t kRowPiece = 1 << 14;  // of a row that is copied alone

int64_t pieces(int64_t n, int64_t step) { return (n + step - 1) / step; }

}  // namespace

StridedCopy::StridedCopy(const std::vector<int64_t>& sizes, DType to_dtype,
                         const std::vector<int64_t>& to_strides, DType from_dtype,
                         const std::vector<int64_t>& from_strides)
    : to_size_(size_of(to_dtype)), from_size_(size_of(from_dtype)), tile_(tile_for(to_dtype, from_dtype)) {
  FL_ASSERT(sizes.size() == to_strides.size() && sizes.size() == from_strides.size(), "{}, {}, {}",
            sizes.size(), to_strides.size(), from_strides.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return;
    if (sizes[i] != 1) outer_.push_back({sizes[i], to_strides[i], from_strides[i]});
  }
  merge();
  choose_tile();
}

/// Orders dimensions by their steps in the target and makes one of two that both sides walk as one.
void StridedCopy::merge() {
  std::ranges::stable_sort(outer_, [](const Dim& a, const Dim& b) { return a.to > b.to; });
  std::vector<Dim> merged;
  for (const Dim& d : outer_) {
    if (!merged.empty() && merged.back().to == d.to * d.size && merged.back().from == d.from * d.size)
      merged.back() = {merged.back().size * d.size, d.to, d.from};
    else
      merged.push_back(d);
  }
  outer_ = std::move(merged);
}

void StridedCopy::choose_tile() {
  if (!outer_.empty()) {
    columns_ = outer_.back();
    outer_.pop_back();
  }
  const auto dense = std::ranges::find_if(outer_, [](const Dim& d) { return d.from == 1; });
  if (columns_.from > 1 && dense != outer_.end()) {
    rows_ = *dense;
    outer_.erase(dense);
    tile_rows_ = tile_columns_ = kTileSide;
  } else {
    tile_columns_ = kRowPiece;
  }
  tiles_ = pieces(rows_.size, tile_rows_) * pieces(columns_.size, tile_columns_);
  for (const Dim& d : outer_) tiles_ *= d.size;
}

void StridedCopy::run(void* to, const void* from) const {
  const int64_t across = pieces(columns_.size, tile_columns_), down = pieces(rows_.size, tile_rows_);
  const int64_t elements = std::min(rows_.size, tile_rows_) * std::min(columns_.size, tile_columns_);
  parallel_for(tiles_, std::max<int64_t>(1, kGrainElements / elements), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t column = tile % across * tile_columns_, row = tile / across % down * tile_rows_;
      int64_t to_at = row * rows_.to + column * columns_.to;
      int64_t from_at = row * rows_.from + column * columns_.from;
      int64_t rest = tile / across / down;
      for (size_t i = outer_.size(); i-- > 0;) {
        const int64_t index = rest % outer_[i].size;
        rest /= outer_[i].size;
        to_at += index * outer_[i].to;
        from_at += index * outer_[i].from;
      }
      tile_(static_cast<char*>(to) + to_at * to_size_, static_cast<const char*>(from) + from_at * from_size_,
            {std::min(tile_rows_, rows_.size - row), rows_.to, rows_.from},
            {std::min(tile_columns_, columns_.size - column), columns_.to, columns_.from});
    }
  });
}

StridedCopy::Tile StridedCopy::tile_for(DType to, DType from) {
  const auto tile = []<class To, class From>(To*, From*) -> Tile {
    return [](void* to_data, const void* from_data, const Dim& rows, const Dim& columns) {
      for (int64_t i = 0; i < rows.size; ++i) {
        To* out = static_cast<To*>(to_data) + i * rows.to;
        const From* in = static_cast<const From*>(from_data) + i * rows.from;
        if (std::is_same_v<To, From> && columns.to == 1 && columns.from == 1)
          std::memcpy(out, in, columns.size * sizeof(To));
        else
          for (int64_t j = 0; j < columns.size; ++j)
            out[j * columns.to] = convert_element<To>(in[j * columns.from]);
      }
    };
  };
  const auto pointer = []<class T>(T) { return static_cast<T*>(nullptr); };
  if (to == from) {
    switch (size_of(to)) {
      case 1:
        return tile(pointer(uint8_t{}), pointer(uint8_t{}));
      case 2:
        return tile(pointer(uint16_t{}), pointer(uint16_t{}));
      case 4:
        return tile(pointer(uint32_t{}), pointer(uint32_t{}));
      case 8:
        return tile(pointer(uint64_t{}), pointer(uint64_t{}));
      default:
        return tile(pointer(std::complex<double>{}), pointer(std::complex<double>{}));
    }
  }
  if (to == DType::Float32 && from == DType::Float16) return tile(pointer(float{}), pointer(Half{}));
  if (to == DType::Float32 && from == DType::BFloat16) return tile(pointer(float{}), pointer(BFloat16{}));
  if (to == DType::Float16 && from == DType::Float32) return tile(pointer(Half{}), pointer(float{}));
  if (to == DType::BFloat16 && from == DType::Float32) return tile(pointer(BFloat16{}), pointer(float{}));
  FL_RAISE(InternalError, "a strided copy from {} to {}", name(from), name(to));
}

}  // namespace fl::runtime
