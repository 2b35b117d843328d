#include "flambeau/ops/prims/view_geometry.h"

#include <algorithm>
#include <numeric>

#include "flambeau/ops/functions.h"

namespace fl {

int64_t dimension(const Value& value, int rank) { return wrap_dim(value.to_int(), rank); }

std::vector<int64_t> dimensions(IntList dims, int rank) {
  std::vector<int64_t> out;
  for (SymInt d : dims) {
    const int64_t w = wrap_dim(d.expect_int(), rank);
    FL_CHECK(std::find(out.begin(), out.end(), w) == out.end(), RuntimeError,
             "dim {} appears multiple times in the list of dims {}", w, to_string(dims));
    out.push_back(w);
  }
  return out;
}

Sizes resolve_sizes(IntList sizes, SymInt numel) {
  Sizes out(sizes.begin(), sizes.end());
  int unknown = -1;
  SymInt known = 1;
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] < SymInt(0)) out[d] = out[d].guard_int();
    if (out[d].same_as(-1)) {
      FL_CHECK(unknown < 0, RuntimeError, "only one dimension can be inferred, got shape {}",
               to_string(sizes));
      unknown = static_cast<int>(d);
    } else {
      FL_CHECK(out[d] >= SymInt(0), RuntimeError, "invalid shape dimension {}", out[d]);
      known *= out[d];
    }
  }
  if (unknown < 0) {
    FL_CHECK(known_equal(known, numel) || known == numel, RuntimeError,
             "shape '{}' is invalid for input of size {}", to_string(sizes), numel);
    return out;
  }
  FL_CHECK(
      known != SymInt(0), RuntimeError,
      "cannot reshape tensor of {} elements into shape {} because the unspecified dimension size -1 can be "
      "any value and is ambiguous",
      numel, to_string(sizes));
  const auto quotient = numel.is_symbolic() || known.is_symbolic()
                            ? sym::exact_divide(numel.expr(), known.expr())
                            : std::nullopt;
  if (quotient) {
    out[unknown] = SymInt(*quotient);
    return out;
  }
  FL_CHECK(numel % known == SymInt(0), RuntimeError, "shape '{}' is invalid for input of size {}",
           to_string(sizes), numel);
  out[unknown] = numel / known;
  return out;
}

std::optional<Sizes> view_strides(const TensorSpec& from, IntList sizes) {
  const Sizes& old_sizes = from.sizes;
  const Sizes& old_strides = from.strides;
  const int rank = static_cast<int>(sizes.size());
  if (from.dim() == 0 || is_contiguous(from)) return contiguous_strides(sizes);
  const SymInt numel = from.numel();
  if (numel == SymInt(0)) {
    const bool same = std::equal(old_sizes.begin(), old_sizes.end(), sizes.begin(), sizes.end(),
                                 [](SymInt a, SymInt b) { return a == b; });
    return same ? old_strides : contiguous_strides(sizes);
  }
  Sizes out(rank);
  int d = rank - 1;
  // Each run of the old dimensions that is evenly spaced in memory has to be covered by new dimensions.
  SymInt spacing = old_strides.back(), run = 1, covered = 1;
  for (int o = from.dim() - 1; o >= 0; --o) {
    run *= old_sizes[o];
    const bool ends = o == 0 || (old_sizes[o - 1] != SymInt(1) && old_strides[o - 1] != run * spacing);
    if (!ends) continue;
    while (d >= 0 && (covered < run || sizes[d] == SymInt(1))) {
      out[d] = covered * spacing;
      covered *= sizes[d];
      --d;
    }
    if (covered != run) return std::nullopt;
    if (o > 0) {
      spacing = old_strides[o - 1];
      run = covered = 1;
    }
  }
  if (d >= 0) return std::nullopt;
  return out;
}

Tensor laid_out(const Tensor& x, const TensorSpec& like) {
  const auto same = [](SymInt a, SymInt b) { return a.same_as(b); };
  if (std::equal(x.strides().begin(), x.strides().end(), like.strides.begin(), like.strides.end(), same))
    return x;
  std::vector<int> order(like.dim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return like.strides[a] > like.strides[b]; });
  Sizes forth, back(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    forth.push_back(order[k]);
    back[order[k]] = static_cast<int64_t>(k);
  }
  return permute(contiguous(permute(x, forth)), back);
}

namespace {

struct Dim {
  Expr size;
  size_t at;
};
std::vector<Dim> without_ones(std::span<const Expr> sizes) {
  std::vector<Dim> out;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].is_const(1)) out.push_back({sizes[d], d});
  return out;
}

}  // namespace

