#include "flambeau/ops/prims/index_geometry.h"

#include <algorithm>

namespace fl {
namespace {

Sizes common_sizes(const std::vector<const Sizes*>& all) {
  Sizes out = *all[0];
  for (size_t k = 1; k < all.size(); ++k) {
    try {
      out = broadcast_sizes(out, *all[k]);
    } catch (const RuntimeError&) {
      std::string shapes;
      for (const Sizes* s : all) shapes += (shapes.empty() ? "" : ", ") + to_string(*s);
      FL_RAISE(IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
               shapes);
    }
  }
  return out;
}

/// The same for sizes that the shape rule has seen to fit, without a guard.
Sizes checked_sizes(const std::vector<const Sizes*>& all) {
  Sizes out;
  for (const Sizes* s : all) {
    if (s->size() > out.size()) out.insert(out.begin(), s->size() - out.size(), SymInt(1));
    for (size_t d = 0; d < s->size(); ++d) {
      SymInt& size = out[out.size() - s->size() + d];
      if (size.same_as(1)) size = (*s)[d];
    }
  }
  return out;
}

IndexPlan plan_of(std::vector<int> given, Sizes common) {
  IndexPlan p;
  p.sizes = std::move(common);
  const bool neighbours = given.back() - given.front() + 1 == static_cast<int>(given.size());
  p.start = neighbours ? given.front() : 0;
  p.given = std::move(given);
  return p;
}

/// Calls at(d) for each dimension that is not indexed, and inserted() where the positions go.
template <class At, class Inserted>
void in_order(const IndexPlan& p, int rank, At at, Inserted inserted) {
  int place = 0;
  for (int d = 0; d <= rank; ++d) {
    if (place == p.start) {
      inserted();
      place = -1;
    }
    if (d == rank || std::binary_search(p.given.begin(), p.given.end(), d)) continue;
    at(d);
    if (place >= 0) ++place;
  }
}

}  // namespace

Sizes IndexPlan::out_sizes(const Sizes& self) const {
  Sizes out;
  in_order(
      *this, static_cast<int>(self.size()), [&](int d) { out.push_back(self[d]); },
      [&] { out.insert(out.end(), sizes.begin(), sizes.end()); });
  return out;
}

Sizes IndexPlan::source_strides(const Sizes& self) const {
  Sizes out;
  in_order(
      *this, static_cast<int>(self.size()), [&](int d) { out.push_back(self[d]); },
      [&] { out.insert(out.end(), sizes.size(), SymInt(0)); });
  return out;
}

Sizes IndexPlan::index_strides(const TensorSpec& index, int out_rank) const {
  Sizes out(out_rank, SymInt(0));
  const int last = start + static_cast<int>(sizes.size()) - 1, rank = index.dim();
  for (int d = 0; d < rank; ++d)
    if (!index.sizes[rank - 1 - d].same_as(1)) out[last - d] = index.strides[rank - 1 - d];
  return out;
}

IndexPlan index_plan(const InferCtx& c) {
  const int rank = c.spec(0).dim(), count = c.list_size(1);
  FL_CHECK(count <= rank, IndexError, "too many indices for tensor of dimension {} (got {})", rank, count);
  std::vector<int> given;
  std::vector<const Sizes*> sizes;
  for (int k = 0; k < count; ++k) {
    if (!c.item_defined(1, k)) continue;
    FL_CHECK(c.spec(1, k).dtype == DType::Int64, IndexError,
             "tensors used as indices must be long, int, byte or bool tensors, got {}",
             name(c.spec(1, k).dtype));
    given.push_back(k);
    sizes.push_back(&c.spec(1, k).sizes);
  }
  FL_CHECK(!given.empty(), IndexError, "at least one index must be given");
  return plan_of(std::move(given), common_sizes(sizes));
}

IndexPlan index_plan(const LowerCtx& c) {
  std::vector<int> given;
  std::vector<const Sizes*> sizes;
  for (int k = 0; k < c.list_size(1); ++k) {
    if (!c.item_defined(1, k)) continue;
    given.push_back(k);
    sizes.push_back(&c.spec(1, k).sizes);
  }
  return plan_of(std::move(given), checked_sizes(sizes));
}

Val strict_index(BodyOps& s, Val index, const Expr& size) {
  const Val at = s.cast(index, DType::Int64), zero = s.constant(DType::Int64, 0);
  return s.select(s.lt(at, zero), s.sub(at, s.index(size)), at);
}

}  // namespace fl
