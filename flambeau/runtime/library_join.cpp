// Many tensors one after the other along a dimension: a copy of each into its part of the result.
#include <algorithm>

#include "flambeau/base/parallel.h"
#include "flambeau/runtime/join_pieces.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime {
namespace {

constexpr int64_t kGrainElements = 1 << 15;

struct Join {
  struct Piece {
    int operand;
    int64_t offset;  // of its part of the result, in bytes
    StridedCopy copy;
  };
  std::vector<Piece> pieces;
  int64_t grain = 1;  // pieces of one thread

  void run(void* const* operands, void* result) const {
    const auto count = static_cast<int64_t>(pieces.size());
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k)
        pieces[k].copy.run(static_cast<char*>(result) + pieces[k].offset, operands[pieces[k].operand]);
    });
  }
};

}  // namespace

std::vector<JoinPiece> join_pieces(const CallArguments& call) {
  const OperandLayout& out = call.result(0);
  const size_t rank = out.sizes.size();
  const auto dim = static_cast<size_t>(wrap_dim(call.integer("dim", 0), static_cast<int64_t>(rank)));
  std::vector<JoinPiece> pieces;
  int64_t start = 0;
  for (GraphRef r : call.find("tensors")->graph_refs()) {
    const OperandLayout& in = call.operands[r.node];
    // A vector of size 0 goes with tensors of every rank.
    if (in.sizes == std::vector<int64_t>{0}) continue;
    FL_CHECK(in.dtype == out.dtype && in.sizes.size() == rank, RuntimeError,
             "{} expects tensors of the result's dtype and rank, got {} [{}] for {} [{}]", call.op.name(),
             name(in.dtype), fmt::join(in.sizes, ", "), name(out.dtype), fmt::join(out.sizes, ", "));
    pieces.push_back(
        {r.node, start * out.strides[dim] * size_of(out.dtype), {out.dtype, in.sizes, out.strides}, in});
    start += in.sizes[dim];
  }
  FL_CHECK(start == out.sizes[dim] || pieces.empty(), RuntimeError,
           "{}: parts of {} elements along dimension {} in place of {}", call.op.name(), start, dim,
           out.sizes[dim]);
  return pieces;
}

PreparedCall prepare_join(const CallArguments& call) {
  auto join = std::make_shared<Join>();
  int64_t elements = 0;
  for (const JoinPiece& p : join_pieces(call)) {
    join->pieces.push_back({p.operand, p.offset,
                            StridedCopy(p.to.sizes, p.to.dtype, p.to.strides, p.from.dtype, p.from.strides)});
    elements += element_count(p.to.sizes);
  }
  const int64_t mean = elements / std::max<int64_t>(static_cast<int64_t>(join->pieces.size()), 1);
  join->grain = std::max<int64_t>(kGrainElements / std::max<int64_t>(mean, 1), 1);
  return [join](void* const* operands, void* const* results) { join->run(operands, results[0]); };
}

}  // namespace fl::runtime
