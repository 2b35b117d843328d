#include "flambeau/ops/prims/reduced_dims.h"

#include "flambeau/ops/functions.h"

namespace fl {
namespace {

/// One flag a dimension. PyTorch keeps them in a word, and refuses more.
std::vector<bool> flags(int rank, bool value = false) {
  FL_CHECK(rank <= 64, RuntimeError,
           "only tensors with up to 64 dims are supported by reductions, got one with {}", rank);
  return std::vector<bool>(rank, value);
}

}  // namespace

ReducedDims ReducedDims::of(const Value& dims, int rank, bool keepdim, bool empty_is_all) {
  if (dims.is_none() || (empty_is_all && dims.ints().empty())) return all(rank, keepdim);
  std::vector<bool> reduced = flags(rank);
  for (SymInt d : dims.ints()) {
    const int64_t at = wrap_dim(d.expect_int(), rank);
    if (rank == 0) continue;
    FL_CHECK(!reduced[at], RuntimeError, "dim {} appears multiple times in the list of dims", at);
    reduced[at] = true;
  }
  return {std::move(reduced), keepdim};
}
ReducedDims ReducedDims::one(int64_t dim, int rank, bool keepdim) {
  std::vector<bool> reduced = flags(rank);
  const int64_t at = wrap_dim(dim, rank);
  if (rank > 0) reduced[at] = true;
  return {std::move(reduced), keepdim};
}
ReducedDims ReducedDims::all(int rank, bool keepdim) { return {flags(rank, true), keepdim}; }

std::vector<int64_t> ReducedDims::list() const {
  std::vector<int64_t> out;
  for (int d = 0; d < rank(); ++d)
    if (reduced_[d]) out.push_back(d);
  return out;
}
Sizes ReducedDims::list_as_sizes() const {
  Sizes out;
  for (const int64_t d : list()) out.push_back(d);
  return out;
}

Sizes ReducedDims::out_sizes(IntList in) const {
  Sizes out;
  for (int d = 0; d < rank(); ++d) {
    if (!reduced_[d])
      out.push_back(in[d]);
    else if (keepdim_)
      out.push_back(1);
  }
  return out;
}

SymInt ReducedDims::count(IntList in) const {
  SymInt n = 1;
  for (int d = 0; d < rank(); ++d)
    if (reduced_[d]) n *= in[d];
  return n;
}

std::vector<Expr> ReducedDims::reduce_sizes(const std::vector<Expr>& in) const {
  std::vector<Expr> out;
  for (int d = 0; d < rank(); ++d)
    if (reduced_[d]) out.push_back(in[d]);
  return out;
}

Index ReducedDims::input_index(std::span<const Expr> i, std::span<const Expr> r) const {
  Index out;
  size_t at = 0, point = 0;
  for (int d = 0; d < rank(); ++d) {
    out.push_back(reduced_[d] ? r[point++] : i[at]);
    if (!reduced_[d] || keepdim_) ++at;
  }
  return out;
}

Tensor ReducedDims::with_kept_dims(const Tensor& out) const {
  if (keepdim_) return out;
  Tensor x = out;
  for (const int64_t d : list()) x = unsqueeze(x, d);
  return x;
}

TensorSpec reduced_spec(const TensorSpec& in, const ReducedDims& dims, DType dtype) {
  return make_spec(dims.out_sizes(in.sizes), dtype, in.device);
}

Lowered reduction_over(const LowerCtx& c, const ReducedDims& dims, ReduceOp op) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.reduce = op;
  l.sizes = c.out_sizes();
  l.reduce_sizes = dims.reduce_sizes(c.sizes(0));
  // One point even where no dimension goes, so that the results are those of the reduction.
  if (l.reduce_sizes.empty()) l.reduce_sizes = {Expr(1)};
  return l;
}

Val converted(ScalarOps& s, Val x, DType dtype) {
  if (is_complex(x.dtype) && !is_complex(dtype)) x = s.real(x);
  return s.cast(x, dtype);
}

}  // namespace fl