Index reshape_index(std::span<const Expr> index, std::span<const Expr> from, std::span<const Expr> to) {
  Index out(to.size(), Expr(0));
  for (const auto& sizes : {from, to})
    for (const Expr& e : sizes)
      if (e.is_const(0)) return out;
  const std::vector<Dim> a = without_ones(from), b = without_ones(to);
  // Runs of dimensions of equal product map onto each other; within a run the position is taken apart again.
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const size_t first = j;
    Expr position(0), left(1), right(1);
    const auto take_left = [&] {
      position = position * a[i].size + index[a[i].at];
      left = left * a[i++].size;
    };
    if (i < a.size()) take_left();
    if (j < b.size()) right = b[j++].size;
    while (!(left == right) && (i < a.size() || j < b.size())) {
      const bool grow_left = j == b.size() || (i < a.size() && sym::exact_divide(right, left).has_value());
      if (grow_left)
        take_left();
      else
        right = right * b[j++].size;
    }
    Expr rest = position;
    for (size_t k = j; k-- > first + 1;) {
      out[b[k].at] = sym::mod(rest, b[k].size);
      rest = sym::floordiv(rest, b[k].size);
    }
    if (j > first) out[b[first].at] = rest;
  }
  return out;
}

Index index_at(const Expr& position, const TensorSpec& dense) {
  FL_CHECK(is_non_overlapping_and_dense(dense), NotImplementedError,
           "as_strided of a tensor with gaps or shared elements in memory (sizes {}, strides {}) is not "
           "supported in a "
           "graph; call contiguous() first",
           to_string(dense.sizes), to_string(dense.strides));
  std::vector<int> order;
  for (int d = 0; d < dense.dim(); ++d)
    if (!dense.sizes[d].same_as(1)) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return dense.strides[a] > dense.strides[b]; });
  Index out(dense.dim(), Expr(0));
  Expr rest = position - dense.offset.expr();
  for (size_t k = order.size(); k-- > 1;) {
    const Expr size = dense.sizes[order[k]].expr();
    out[order[k]] = sym::mod(rest, size);
    rest = sym::floordiv(rest, size);
  }
  if (!order.empty()) out[order[0]] = rest;
  return out;
}

SliceRange slice_range(SymInt size, const Value& start, const Value& end, const Value& step_value) {
  const SymInt step = step_value.sym_int();
  FL_CHECK(step > SymInt(0), RuntimeError, "slice step must be positive, got {}", step);
  const auto clamped = [&](const Value& v, SymInt missing) {
    if (v.is_none()) return missing;
    SymInt x = v.sym_int();
    // Slices to the end are written with the largest integer.
    if (!x.is_symbolic() && x >= SymInt(INT64_MAX / 2)) return size;
    if (x.same_as(size)) return size;
    if (x < SymInt(0)) x += size;
    if (x < SymInt(0)) return SymInt(0);
    return x > size ? size : x;
  };
  const SymInt first = clamped(start, 0);
  SymInt last = clamped(end, size);
  if (last < first) last = first;
  return {first, step, step.same_as(1) ? last - first : (last - first + step - SymInt(1)) / step};
}

Expr slice_start(const Expr& size, const Value& start) {
  if (start.is_none()) return Expr(0);
  const Expr x = start.sym_int().expr();
  if (x == size) return size;
  if (x.is_const() && x.value() < 0) return sym::max(x + size, Expr(0));
  if (x.is_const()) return x.value() == 0 ? x : sym::min(x, size);
  return wrap_index(x, size);
}

Expr wrap_index(const Expr& index, const Expr& size) {
  if (index.is_const()) return index.value() < 0 ? index + size : index;
  return sym::known_nonnegative(index) ? index : sym::mod(index, size);
}

Geometry strided_geometry(const TensorSpec& self, const Value& size, const Value& stride,
                          const Value& offset) {
  Geometry g;
  for (SymInt s : size.ints()) g.size.push_back(s);
  for (SymInt s : stride.ints()) g.stride.push_back(s);
  FL_CHECK(g.size.size() == g.stride.size(), RuntimeError,
           "mismatch in length of strides and shape: {} and {}", to_string(g.size), to_string(g.stride));
  for (SymInt s : g.size)
    FL_CHECK(s.is_symbolic() || s.raw() >= 0, RuntimeError, "as_strided: negative size in {}",
             to_string(g.size));
  for (SymInt s : g.stride) {
    FL_CHECK(s >= SymInt(0), RuntimeError,
             "as_strided: Negative strides are not supported at the moment, got strides: {}",
             to_string(g.stride));
  }
  g.offset = offset.is_none() ? self.offset : offset.sym_int();
  return g;
}

Lowered view_of(const LowerCtx& c, std::function<Index(std::span<const Expr>)> map) {
  Lowered l;
  l.kind = Lowered::Kind::View;
  l.sizes = c.out_sizes();
  l.map = std::move(map);
  return l;
}

std::optional<SymInt> optional_int(const Value& v) {
  return v.is_none() ? std::nullopt : std::optional<SymInt>(v.sym_int());
}

std::pair<int64_t, int64_t> diagonal_dims(const Value& dim1, const Value& dim2, int rank) {
  const int64_t a = dimension(dim1, rank), b = dimension(dim2, rank);
  FL_CHECK(a != b, RuntimeError, "diagonal dimensions cannot be identical {}, {}", dim1.to_int(),
           dim2.to_int());
  return {a, b};
}

}  // namespace fl
