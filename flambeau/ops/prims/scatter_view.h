// The counterparts of views: self with the elements of a view of it replaced.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor">
    slice_scatter;
inline constexpr Op<"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor">
    select_scatter;
inline constexpr Op<
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor">
    diagonal_scatter;
inline constexpr Op<
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
    "storage_offset=None) -> Tensor">
    as_strided_scatter;
inline constexpr Op<
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor">
    unfold_backward;

inline constexpr Op<
    "_as_strided_add(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> "
    "Tensor">
    _as_strided_add;

}  // namespace fl
