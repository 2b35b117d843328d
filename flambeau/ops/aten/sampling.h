// Draws from distributions, permutations and choices, over the Philox primitives.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor">
    normal_about;
inline constexpr Op<"normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor">
    normal_spread;
inline constexpr Op<"normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor">
    normal_each;
inline constexpr Op<
    "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? "
    "dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor">
    normal_of_size;
inline constexpr Op<"exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor">
    exponential;
inline constexpr Op<
    "cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor">
    cauchy;
inline constexpr Op<
    "log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor">
    log_normal;
inline constexpr Op<"geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor"> geometric;
inline constexpr Op<"random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor">
    random_between;
inline constexpr Op<"random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor"> random_below;
inline constexpr Op<"random(Tensor self, *, Generator? generator=None) -> Tensor"> random_any;
inline constexpr Op<
    "randint.generator(SymInt high, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor">
    randint_below;
inline constexpr Op<
    "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor">
    randint_like_below;
inline constexpr Op<
    "randperm.generator(SymInt n, *, Generator? generator=None, ScalarType? dtype=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor">
    randperm;
inline constexpr Op<
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> "
    "Tensor">
    multinomial;

}  // namespace fl
