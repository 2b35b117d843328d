// Activations.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"relu(Tensor self) -> Tensor"> relu;
inline constexpr Op<"relu6(Tensor self) -> Tensor"> relu6;
inline constexpr Op<"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"> leaky_relu;
inline constexpr Op<"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"> elu;
inline constexpr Op<"selu(Tensor self) -> Tensor"> selu;
inline constexpr Op<"celu(Tensor self, Scalar alpha=1.) -> Tensor"> celu;
inline constexpr Op<"gelu(Tensor self, *, str approximate=\"none\") -> Tensor"> gelu;
inline constexpr Op<"silu(Tensor self) -> Tensor"> silu;
inline constexpr Op<"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"> hardtanh;
inline constexpr Op<"hardswish(Tensor self) -> Tensor"> hardswish;
inline constexpr Op<"hardsigmoid(Tensor self) -> Tensor"> hardsigmoid;
inline constexpr Op<"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"> softplus;
inline constexpr Op<"mish(Tensor self) -> Tensor"> mish;
inline constexpr Op<"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"> threshold;
inline constexpr Op<"tanhshrink(Tensor self) -> Tensor"> tanhshrink;
inline constexpr Op<"softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"> softshrink;
inline constexpr Op<"hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"> hardshrink;
inline constexpr Op<"log_sigmoid(Tensor self) -> Tensor"> log_sigmoid;
inline constexpr Op<"softsign(Tensor self) -> Tensor"> softsign;
inline constexpr Op<"prelu(Tensor self, Tensor weight) -> Tensor"> prelu;
inline constexpr Op<"glu(Tensor self, int dim=-1) -> Tensor"> glu;

}  // namespace fl
