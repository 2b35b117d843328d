// Evenly spaced numbers between ends that are tensors.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    linspace_between;
inline constexpr Op<
    "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    linspace_from;
inline constexpr Op<
    "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    linspace_to;
inline constexpr Op<
    "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor">
    logspace_between;
inline constexpr Op<
    "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor">
    logspace_from;
inline constexpr Op<
    "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor">
    logspace_to;

}  // namespace fl
