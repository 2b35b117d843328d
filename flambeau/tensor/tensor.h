// Tensor: a strided view of a storage. A handle: copies share the tensor.
#pragma once
#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "flambeau/base/error.h"
#include "flambeau/base/ref.h"
#include "flambeau/base/small_vector.h"
#include "flambeau/sym/sym_int.h"
#include "flambeau/tensor/array_ref.h"
#include "flambeau/tensor/device.h"
#include "flambeau/tensor/dtype.h"
#include "flambeau/tensor/scalar.h"
#include "flambeau/tensor/storage.h"

namespace fl {

using Sizes = SmallVector<SymInt, 5>;
using IntList = ArrayRef<SymInt>;

/// Shape, layout and type without elements. Strides and offset in elements.
struct TensorSpec {
  Sizes sizes, strides;
  DType dtype = DType::Float32;
  Device device{};
  SymInt offset = 0;
  bool wrapped_number = false;  ///< in a graph: an input that promotes as a number does
  int dim() const { return static_cast<int>(sizes.size()); }
  SymInt numel() const;
  /// Bytes from the start of the storage to the end of the last element.
  SymInt storage_bytes() const;
};

/// What autograd knows of a tensor; autograd/ defines the rest.
struct AutogradMetaBase : RefCounted {
  bool requires_grad = false;  ///< of a leaf, as the user set it
};

struct TensorImpl : RefCounted, FreeListed<TensorImpl> {
  TensorSpec spec;
  Ref<Storage> storage;
  Ref<AutogradMetaBase> autograd;  ///< null: a constant
  Ref<RefCounted> trace;           ///< a tracer's note about this tensor
  bool wrapped_number = false;     ///< made from a number: takes part in promotion as a Scalar
  bool inference = false;          ///< made in inference mode
  bool owns_python = false;        ///< the Python object lives as long as this; else it keeps this alive
  void* python = nullptr;          ///< the object that Python sees this tensor through, once there is one

  TensorImpl() = default;
  TensorImpl(const TensorImpl&) = delete;
  ~TensorImpl() override;
};
/// What drops a TensorImpl::python that its tensor owns, on any thread. Called once, by the Python module.
void install_python_release(void (*release)(void* object));

class Tensor {
 public:
  Tensor() = default;  ///< The undefined tensor: None.
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const TensorSpec& spec, Ref<Storage> storage);

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  const TensorSpec& spec() const { return impl_->spec; }
  int dim() const { return spec().dim(); }
  const Sizes& sizes() const { return spec().sizes; }
  const Sizes& strides() const { return spec().strides; }
  SymInt size(int64_t d) const;  ///< d may be negative; raises IndexError.
  SymInt stride(int64_t d) const;
  SymInt offset() const { return spec().offset; }
  SymInt numel() const { return spec().numel(); }
  DType dtype() const { return spec().dtype; }
  Device device() const { return spec().device; }
  const Ref<Storage>& storage() const { return impl_->storage; }
  bool is_contiguous(MemoryFormat f = MemoryFormat::Contiguous) const;
  bool has_data() const { return impl_->storage && impl_->storage->has_data(); }

  /// Address of the first element. Raises UnsupportedError on a tensor without data (meta, traced).
  void* data() const;
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  /// The only element, as a number. Raises RuntimeError unless numel is 1.
  Scalar item() const;
  /// All elements in row-major order, converted. For tests and printing.
  template <class T>
  std::vector<T> to_vector() const;

  // Defined in autograd/.
  bool requires_grad() const;
  Tensor& set_requires_grad(bool value);
  Tensor grad() const;
  void set_grad(const Tensor& g) const;
  bool is_leaf() const;

  std::string str() const;  ///< As PyTorch prints it.

 private:
  Ref<TensorImpl> impl_;
};

using TensorList = ArrayRef<Tensor>;

/// Row-major strides.
Sizes contiguous_strides(IntList sizes);
/// Strides of a memory format; the channels-last ones take 4 (or 5) dimensions. Raises RuntimeError.
Sizes strides_for(IntList sizes, MemoryFormat f);
/// Channels fastest, of images {batch, channels, space...} with 1 to 3 spatial dimensions.
Sizes channels_last_strides(IntList sizes);
bool is_contiguous(const TensorSpec& s, MemoryFormat f = MemoryFormat::Contiguous);
/// No two index tuples share an element, and no element lies unused between them.
bool is_non_overlapping_and_dense(const TensorSpec& s);
SymInt product(IntList sizes);
/// d in [-dim, dim) as a dimension number (a 0-dim tensor counts as one dimension). Raises IndexError as
/// PyTorch does.
int64_t wrap_dim(int64_t d, int64_t dim);
std::string to_string(IntList sizes);  ///< "[2, s0]"

/// An uninitialised tensor. Raises on negative or too large sizes.
Tensor empty_tensor(IntList sizes, DType dtype, Device device = {});
Tensor empty_strided_tensor(const TensorSpec& spec);
/// Copies row-major elements.
template <class T>
Tensor tensor_from(const std::vector<T>& values, IntList sizes);
/// A 0-dim tensor of the number's default dtype that promotes as the number does.
Tensor wrapped_number(const Scalar& s, DType dtype, Device device = {});
Tensor scalar_tensor(const Scalar& s, DType dtype);

/// The bits of a 16-bit float.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
float to_float(Half h);
float to_float(BFloat16 b);
Half to_half(float f);          ///< Rounds half to even.
BFloat16 to_bfloat16(float f);  ///< Rounds half to even; nan stays nan.

/// The C++ element type of a dtype, given to f as a null pointer: visit_dtype(d, [](auto* p) {
/// using T = std::remove_pointer_t<decltype(p)>; ... }).
template <class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  switch (d) {
    case DType::Bool:
      return f(static_cast<bool*>(nullptr));
    case DType::UInt8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::Int8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::Int16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::Int32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::Int64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::Float16:
      return f(static_cast<Half*>(nullptr));
    case DType::BFloat16:
      return f(static_cast<BFloat16*>(nullptr));
    case DType::Float32:
      return f(static_cast<float*>(nullptr));
    case DType::Float64:
      return f(static_cast<double*>(nullptr));
    case DType::Complex64:
      return f(static_cast<std::complex<float>*>(nullptr));
    case DType::Complex128:
      return f(static_cast<std::complex<double>*>(nullptr));
  }
  __builtin_unreachable();
}

}  // namespace fl
