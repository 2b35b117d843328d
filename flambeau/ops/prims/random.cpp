#include "flambeau/ops/prims/random.h"

#include <cmath>
#include <numbers>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/division.h"
#include "flambeau/ops/prims/random_source.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr int kSeedLow = 1, kSeedHigh = 2, kOffset = 3, kDType = 4, kDevice = 5;

InferResult draw_rule(const InferCtx& c, int) {
  const DType dtype = c.has(kDType) ? c.arg(kDType).dtype() : default_dtype();
  FL_CHECK(is_floating(dtype), RuntimeError, "{}: expected a floating point dtype, got {}",
           c.op().schema.name, name(dtype));
  return {make_spec(c.ints(0), dtype, c.has(kDevice) ? c.arg(kDevice).device() : Device{})};
}

struct Block {
  Val word0, word1;
};

/// Words 0 and 1 of the Philox 4x32-10 block of a counter, int32 taken as unsigned.
Block philox_block(ScalarOps& s, Val seed_low, Val seed_high, Val counter) {
  const auto low = [&](Val x) { return s.cast(x, DType::Int32); };
  const auto word = [&](uint32_t x) {
    return s.constant(DType::Int32, static_cast<int64_t>(static_cast<int32_t>(x)));
  };
  const Val m0 = word(0xD2511F53), m1 = word(0xCD9E8D57);
  Val k0 = low(seed_low), k1 = low(seed_high);
  Val c0 = low(counter), c1 = low(s.shr(counter, s.constant(DType::Int64, 32)));
  Val c2 = word(0), c3 = word(0);
  for (int round = 0; round < 10; ++round) {
    const Val high0 = s.mulhi(m0, c0), low0 = s.mul(m0, c0), high1 = s.mulhi(m1, c2), low1 = s.mul(m1, c2);
    c0 = s.bit_xor(s.bit_xor(high1, c1), k0);
    c1 = low1;
    c2 = s.bit_xor(s.bit_xor(high0, c3), k1);
    c3 = low0;
    k0 = s.add(k0, word(0x9E3779B9));
    k1 = s.add(k1, word(0xBB67AE85));
  }
  return {c0, c1};
}

/// The upper `bits` bits of a word as an int32 that is not negative.
Val upper_bits(ScalarOps& s, Val word, int bits) {
  const Val shifted = s.shr(word, s.constant(DType::Int32, 32 - bits));
  return s.bit_and(shifted, s.constant(DType::Int32, (int64_t{1} << bits) - 1));
}

/// Uniform in [0, 1) with as many bits as the dtype holds below 1.
Val uniform_of(ScalarOps& s, const Block& b, DType dtype) {
  if (dtype == DType::Float64) {
    const Val high = s.cast(upper_bits(s, b.word0, 27), dtype),
              low = s.cast(upper_bits(s, b.word1, 26), dtype);
    return s.mul(s.add(s.mul(high, s.like(high, 0x1p26)), low), s.like(high, 0x1p-53));
  }
  const int bits = dtype == DType::Float16 ? 11 : dtype == DType::BFloat16 ? 8 : 24;
  const Val whole = s.cast(upper_bits(s, b.word0, bits), DType::Float32);
  return s.mul(whole, s.like(whole, std::ldexp(1.0, -bits)));
}

/// Box and Muller's transform of two words; the first uniform number lies in (0, 1].
Val normal_of(ScalarOps& s, const Block& b, DType dtype) {
  const DType d = compute_dtype(dtype);
  const int bits = d == DType::Float64 ? 31 : 24;
  const Val first = s.cast(upper_bits(s, b.word0, bits), d), second = s.cast(upper_bits(s, b.word1, bits), d);
  const Val scale = s.like(first, std::ldexp(1.0, -bits));
  const Val radius = s.sqrt(s.mul(s.like(first, -2.0), s.log(s.mul(s.add(first, s.like(first, 1)), scale))));
  return s.mul(radius, s.cos(s.mul(s.mul(second, scale), s.like(second, 2 * std::numbers::pi))));
}

using Transform = Val (*)(ScalarOps&, const Block&, DType);

Lowered lower_draw(const LowerCtx& c, Transform transform, DType dtype) {
  Lowered l;
  l.sizes = c.out_sizes();
  const std::vector<Expr> sizes = l.sizes;
  const Expr seed_low = c.arg(kSeedLow).sym_int().expr(), seed_high = c.arg(kSeedHigh).sym_int().expr();
  const Expr offset = c.arg(kOffset).sym_int().expr();
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Expr position(0);
    for (size_t d = 0; d < sizes.size(); ++d) position = position * sizes[d] + i[d];
    const Block b = philox_block(s, s.index(seed_low), s.index(seed_high), s.index(offset + position));
    return std::vector<Val>{transform(s, b, dtype)};
  };
  return l;
}

/// The same where one int64 number of memory is the seed; counters start at 0.
Lowered lower_draw_by_seed(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const DType dtype = c.out().dtype;
  l.body = [sizes = l.sizes, dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Expr position(0);
    for (size_t d = 0; d < sizes.size(); ++d) position = position * sizes[d] + i[d];
    const Val seed = s.load(0, Index{Expr(0)});
    const Block b = philox_block(s, seed, s.shr(seed, s.constant(DType::Int64, 32)), s.index(position));
    return std::vector<Val>{uniform_of(s, b, dtype)};
  };
  return l;
}

