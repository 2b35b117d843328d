// Sizes and strides: nothing here touches elements, and symbolic sizes are compared as late as possible.
#include <algorithm>
#include <array>
#include <span>

#include "flambeau/tensor/tensor.h"

namespace fl {

namespace {

// Dimensions of 3, 4 and 5 from the fastest to the slowest.
constexpr std::array<int, 3> kChannelsLast1d{1, 2, 0};
constexpr std::array<int, 4> kChannelsLast{1, 3, 2, 0};
constexpr std::array<int, 5> kChannelsLast3d{1, 4, 3, 2, 0};

/// Size 1 and 0 hold no symbols, so that this decides nearly always without a guard.
bool is_one(SymInt size) { return size.same_as(1) || (size.is_symbolic() && size == SymInt(1)); }

/// Whether a dimension continues a dense run of `expected` elements. What is known comes first: a guard only
/// if needed.
bool continues(SymInt size, SymInt stride, SymInt expected) {
  return stride.same_as(expected) || is_one(size) || stride == expected;
}

bool dense_in_order(const TensorSpec& s, std::span<const int> order) {
  SymInt expected = 1;
  for (const int d : order) {
    if (!continues(s.sizes[d], s.strides[d], expected)) return false;
    expected *= s.sizes[d];
  }
  return true;
}

bool is_empty(const TensorSpec& s) {
  return std::any_of(s.sizes.begin(), s.sizes.end(), [](SymInt size) { return size == SymInt(0); });
}

bool is_row_major(const TensorSpec& s) {
  SymInt expected = 1;
  bool dense = true;
  for (int d = s.dim() - 1; d >= 0 && dense; --d) {
    dense = continues(s.sizes[d], s.strides[d], expected);
    expected *= s.sizes[d];
  }
  return dense || is_empty(s);
}

Sizes strides_in_order(IntList sizes, std::span<const int> order) {
  Sizes strides(sizes.size());
  SymInt run = 1;
  for (const int d : order) {
    strides[d] = run;
    run *= sizes[d];  // A size of 0 makes the strides after it 0, as in PyTorch.
  }
  return strides;
}
Sizes strides_in_order(IntList sizes, std::span<const int> order, MemoryFormat format) {
  FL_CHECK(sizes.size() == order.size(), RuntimeError,
           "required rank {} tensor to use {} format, got sizes {}", order.size(), name(format),
           to_string(sizes));
  return strides_in_order(sizes, order);
}

}  // namespace

SymInt product(IntList sizes) {
  SymInt n = 1;
  bool overflow = false;
  for (const SymInt size : sizes) {
    if (size.same_as(0)) return 0;
    int64_t r;
    if (overflow ||
        (!n.is_symbolic() && !size.is_symbolic() && __builtin_mul_overflow(n.raw(), size.raw(), &r))) {
      overflow = true;  // Unless a later size is 0.
      continue;
    }
    n *= size;
  }
  FL_CHECK(!overflow, RuntimeError, "the number of elements of sizes {} does not fit in 63 bits",
           to_string(sizes));
  return n;
}

SymInt TensorSpec::numel() const { return product(sizes); }

SymInt TensorSpec::storage_bytes() const {
  SymInt last = offset;
  for (int d = 0; d < dim(); ++d) {
    if (sizes[d].same_as(0)) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return (last + 1) * SymInt(size_of(dtype));
}

Sizes contiguous_strides(IntList sizes) {
  Sizes strides(sizes.size(), SymInt(1));
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * max(sizes[d], 1);
  return strides;
}

Sizes strides_for(IntList sizes, MemoryFormat f) {
  switch (f) {
    case MemoryFormat::Contiguous:
      return contiguous_strides(sizes);
    case MemoryFormat::ChannelsLast:
      return strides_in_order(sizes, kChannelsLast, f);
    case MemoryFormat::ChannelsLast3d:
      return strides_in_order(sizes, kChannelsLast3d, f);
    case MemoryFormat::Preserve:
      break;
  }
  FL_RAISE(RuntimeError,
           "preserve_format needs a tensor whose strides are to be kept; sizes alone have none");
}

Sizes channels_last_strides(IntList sizes) {
  FL_ASSERT(sizes.size() >= 3 && sizes.size() <= 5, "an image of sizes {}", to_string(sizes));
  return strides_in_order(sizes, sizes.size() == 3   ? std::span<const int>(kChannelsLast1d)
                                 : sizes.size() == 4 ? std::span<const int>(kChannelsLast)
                                                     : std::span<const int>(kChannelsLast3d));
}

bool is_contiguous(const TensorSpec& s, MemoryFormat f) {
  switch (f) {
    case MemoryFormat::Contiguous:
      return is_row_major(s);
    case MemoryFormat::ChannelsLast:
      return s.dim() == 4 && dense_in_order(s, kChannelsLast);
    case MemoryFormat::ChannelsLast3d:
      return s.dim() == 5 && dense_in_order(s, kChannelsLast3d);
    case MemoryFormat::Preserve:
      break;
  }
  FL_RAISE(RuntimeError, "preserve_format memory format is unsupported by the contiguity query");
}

bool is_non_overlapping_and_dense(const TensorSpec& s) {
  if (is_empty(s)) return true;
  SmallVector<int, 8> open;
  for (int d = s.dim() - 1; d >= 0; --d)
    if (!is_one(s.sizes[d])) open.push_back(d);
  // The dimension that continues the run is found by its stride; two that could would overlap.
  SymInt expected = 1;
  while (!open.empty()) {
    auto next =
        std::find_if(open.begin(), open.end(), [&](int d) { return known_equal(s.strides[d], expected); });
    if (next == open.end())
      next = std::find_if(open.begin(), open.end(), [&](int d) { return s.strides[d] == expected; });
    if (next == open.end()) return false;
    expected *= s.sizes[*next];
    open.erase(next);
  }
  return true;
}

int64_t wrap_dim(int64_t d, int64_t dim) {
  const int64_t n = std::max<int64_t>(dim, 1);
  FL_CHECK(-n <= d && d < n, IndexError,
           "Dimension out of range (expected to be in range of [{}, {}], but got {})", -n, n - 1, d);
  return d < 0 ? d + n : d;
}

std::string to_string(IntList sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + sizes[i].str();
  return text + "]";
}

}  // namespace fl
