// Strided operands, hand-made operators and comparison for tests of library calls.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "flambeau/runtime/call_arguments.h"
#include "flambeau/tensor/element.h"

namespace fl::runtime::test {

/// Calls f(index) for every index tuple below sizes.
template <class F>
void for_each_index(const std::vector<int64_t>& sizes, const F& f) {
  std::vector<int64_t> index(sizes.size(), 0);
  for (const int64_t size : sizes)
    if (size == 0) return;
  while (true) {
    f(index);
    size_t i = sizes.size();
    while (i > 0 && ++index[i - 1] == sizes[i - 1]) index[--i] = 0;
    if (i == 0) return;
  }
}

/// Row-major strides with the dimensions in another order (the last named is dense), times `step`.
inline std::vector<int64_t> strides_in_order(const std::vector<int64_t>& sizes, const std::vector<int>& order,
                                             int64_t step = 1) {
  std::vector<int64_t> strides(sizes.size());
  for (size_t i = order.size(); i-- > 0; step *= std::max<int64_t>(1, sizes[order[i]]))
    strides[order[i]] = step;
  return strides;
}
inline std::vector<int64_t> contiguous(const std::vector<int64_t>& sizes, int64_t step = 1) {
  std::vector<int> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  return strides_in_order(sizes, order, step);
}
inline std::vector<int64_t> channels_last(const std::vector<int64_t>& sizes) {
  std::vector<int> order = {0};
  for (size_t i = 2; i < sizes.size(); ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  return strides_in_order(sizes, order);
}

/// Memory of one operand; elements between those of the layout hold a pattern that must survive.
class Operand {
 public:
  Operand(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides)
      : layout_{dtype, std::move(sizes), std::move(strides)} {
    int64_t last = 0, count = 1;
    for (size_t i = 0; i < layout_.sizes.size(); ++i) {
      last += (layout_.sizes[i] - 1) * layout_.strides[i];
      count *= layout_.sizes[i];
    }
    bytes_.assign(count == 0 ? 0 : (last + 1) * size_of(dtype), char{0x55});
  }
  Operand(DType dtype, std::vector<int64_t> sizes) : Operand(dtype, sizes, contiguous(sizes)) {}

  /// Small random multiples of 1/4 (integers for integral dtypes): short sums of products are exact.
  Operand& fill(uint32_t seed) {
    std::mt19937 random(seed);
    for_each_index(layout_.sizes, [&](const auto& i) {
      const int value = static_cast<int>(random() % 17) - (layout_.dtype == DType::UInt8 ? 0 : 8);
      if (is_floating(layout_.dtype) || is_complex(layout_.dtype))
        set(i, value / 4.0);
      else
        set(i, value);
    });
    return *this;
  }
  const OperandLayout& layout() const { return layout_; }
  const std::vector<int64_t>& sizes() const { return layout_.sizes; }
  void* data() { return bytes_.data(); }
  const std::vector<char>& bytes() const { return bytes_; }
  double get(const std::vector<int64_t>& index) const {
    return load_scalar(bytes_.data() + at(index) * size_of(layout_.dtype), layout_.dtype).to_double();
  }
  void set(const std::vector<int64_t>& index, double value) {
    store_scalar(bytes_.data() + at(index) * size_of(layout_.dtype), layout_.dtype, Scalar(value));
  }

 private:
  int64_t at(const std::vector<int64_t>& index) const {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * layout_.strides[i];
    return offset;
  }
  OperandLayout layout_;
  std::vector<char> bytes_;
};

inline OpInfo operator_of(std::string_view schema, LibraryCall call) {
  OpInfo op;
  op.schema = parse_schema(schema);
  op.library = call;
  return op;
}

/// Prepares and runs the call; tensors of args are GraphRef{k, 0} with k a position in operands.
inline void run(const OpInfo& op, const std::vector<Value>& args, std::vector<Operand*> operands,
                std::vector<Operand*> results) {
  std::vector<OperandLayout> in, out;
  std::vector<void*> in_data, out_data;
  for (Operand* o : operands) {
    in.push_back(o->layout());
    in_data.push_back(o->data());
  }
  for (Operand* o : results) {
    out.push_back(o->layout());
    out_data.push_back(o->data());
  }
  prepare_library_call({op, args, in, out})(in_data.data(), out_data.data());
}

/// One rounding to the dtype, and a little of float32's.
inline bool close(DType dtype, double actual, double expected) {
  const double unit = dtype == DType::BFloat16  ? 1.0 / 256
                      : dtype == DType::Float16 ? 1.0 / 2048
                      : is_floating(dtype)      ? 1e-6
                                                : 0;
  return std::abs(actual - expected) <= unit * (std::abs(expected) + 1);
}

}  // namespace fl::runtime::test
