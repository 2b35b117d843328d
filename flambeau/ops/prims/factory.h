// Tensors made from sizes and numbers.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    full;
inline constexpr Op<
    "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor">
    empty;
inline constexpr Op<
    "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    empty_strided;
inline constexpr Op<
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor">
    full_like;
inline constexpr Op<
    "empty_like(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor">
    empty_like;
inline constexpr Op<
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    arange;
inline constexpr Op<
    "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    linspace;
inline constexpr Op<
    "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor">
    eye;
inline constexpr Op<
    "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    logspace;
inline constexpr Op<
    "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor">
    empty_permuted;
inline constexpr Op<
    "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    new_empty_strided;
// Composites.
inline constexpr Op<
    "zeros(SymInt[] size, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor">
    zeros;
inline constexpr Op<
    "ones(SymInt[] size, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor">
    ones;
inline constexpr Op<
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor">
    zeros_like;
inline constexpr Op<
    "ones_like(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor">
    ones_like;
inline constexpr Op<
    "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    new_empty;
inline constexpr Op<
    "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor">
    new_full;
inline constexpr Op<
    "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    new_zeros;
inline constexpr Op<
    "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    new_ones;
inline constexpr Op<
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> "
    "Tensor">
    scalar_tensor_op;
inline constexpr Op<
    "arange(Scalar end, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor">
    arange_end;
inline constexpr Op<
    "eye(SymInt n, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor">
    square_eye;

}  // namespace fl
