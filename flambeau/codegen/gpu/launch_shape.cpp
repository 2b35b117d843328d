#include "flambeau/codegen/gpu/launch_shape.h"

#include <algorithm>

#include "flambeau/base/error.h"

namespace fl::codegen {
namespace {

// Deeper expressions than this do not occur in sizes of loops.
constexpr size_t kDepth = 256;

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t apply(sym::Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case sym::Kind::Add:
      return a + b;
    case sym::Kind::Mul:
      return a * b;
    case sym::Kind::FloorDiv:
      return floor_divide(a, b);
    case sym::Kind::Mod:
      return a - floor_divide(a, b) * b;
    case sym::Kind::Min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

}  // namespace

SizeProgram::SizeProgram(const sym::Expr& e, const std::vector<sym::Expr>& sizes) { add(e, sizes); }

void SizeProgram::add(const sym::Expr& e, const std::vector<sym::Expr>& sizes) {
  if (e.is_const()) {
    steps_.push_back({sym::Kind::Const, e.value()});
  } else if (e.is_symbol()) {
    const auto at = std::find(sizes.begin(), sizes.end(), e);
    FL_CHECK(at != sizes.end(), ValueError, "expected a size known at the launch, got {}", e.str());
    steps_.push_back({sym::Kind::Symbol, at - sizes.begin()});
  } else {
    for (size_t n = 0; n < e.args().size(); ++n) {
      add(e.args()[n], sizes);
      if (n > 0) steps_.push_back({e.kind(), 0});
    }
  }
  FL_CHECK(steps_.size() < kDepth, ValueError, "the size {} is too long for a launch", e.str());
}

int64_t SizeProgram::operator()(const int64_t* sizes) const {
  int64_t stack[kDepth];
  size_t top = 0;
  for (const Step& s : steps_) {
    if (s.kind == sym::Kind::Const) {
      stack[top++] = s.value;
    } else if (s.kind == sym::Kind::Symbol) {
      stack[top++] = sizes[s.value];
    } else {
      --top;
      stack[top - 1] = apply(s.kind, stack[top - 1], stack[top]);
    }
  }
  return top ? stack[0] : 1;
}

LaunchShape ShapeRule::operator()(const int64_t* sizes) const {
  const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t items = std::max<int64_t>(rows(sizes), 0);
  if (across == 0) {
    int64_t per_block = items_per_block;
    if (!short_rows.empty()) {
      const int64_t points = row(sizes);
      const auto fits =
          std::ranges::find_if(short_rows, [&](const ShortRows& s) { return points <= s.longest; });
      if (fits != short_rows.end()) per_block = fits->items_per_block;
    }
    return {static_cast<unsigned>(std::min(up(items, per_block), most_blocks)), threads, 0};
  }
  const int64_t width = std::max<int64_t>(columns(sizes), 0);
  int64_t blocks = items * up(width, across * lanes);
  if (blocks < enough_wide_blocks) blocks = items * up(width, across);
  return {static_cast<unsigned>(std::min(blocks, most_blocks)), threads, 0};
}

}  // namespace fl::codegen