InferResult draw_by_seed_rule(const InferCtx& c, int) {
  const TensorSpec& seed = c.spec(0);
  FL_CHECK(seed.dtype == DType::Int64 && seed.dim() == 1 && seed.sizes[0] == SymInt(1), RuntimeError,
           "{}: expected a seed of one int64 number, got {} of shape {}", c.op().schema.name,
           name(seed.dtype), to_string(seed.sizes));
  const DType dtype = c.has(2) ? c.arg(2).dtype() : default_dtype();
  FL_CHECK(is_floating(dtype), RuntimeError, "{}: expected a floating point dtype, got {}",
           c.op().schema.name, name(dtype));
  return {make_spec(c.ints(1), dtype, seed.device)};
}

/// 63 random bits.
Val bits_of(ScalarOps& s, const Block& b, DType) {
  const Val high = s.cast(upper_bits(s, b.word0, 31), DType::Int64);
  const Val low = s.bit_and(s.cast(b.word1, DType::Int64), s.constant(DType::Int64, int64_t{0xFFFFFFFF}));
  return s.bit_or(s.shl(high, s.constant(DType::Int64, 32)), low);
}

void define_draws(OpTable& t) {
  constexpr Tag kTags = Tag::Factory | Tag::NonDifferentiable;
  const Samples draws = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{
            {{Sizes{3, 5}, 42, 7, 1000, m.dtype()}, "", ""},
            {{Sizes{}, 42, 7, 0, m.dtype()}, "0-dim", ""},
            {{Sizes{0, 2}, 42, 7, 0, m.dtype()}, "size 0", ""},
            {{Sizes{2}, 1, 2, 0, DType::Int32}, "dtype", "RuntimeError: floating point"}};
      },
      {.dtypes = dtypes::floats, .gradient = false});
  t.define(philox_uniform,
           {.doc = "Uniform numbers in [0, 1): a function of the seed and the offset.",
            .tags = kTags,
            .infer = draw_rule,
            .lower = [](const LowerCtx& c) { return lower_draw(c, uniform_of, c.out().dtype); },
            .samples = draws});
  t.define(philox_normal,
           {.doc = "Numbers of the standard normal distribution: a function of the seed and the offset.",
            .tags = kTags,
            .infer = draw_rule,
            .lower = [](const LowerCtx& c) { return lower_draw(c, normal_of, c.out().dtype); },
            .samples = draws});
  t.define(philox_bits, {.doc = "int64 numbers uniform in [0, 2^63): a function of the seed and the offset.",
                         .tags = kTags,
                         .infer =
                             [](const InferCtx& c, int) {
                               return InferResult{make_spec(c.ints(0), DType::Int64,
                                                            c.has(4) ? c.arg(4).device() : Device{})};
                             },
                         .lower = [](const LowerCtx& c) { return lower_draw(c, bits_of, DType::Int64); },
                         .samples = samples::custom(
                             [](SampleMaker&, const Samples&) {
                               return std::vector<Sample>{{{Sizes{3, 5}, 42, 7, 1000}, "", ""}};
                             },
                             {.gradient = false})});
  t.define(
      philox_uniform_by_seed,
      {.doc = "Uniform numbers in [0, 1): a function of the seed, one int64 number of memory.",
       .tags = Tag::NonDifferentiable | Tag::NoInPlace | Tag::NoOut,
       .infer = draw_by_seed_rule,
       .lower = lower_draw_by_seed,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples&) {
             const Tensor seed = m.make_index({1}, 0, int64_t{1} << 40);
             return std::vector<Sample>{
                 {{seed, Sizes{3, 5}, m.dtype()}, "", ""},
                 {{seed, Sizes{0, 2}, m.dtype()}, "size 0", ""},
                 {{seed, Sizes{2}, DType::Int32}, "dtype", "RuntimeError: floating point"},
                 {{m.make_index({2}, 0, 9), Sizes{2}, m.dtype()}, "seed", "RuntimeError: one int64 number"}};
           },
           {.dtypes = dtypes::floats, .gradient = false})});
}

}  // namespace

namespace random {

PhiloxSlot reserve(Generator* generator, IntList size, Device device) {
  Generator& g = generator ? *generator : *default_generator(device);
  const auto kind = [](Device d) { return d.type == DeviceType::CUDA ? "cuda" : "cpu"; };
  FL_CHECK(g.device().type == device.type || device.type == DeviceType::Meta, RuntimeError,
           "Expected a '{}' device type for generator but found '{}'", kind(device), kind(g.device()));
  return g.reserve(product(size));
}
Tensor uniform_numbers(IntList size, DType dtype, Device device, Generator* generator) {
  const PhiloxSlot s = reserve(generator, size, device);
  return philox_uniform(size, s.seed_low, s.seed_high, s.offset, dtype, device);
}
Tensor seed_tensor(Device device, Generator* generator) {
  const PhiloxSlot s = reserve(generator, {SymInt(1)}, device);
  return philox_bits({SymInt(1)}, s.seed_low, s.seed_high, s.offset, device);
}
Tensor normal_numbers(IntList size, DType dtype, Device device, Generator* generator) {
  const PhiloxSlot s = reserve(generator, size, device);
  return philox_normal(size, s.seed_low, s.seed_high, s.offset, dtype, device);
}
Tensor whole_numbers(SymInt low, SymInt high, IntList size, DType dtype, Device device,
                     Generator* generator) {
  FL_CHECK(low < high, RuntimeError, "random_ expects 'from' to be less than 'to', but got from={} >= to={}",
           low, high);
  const PhiloxSlot s = reserve(generator, size, device);
  const Tensor bits = philox_bits(size, s.seed_low, s.seed_high, s.offset, device);
  return to_dtype(add(_remainder(bits, high - low), low), dtype);
}

}  // namespace random

void define_random(OpTable& t) { define_draws(t); }

}  // namespace fl
