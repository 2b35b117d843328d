// Putting a node's loops onto a group's.
#include <algorithm>

#include "flambeau/loop/fuse.h"

namespace fl::loop {
namespace {

struct Loop {
  Expr variable, size;
};

// Expresses each dimension of `dims` over `loops`, which run over the same elements in the same order;
// dimensions may be products of loops and loops products of dimensions.
std::optional<Index> align(const std::vector<Expr>& dims, const std::vector<Loop>& all) {
  std::vector<Loop> loops;
  for (const Loop& l : all)
    if (!l.size.is_const(1)) loops.push_back(l);
  Index out(dims.size(), Expr(0));
  const bool empty = std::any_of(dims.begin(), dims.end(), [](const Expr& e) { return e.is_const(0); });
  const bool never =
      std::any_of(loops.begin(), loops.end(), [](const Loop& l) { return l.size.is_const(0); });
  if (empty && never) return out;  // no point, so any index
  size_t at = 0;
  for (size_t d = 0; d < dims.size();) {
    if (dims[d].is_const(1)) {
      ++d;
      continue;
    }
    if (at == loops.size()) return std::nullopt;
    if (dims[d] == loops[at].size) {
      out[d++] = loops[at++].variable;
      continue;
    }
    // A dimension made of several loops.
    Expr size = loops[at].size, flat = loops[at].variable;
    size_t end = at + 1;
    while (end < loops.size() && !(size == dims[d])) {
      size *= loops[end].size;
      flat = flat * loops[end].size + loops[end].variable;
      ++end;
    }
    if (size == dims[d]) {
      out[d++] = flat;
      at = end;
      continue;
    }
    // A loop made of several dimensions.
    size = dims[d];
    size_t last = d + 1;
    while (last < dims.size() && !(size == loops[at].size)) size *= dims[last++];
    if (!(size == loops[at].size)) return std::nullopt;
    Expr rest = loops[at].variable;
    for (size_t k = last; k-- > d;) {
      out[k] = k == d ? rest : sym::mod(rest, dims[k]);
      rest = sym::floordiv(rest, dims[k]);
    }
    d = last;
    ++at;
  }
  if (at != loops.size()) return std::nullopt;
  return out;
}

std::vector<Loop> loops_of(char letter, const std::vector<Expr>& sizes) {
  std::vector<Loop> out;
  for (size_t k = 0; k < sizes.size(); ++k)
    out.push_back({loop_variable(letter, static_cast<int>(k)), sizes[k]});
  return out;
}

}  // namespace

std::vector<Range> group_ranges(char letter, const std::vector<Expr>& sizes) {
  std::vector<Range> out;
  for (size_t k = 0; k < sizes.size(); ++k)
    if (!sizes[k].is_const(1)) out.push_back({loop_variable(letter, static_cast<int>(k)), sizes[k]});
  return out;
}

std::optional<Placement> place_node(const LoopNode& n, const std::vector<Expr>& outer,
                                    const std::vector<Expr>& inner) {
  const std::vector<Loop> p = loops_of('p', outer), q = loops_of('q', inner);
  if (!n.reduce.empty()) {
    auto i = align(n.sizes, p), r = align(n.reduce, q);
    if (!i || !r) return std::nullopt;
    return Placement{*i, *r, true};
  }
  std::vector<Loop> all = p;
  all.insert(all.end(), q.begin(), q.end());
  if (auto i = align(n.sizes, all)) return Placement{*i, {}, true};
  if (inner.empty()) return std::nullopt;
  if (auto i = align(n.sizes, p)) return Placement{*i, {}, false};
  return std::nullopt;
}

}  // namespace fl::loop
