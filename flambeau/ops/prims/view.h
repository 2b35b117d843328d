// Views: other sizes, strides and offset on the same storage.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)">
    as_strided;
inline constexpr Op<"permute(Tensor(a) self, int[] dims) -> Tensor(a)"> permute;
inline constexpr Op<"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"> expand;
inline constexpr Op<"view(Tensor(a) self, SymInt[] size) -> Tensor(a)"> view;
inline constexpr Op<"view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"> view_dtype;
inline constexpr Op<"view_as_real(Tensor(a) self) -> Tensor(a)"> view_as_real;
inline constexpr Op<"view_as_complex(Tensor(a) self) -> Tensor(a)"> view_as_complex;
inline constexpr Op<"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"> unsqueeze;
inline constexpr Op<"squeeze(Tensor(a) self) -> Tensor(a)"> squeeze;
inline constexpr Op<"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"> squeeze_dims;
inline constexpr Op<
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor(a)">
    slice;
inline constexpr Op<"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"> select;
inline constexpr Op<"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"> diagonal;
inline constexpr Op<"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"> unfold;
inline constexpr Op<"alias(Tensor(a) self) -> Tensor(a)"> alias;
inline constexpr Op<"detach(Tensor(a) self) -> Tensor(a)"> detach;

}  // namespace fl
