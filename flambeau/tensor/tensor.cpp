#include "flambeau/tensor/tensor.h"

#include "flambeau/tensor/element_reads.h"

#include <array>
#include <cstring>

#include "flambeau/tensor/element.h"

namespace fl {

namespace {

void check_sizes(IntList sizes) {
  for (const SymInt size : sizes)
    FL_CHECK(!(size < SymInt(0)), RuntimeError, "Trying to create tensor with negative dimension {}: {}",
             size.str(), to_string(sizes));
}

/// Bytes of so many elements; raises where the count leaves int64.
int64_t checked_bytes(int64_t count, DType dtype, IntList sizes) {
  int64_t bytes;
  FL_CHECK(!__builtin_mul_overflow(count, size_of(dtype), &bytes), RuntimeError,
           "Storage size calculation overflowed with sizes={}", to_string(sizes));
  return bytes;
}

bool any_symbolic(IntList list) {
  for (const SymInt i : list)
    if (i.is_symbolic()) return true;
  return false;
}

/// Elements from the storage's start to the end of the last element; raises where that leaves int64.
int64_t extent(const TensorSpec& s) {
  int64_t last = s.offset.expect_int();
  bool overflow = false;
  for (int d = 0; d < s.dim(); ++d) {
    int64_t reach;
    overflow |= __builtin_mul_overflow(s.sizes[d].raw() - 1, s.strides[d].raw(), &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  overflow |= __builtin_add_overflow(last, 1, &last);
  FL_CHECK(!overflow, RuntimeError, "Storage size calculation overflowed with sizes={} and strides={}",
           to_string(s.sizes), to_string(s.strides));
  return last;
}

Ref<Storage> storage_of(const TensorSpec& s) {
  if (s.device.type == DeviceType::Meta || any_symbolic(s.sizes) || any_symbolic(s.strides) ||
      s.offset.is_symbolic())
    return Storage::without_data(s.device);
  for (const SymInt size : s.sizes)
    if (size.raw() == 0) return make_ref<Storage>(0, s.device);
  return make_ref<Storage>(checked_bytes(extent(s), s.dtype, s.sizes), s.device);
}

/// Row-major strides and the number of elements in one pass, for sizes that are all numbers.
int64_t set_row_major(TensorSpec& s, IntList sizes) {
  const size_t n = sizes.size();
  s.sizes.assign(sizes.begin(), sizes.end());
  s.strides.resize(n, boost::container::default_init);
  int64_t stride = 1;
  bool empty = false, overflow = false;
  for (size_t d = n; d-- > 0;) {
    const int64_t size = sizes[d].raw();
    s.strides[d] = stride;
    if (size == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(stride, size, &stride);
  }
  FL_CHECK(!overflow, RuntimeError, "Storage size calculation overflowed with sizes={}", to_string(sizes));
  return empty ? 0 : stride;
}

/// Calls f(element address) over all elements in row-major order.
template <class F>
void for_each_element(const Tensor& t, const char* data, F&& f) {
  const int dim = t.dim();
  const int64_t count = t.numel().expect_int(), item = size_of(t.dtype());
  SmallVector<int64_t, 8> index(dim, 0);
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    f(data + at * item);
    for (int d = dim - 1; d >= 0; --d) {
      const int64_t stride = t.strides()[d].raw();
      at += stride;
      if (++index[d] < t.sizes()[d].raw()) break;
      at -= stride * index[d];
      index[d] = 0;
    }
  }
}

}  // namespace

namespace {
void (*release_python)(void*) = nullptr;
}  // namespace

void install_python_release(void (*release)(void* object)) { release_python = release; }

TensorImpl::~TensorImpl() {
  if (owns_python) release_python(python);
}

Tensor::Tensor(const TensorSpec& spec, Ref<Storage> storage) : impl_(new TensorImpl) {
  impl_->spec = spec;
  impl_->storage = std::move(storage);
}

SymInt Tensor::size(int64_t d) const {
  FL_CHECK(dim() > 0, IndexError, "Dimension specified as {} but tensor has no dimensions", d);
  return sizes()[wrap_dim(d, dim())];
}

SymInt Tensor::stride(int64_t d) const {
  FL_CHECK(dim() > 0, IndexError, "Dimension specified as {} but tensor has no dimensions", d);
  return strides()[wrap_dim(d, dim())];
}

bool Tensor::is_contiguous(MemoryFormat f) const { return fl::is_contiguous(spec(), f); }

void* Tensor::data() const {
  FL_CHECK(defined(), RuntimeError, "expected a tensor, got an undefined one (None)");
  FL_CHECK(has_data(), UnsupportedError,
           "expected a tensor with elements, got one of sizes {} on device {} that has only a shape (it is a "
           "meta tensor or is being traced)",
           to_string(sizes()), device().str());
  char* start = static_cast<char*>(storage()->data());
  FL_CHECK(start || numel().same_as(0), RuntimeError,
           "the data of a tensor of sizes {} is not allocated: its storage has been resized to {} bytes",
           to_string(sizes()), storage()->bytes());
  return start ? start + offset().expect_int() * size_of(dtype()) : nullptr;
}

namespace {
thread_local bool g_reads_forbidden = false;

void check_reads(const Tensor& t) {
  FL_CHECK(!g_reads_forbidden || t.impl()->wrapped_number, UnsupportedError,
           "the function that is captured reads elements of a tensor ({} {}); a compiled program could not "
           "see them change. Keep the computation on tensors, or read outside of the function",
           to_string(t.sizes()), name(t.dtype()));
}
}  // namespace

ForbidElementReads::ForbidElementReads() : previous_(g_reads_forbidden) { g_reads_forbidden = true; }
ForbidElementReads::~ForbidElementReads() { g_reads_forbidden = previous_; }

Scalar Tensor::item() const {
  FL_CHECK(defined(), RuntimeError, "expected a tensor, got an undefined one (None)");
  check_reads(*this);
  const SymInt count = numel();
  FL_CHECK(count == SymInt(1), RuntimeError, "a Tensor with {} elements cannot be converted to Scalar",
           count.str());
  const void* from = data();
  if (device().type == DeviceType::CPU) return load_scalar(from, dtype());
  std::array<char, 16> element{};
  allocator(device()).copy(element.data(), from, static_cast<size_t>(size_of(dtype())));
  return load_scalar(element.data(), dtype());
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_reads(*this);
  std::vector<T> values;
  std::vector<char> copy;
  const char* from = host_elements(*this, copy);
  values.reserve(static_cast<size_t>(numel().expect_int()));
  visit_dtype(dtype(), [&](auto* p) {
    using E = std::remove_pointer_t<decltype(p)>;
    for_each_element(*this, from, [&](const char* at) {
      E e;
      std::memcpy(&e, at, sizeof(E));
      values.push_back(convert_element<T>(e));
    });
  });
  return values;
}

Tensor empty_tensor(IntList sizes, DType dtype, Device device) {
  check_sizes(sizes);
  Ref<TensorImpl> impl(new TensorImpl);
  TensorSpec& s = impl->spec;
  s.dtype = dtype;
  s.device = device;
  if (any_symbolic(sizes)) {
    s.sizes.assign(sizes.begin(), sizes.end());
    s.strides = contiguous_strides(sizes);
    impl->storage = Storage::without_data(device);
  } else {
    const int64_t bytes = checked_bytes(set_row_major(s, sizes), dtype, sizes);
    impl->storage = make_ref<Storage>(bytes, device);
  }
  return Tensor(std::move(impl));
}

Tensor empty_strided_tensor(const TensorSpec& spec) {
  FL_CHECK(spec.sizes.size() == spec.strides.size(), RuntimeError,
           "dimensionality of sizes ({}) must match dimensionality of strides ({})", spec.sizes.size(),
           spec.strides.size());
  check_sizes(spec.sizes);
  for (const SymInt stride : spec.strides)
    FL_CHECK(stride.is_symbolic() || stride.raw() >= 0, RuntimeError, "strides must be non-negative, got {}",
             to_string(spec.strides));
  FL_CHECK(spec.offset.is_symbolic() || spec.offset.raw() >= 0, RuntimeError,
           "the storage offset must be non-negative, got {}", spec.offset.str());
  return Tensor(spec, storage_of(spec));
}

template <class T>
Tensor tensor_from(const std::vector<T>& values, IntList sizes) {
  const SymInt count = product(sizes);
  FL_CHECK(count == SymInt(values.size()), RuntimeError, "expected {} values for sizes {}, got {}",
           count.str(), to_string(sizes), values.size());
  Tensor t = empty_tensor(sizes, dtype_of<T>());
  std::copy(values.begin(), values.end(), t.data_as<T>());
  return t;
}

Tensor scalar_tensor(const Scalar& s, DType dtype) {
  Tensor t = empty_tensor({}, dtype);
  store_scalar(t.data(), dtype, s);
  return t;
}

Tensor wrapped_number(const Scalar& s, DType dtype, Device device) {
  Tensor t = empty_tensor({}, dtype, device);
  if (t.device().type == DeviceType::CPU) {
    store_scalar(t.data(), dtype, s);
  } else if (t.has_data()) {
    std::array<char, 16> element{};
    store_scalar(element.data(), dtype, s);
    allocator(device).copy(t.data(), element.data(), static_cast<size_t>(size_of(dtype)));
  }
  t.impl()->wrapped_number = true;
  return t;
}

const char* host_elements(const Tensor& t, std::vector<char>& copy) {
  const char* data = static_cast<const char*>(t.data());
  if (t.device().type == DeviceType::CPU || t.numel() == SymInt(0)) return data;
  TensorSpec from_start = t.spec();
  from_start.offset = 0;
  copy.resize(static_cast<size_t>(from_start.storage_bytes().expect_int()));
  allocator(t.device()).copy(copy.data(), data, copy.size());
  return copy.data();
}

std::vector<char> row_major_bytes(const Tensor& t) {
  const auto item = static_cast<size_t>(size_of(t.dtype()));
  std::vector<char> copy, bytes(static_cast<size_t>(t.numel().expect_int()) * item);
  const char* from = host_elements(t, copy);
  if (bytes.empty()) return bytes;
  if (t.is_contiguous()) {
    std::memcpy(bytes.data(), from, bytes.size());
    return bytes;
  }
  char* to = bytes.data();
  for_each_element(t, from, [&](const char* at) {
    std::memcpy(to, at, item);
    to += item;
  });
  return bytes;
}

void store_scalar(void* to, DType dtype, const Scalar& s) {
  visit_dtype(dtype, [&](auto* p) {
    using E = std::remove_pointer_t<decltype(p)>;
    E e;
    if (s.is_integral())
      e = convert_element<E>(s.sym_int().guard_int());
    else if (s.is_complex())
      e = convert_element<E>(s.to_complex());
    else
      e = convert_element<E>(s.to_double());
    std::memcpy(to, &e, sizeof(E));
  });
}

Scalar load_scalar(const void* from, DType dtype) {
  return visit_dtype(dtype, [&](auto* p) {
    using E = std::remove_pointer_t<decltype(p)>;
    E e;
    std::memcpy(&e, from, sizeof(E));
    if constexpr (std::is_same_v<E, bool>)
      return Scalar(e);
    else if constexpr (std::is_integral_v<E>)
      return Scalar(static_cast<int64_t>(e));
    else if constexpr (is_complex_type<E>::value)
      return Scalar(convert_element<std::complex<double>>(e));
    else
      return Scalar(convert_element<double>(e));
  });
}

#define FL_INSTANTIATE(T)                            \
  template std::vector<T> Tensor::to_vector() const; \
  template Tensor tensor_from(const std::vector<T>& values, IntList sizes);
FL_INSTANTIATE(bool)
FL_INSTANTIATE(uint8_t)
FL_INSTANTIATE(int8_t)
FL_INSTANTIATE(int16_t)
FL_INSTANTIATE(int32_t)
FL_INSTANTIATE(int64_t)
FL_INSTANTIATE(Half)
FL_INSTANTIATE(BFloat16)
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
FL_INSTANTIATE(std::complex<float>)
FL_INSTANTIATE(std::complex<double>)
#undef FL_INSTANTIATE

}  // namespace fl
