// Positions of nonzero elements: counted in pieces, then written at each piece's place.
#include "flambeau/base/parallel.h"
#include "flambeau/runtime/library_calls.h"
#include "flambeau/tensor/element.h"

namespace fl::runtime {
namespace {

constexpr int64_t kPiece = 1 << 14;

template <class T>
bool is_nonzero(T value) {
  return convert_element<bool>(value);
}

/// Elements of a tensor in row-major order.
template <class T>
struct Walk {
  const T* data;
  std::vector<int64_t> sizes, strides;
  int64_t count = 1;

  explicit Walk(const Tensor& t) : data(t.numel() == 0 ? nullptr : t.data_as<const T>()) {
    for (int i = 0; i < t.dim(); ++i) {
      sizes.push_back(t.sizes()[i].expect_int());
      strides.push_back(t.strides()[i].expect_int());
      count *= sizes.back();
    }
  }
  /// Calls f(index) for the nonzero elements numbered [begin, end).
  template <class F>
  void for_each_nonzero(int64_t begin, int64_t end, const F& f) const {
    std::vector<int64_t> index(sizes.size());
    int64_t rest = begin, at = 0;
    for (size_t i = sizes.size(); i-- > 0; rest /= sizes[i]) {
      index[i] = rest % sizes[i];
      at += index[i] * strides[i];
    }
    for (int64_t n = begin; n < end; ++n) {
      if (is_nonzero(data[at])) f(index);
      for (size_t i = sizes.size(); i-- > 0;) {
        at += strides[i];
        if (++index[i] < sizes[i]) break;
        at -= strides[i] * sizes[i];
        index[i] = 0;
      }
    }
  }
};

template <class T>
Tensor positions(const Tensor& t) {
  const Walk<T> walk(t);
  const int64_t pieces = (walk.count + kPiece - 1) / kPiece;
  std::vector<int64_t> starts(pieces + 1, 0);
  const auto in_pieces = [&](auto&& f) {
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        walk.for_each_nonzero(p * kPiece, std::min(walk.count, (p + 1) * kPiece),
                              [&](const std::vector<int64_t>& index) { f(p, index); });
    });
  };
  in_pieces([&](int64_t piece, const std::vector<int64_t>&) { ++starts[piece + 1]; });
  for (int64_t p = 0; p < pieces; ++p) starts[p + 1] += starts[p];

  // One dimension's positions after another's in memory, as PyTorch lays them out.
  const int64_t found = starts[pieces], rank = static_cast<int64_t>(walk.sizes.size());
  TensorSpec spec;
  spec.sizes = {found, rank};
  spec.strides = {1, found};
  spec.dtype = DType::Int64;
  const Tensor result = empty_strided_tensor(spec);
  if (found == 0 || rank == 0) return result;
  int64_t* const out = result.data_as<int64_t>();
  in_pieces([&](int64_t piece, const std::vector<int64_t>& index) {
    const int64_t row = starts[piece]++;
    for (int64_t i = 0; i < rank; ++i) out[i * found + row] = index[i];
  });
  return result;
}

}  // namespace

Tensor nonzero_positions(const Tensor& t) {
  return visit_dtype(t.dtype(), [&]<class T>(T*) { return positions<T>(t); });
}

}  // namespace fl::runtime
