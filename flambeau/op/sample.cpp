#include "flambeau/op/sample.h"

#include <cmath>
#include <cstring>

namespace fl {
namespace {

void store(void* base, int64_t i, DType dtype, double v) {
  switch (dtype) {
    case DType::Bool:
      static_cast<uint8_t*>(base)[i] = v != 0;
      return;
    case DType::UInt8:
      static_cast<uint8_t*>(base)[i] = static_cast<uint8_t>(static_cast<int64_t>(v));
      return;
    case DType::Int8:
      static_cast<int8_t*>(base)[i] = static_cast<int8_t>(v);
      return;
    case DType::Int16:
      static_cast<int16_t*>(base)[i] = static_cast<int16_t>(v);
      return;
    case DType::Int32:
      static_cast<int32_t*>(base)[i] = static_cast<int32_t>(v);
      return;
    case DType::Int64:
      static_cast<int64_t*>(base)[i] = static_cast<int64_t>(v);
      return;
    case DType::Float16:
      static_cast<Half*>(base)[i] = to_half(static_cast<float>(v));
      return;
    case DType::BFloat16:
      static_cast<BFloat16*>(base)[i] = to_bfloat16(static_cast<float>(v));
      return;
    case DType::Float32:
      static_cast<float*>(base)[i] = static_cast<float>(v);
      return;
    case DType::Float64:
      static_cast<double*>(base)[i] = v;
      return;
    default:
      return;
  }
}

}  // namespace

Tensor SampleMaker::make(IntList sizes, double low, double high) { return make(sizes, dtype_, low, high); }

Tensor SampleMaker::make(IntList sizes, DType dtype, double low, double high) {
  Tensor t = empty_tensor(sizes, dtype);
  const int64_t n = t.numel().expect_int();
  std::uniform_real_distribution<double> uniform(low, high);
  if (is_complex(dtype)) {
    for (int64_t i = 0; i < 2 * n; ++i) store(t.data(), i, real_dtype(dtype), uniform(random_));
  } else if (dtype == DType::Bool) {
    for (int64_t i = 0; i < n; ++i) store(t.data(), i, dtype, static_cast<double>(random_() & 1));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      double v = uniform(random_);
      if (is_integral(dtype)) v = std::floor(dtype == DType::UInt8 ? std::abs(v) : v);
      store(t.data(), i, dtype, v);
    }
  }
  return t;
}

Tensor SampleMaker::make_strided(IntList sizes, double low, double high) {
  if (sizes.empty()) return make(sizes, low, high);
  Sizes wide(sizes.begin(), sizes.end());
  wide.back() *= 2;
  Tensor t = make(wide, low, high);
  TensorSpec s = t.spec();
  s.sizes = Sizes(sizes.begin(), sizes.end());
  s.strides.back() = 2;
  return Tensor(s, t.storage());
}

Tensor SampleMaker::make_transposed(IntList sizes, double low, double high) {
  if (sizes.size() < 2) return make(sizes, low, high);
  Sizes swapped(sizes.begin(), sizes.end());
  const size_t n = swapped.size();
  std::swap(swapped[n - 1], swapped[n - 2]);
  Tensor t = make(swapped, low, high);
  TensorSpec s = t.spec();
  std::swap(s.sizes[n - 1], s.sizes[n - 2]);
  std::swap(s.strides[n - 1], s.strides[n - 2]);
  return Tensor(s, t.storage());
}

Tensor SampleMaker::make_index(IntList sizes, int64_t low, int64_t high) {
  Tensor t = empty_tensor(sizes, DType::Int64);
  const int64_t n = t.numel().expect_int();
  std::uniform_int_distribution<int64_t> uniform(low, high - 1);
  for (int64_t i = 0; i < n; ++i) t.data_as<int64_t>()[i] = uniform(random_);
  return t;
}

}  // namespace fl
