// Random numbers: Philox 4x32-10, addressed by (seed, offset). Element p of a call uses counter offset + p.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "philox_uniform(SymInt[] size, SymInt seed_low, SymInt seed_high, SymInt offset, *, ScalarType? "
    "dtype=None, Device? device=None) -> Tensor">
    philox_uniform;
inline constexpr Op<
    "philox_normal(SymInt[] size, SymInt seed_low, SymInt seed_high, SymInt offset, *, ScalarType? "
    "dtype=None, Device? device=None) -> Tensor">
    philox_normal;
inline constexpr Op<
    "philox_bits(SymInt[] size, SymInt seed_low, SymInt seed_high, SymInt offset, *, Device? device=None) -> "
    "Tensor">
    philox_bits;
// Composites that draw from a generator.
inline constexpr Op<
    "rand.generator(SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    rand;
inline constexpr Op<
    "randn.generator(SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor">
    randn;
inline constexpr Op<
    "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator=None, ScalarType? "
    "dtype=None, Device? device=None, bool? pin_memory=None) -> Tensor">
    randint;
inline constexpr Op<
    "rand_like(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor">
    rand_like;
inline constexpr Op<
    "randn_like(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor">
    randn_like;
inline constexpr Op<
    "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Device? "
    "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor">
    randint_like;
inline constexpr Op<
    "uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor">
    uniform;
inline constexpr Op<
    "normal(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor">
    normal;
inline constexpr Op<"bernoulli(Tensor self, *, Generator? generator=None) -> Tensor"> bernoulli;
inline constexpr Op<"bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor"> bernoulli_p;
inline constexpr Op<"native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)"> native_dropout;
inline constexpr Op<"dropout(Tensor input, float p, bool train) -> Tensor"> dropout;

}  // namespace fl
