// Elements from device to device: dense blocks of bytes, with kernels on either side where layout or dtype
// differ.
#include "flambeau/op/op.h"
#include "flambeau/ops/functions.h"
#include "flambeau/runtime/device_runtime.h"

namespace fl::runtime {
namespace {

/// Bytes of a dense tensor from its first element on.
size_t dense_bytes(const Tensor& t) {
  return static_cast<size_t>(t.numel().expect_int() * size_of(t.dtype()));
}

/// The GPU's runtime does the copy; between two, that of the target.
void copy_dense(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (to.numel() == SymInt(0)) return;
  const bool to_host = to.device().type == DeviceType::CPU;
  const Device device = to_host ? from.device() : to.device();
  runtime_of(device).copy(device, to.data(), from.data(), dense_bytes(to),
                          to_host ? to.device() : from.device(), !non_blocking);
}

Tensor dense(const Tensor& t) { return is_non_overlapping_and_dense(t.spec()) ? t : clone(t); }

Tensor with_dtype(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : _to_copy(t, dtype); }

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

Tensor moved(const Tensor& t, DType dtype, Device device, bool non_blocking) {
  const bool narrows = size_of(dtype) < size_of(t.dtype());
  const Tensor from = dense(narrows ? with_dtype(t, dtype) : t);
  TensorSpec spec = from.spec();
  spec.device = device;
  spec.offset = 0;
  const Tensor out = empty_strided_tensor(spec);
  copy_dense(out, from, non_blocking && !narrows);
  return with_dtype(out, dtype);
}

void move_into(const Tensor& target, const Tensor& t, bool non_blocking) {
  if (same_layout(target, t) && is_non_overlapping_and_dense(target.spec()))
    return copy_dense(target, t, non_blocking);
  Value args[] = {Value(target), Value(moved(t, t.dtype(), target.device())), Value(false)};
  static const OpInfo& copy = require_operator("copy(");
  backend().run_into(copy, args, &target);
}

}  // namespace fl::runtime
