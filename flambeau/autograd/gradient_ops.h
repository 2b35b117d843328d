// Operators that the engine itself calls, and what it does with them.
#pragma once
#include "flambeau/autograd/node.h"
#include "flambeau/op/op.h"

namespace fl::gradient_ops {

inline constexpr Op<"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"> add;
inline constexpr Op<"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"> clone;
inline constexpr Op<
    "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    full;
inline constexpr Op<"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"> copy;
inline constexpr Op<
    "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor">
    empty_strided;

/// Nobody but the holder of this handle can see the elements.
bool is_unshared(const Tensor& t);
bool same_sizes(IntList a, IntList b);
Tensor filled(const TensorSpec& spec, const Scalar& value);
/// A gradient as its receiver needs it: summed over the dimensions that were broadcast, and cast. Raises
/// RuntimeError naming the node that made it (gradient number `index`) if the sizes don't fit.
Tensor fit(const Tensor& gradient, const TensorSpec& spec, const Node& maker, int index);
/// a + b; into a's memory where nobody else can see it.
Tensor accumulate(Tensor&& a, const Tensor& b);
/// A copy with the layout that `.grad` of this variable has.
Tensor clone_for(const Tensor& gradient, const Tensor& variable);
bool has_gradient_layout(const Tensor& gradient, const Tensor& variable);

}  // namespace fl::gradient_ops
