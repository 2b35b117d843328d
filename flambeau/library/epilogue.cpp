#include "flambeau/library/epilogue.h"

#include <bit>
#include <cstring>

#include "flambeau/base/error.h"
#include "flambeau/base/parallel.h"

namespace fl::library {
namespace {

constexpr int64_t kGrainElements = 1 << 15;

struct BFloat16 {
  uint16_t bits;
};
using Float16 = _Float16;

float widen(float x) { return x; }
double widen(double x) { return x; }
float widen(Float16 x) { return static_cast<float>(x); }
float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

template <class T, class Wide>
T narrow(Wide x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};  // to nearest, ties to even
  } else {
    return static_cast<T>(x);
  }
}

/// Calls body(offset in the box, offset in the other operand) for every row of the innermost dimension.
template <class Body>
void for_each_row(const Box& box, const std::array<int64_t, 4>& other, const Body& body) {
  const std::array<int64_t, 4>& n = box.sizes;
  const int64_t rows = n[0] * n[1] * n[2];
  if (rows == 0 || n[3] == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / n[3]);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t i2 = row % n[2], i1 = row / n[2] % n[1], i0 = row / n[2] / n[1];
      body(i0 * box.strides[0] + i1 * box.strides[1] + i2 * box.strides[2],
           i0 * other[0] + i1 * other[1] + i2 * other[2]);
    }
  });
}

template <class F>
void with_type(ScalarKind dtype, const F& f) {
  switch (dtype) {
    case ScalarKind::F32:
      return f(float{});
    case ScalarKind::BF16:
      return f(BFloat16{});
    case ScalarKind::F16:
      return f(Float16{});
    case ScalarKind::F64:
      return f(double{});
  }
}

}  // namespace

void copy_box(ScalarKind dtype, const Box& to, void* to_data, const std::array<int64_t, 4>& from_strides,
              const void* from_data) {
  if (to_data == from_data && to.strides == from_strides) return;
  with_type(dtype, [&]<class T>(T) {
    const int64_t count = to.sizes[3], to_step = to.strides[3], from_step = from_strides[3];
    for_each_row(to, from_strides, [&](int64_t to_offset, int64_t from_offset) {
      T* out = static_cast<T*>(to_data) + to_offset;
      const T* in = static_cast<const T*>(from_data) + from_offset;
      if (to_step == 1 && from_step == 1) {
        std::memcpy(out, in, count * sizeof(T));
      } else {
        for (int64_t i = 0; i < count; ++i) out[i * to_step] = in[i * from_step];
      }
    });
  });
}

void relu_box(ScalarKind dtype, const Box& box, void* data) {
  with_type(dtype, [&]<class T>(T) {
    const int64_t count = box.sizes[3], step = box.strides[3];
    for_each_row(box, {}, [&](int64_t offset, int64_t) {
      T* x = static_cast<T*>(data) + offset;
      auto relu = [](T v) { return widen(v) < 0 ? narrow<T>(decltype(widen(v))(0)) : v; };
      if (step == 1) {
        for (int64_t i = 0; i < count; ++i) x[i] = relu(x[i]);
      } else {
        for (int64_t i = 0; i < count; ++i) x[i * step] = relu(x[i * step]);
      }
    });
  });
}

void scale_add_box(ScalarKind dtype, const Box& box, void* data, float factor,
                   const std::array<int64_t, 4>& addend_strides, const void* addend) {
  with_type(dtype, [&]<class T>(T) {
    using Wide = decltype(widen(T{}));
    const int64_t count = box.sizes[3], step = box.strides[3], addend_step = addend_strides[3];
    for_each_row(box, addend_strides, [&](int64_t offset, int64_t addend_offset) {
      T* x = static_cast<T*>(data) + offset;
      const T* y = addend ? static_cast<const T*>(addend) + addend_offset : nullptr;
      for (int64_t i = 0; i < count; ++i) {
        Wide sum = factor == 0 ? Wide(0) : widen(x[i * step]) * Wide(factor);
        if (y) sum = factor == 0 ? widen(y[i * addend_step]) : sum + widen(y[i * addend_step]);
        x[i * step] = narrow<T>(sum);
      }
    });
  });
}

}  // namespace fl::library
