// Convolutions of one to three dimensions over the primitive.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "
    "SymInt[1] "
    "dilation=1, SymInt groups=1) -> Tensor">
    conv1d;
inline constexpr Op<
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "
    "SymInt[2] "
    "dilation=1, SymInt groups=1) -> Tensor">
    conv2d;
inline constexpr Op<
    "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, "
    "SymInt[3] "
    "dilation=1, SymInt groups=1) -> Tensor">
    conv3d;
inline constexpr Op<
    "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str "
    "padding=\"valid\", "
    "SymInt[1] dilation=1, SymInt groups=1) -> Tensor">
    conv1d_padding;
inline constexpr Op<
    "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str "
    "padding=\"valid\", "
    "SymInt[2] dilation=1, SymInt groups=1) -> Tensor">
    conv2d_padding;
inline constexpr Op<
    "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str "
    "padding=\"valid\", "
    "SymInt[3] dilation=1, SymInt groups=1) -> Tensor">
    conv3d_padding;
inline constexpr Op<
    "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] "
    "padding=0, "
    "SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor">
    conv_transpose1d;
inline constexpr Op<
    "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
    "padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor">
    conv_transpose2d;
inline constexpr Op<
    "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "
    "padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor">
    conv_transpose3d;

}  // namespace fl
