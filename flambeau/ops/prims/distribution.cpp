// Operators that draw from a generator, over the Philox primitives.
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/random_source.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using DTypeOpt = std::optional<DType>;
using DeviceOpt = std::optional<Device>;
using FormatOpt = std::optional<MemoryFormat>;
using random::normal_numbers;
using random::uniform_numbers;
using random::whole_numbers;

/// Samples only check shapes and errors: no two draws are equal.
Samples shapes_of(samples::MakeSamples make) { return samples::custom(make, {.gradient = false}); }

void define_factories(OpTable& t) {
  const Samples sizes = shapes_of([](SampleMaker& m, const Samples&) {
    return std::vector<Sample>{{{Sizes{3, 5}, Value(), m.dtype()}, "", ""}, {{Sizes{}}, "0-dim", ""}};
  });
  t.define(rand, {.doc = "Uniform numbers in [0, 1).",
                  .tags = Tag::Random,
                  .decompose =
                      [](IntList size, Generator* g, DTypeOpt dtype, DeviceOpt device, std::optional<bool>) {
                        return uniform_numbers(size, dtype.value_or(default_dtype()),
                                               device.value_or(Device{}), g);
                      },
                  .samples = sizes});
  t.define(randn, {.doc = "Numbers of the standard normal distribution.",
                   .tags = Tag::Random,
                   .decompose =
                       [](IntList size, Generator* g, DTypeOpt dtype, DeviceOpt device, std::optional<bool>) {
                         return normal_numbers(size, dtype.value_or(default_dtype()),
                                               device.value_or(Device{}), g);
                       },
                   .samples = sizes});
  t.define(randint, {.doc = "Integers in [low, high).",
                     .tags = Tag::Random,
                     .decompose =
                         [](SymInt low, SymInt high, IntList size, Generator* g, DTypeOpt dtype,
                            DeviceOpt device, std::optional<bool>) {
                           return whole_numbers(low, high, size, dtype.value_or(DType::Int64),
                                                device.value_or(Device{}), g);
                         },
                     .samples = shapes_of([](SampleMaker&, const Samples&) {
                       return std::vector<Sample>{
                           {{-2, 5, Sizes{3, 5}}, "", ""},
                           {{3, 3, Sizes{2}}, "empty range", "RuntimeError: to be less than"}};
                     })});
}

void define_likes(OpTable& t) {
  constexpr Tag kTags = Tag::Random | Tag::NoInPlace | Tag::NoOut;
  const Samples like = samples::unary({.dtypes = dtypes::floats, .gradient = false});
  t.define(rand_like, {.doc = "Uniform numbers in [0, 1) with self's sizes, dtype and device unless given.",
                       .tags = kTags,
                       .decompose =
                           [](Tensor self, DTypeOpt dtype, DeviceOpt device, std::optional<bool>, FormatOpt) {
                             return uniform_numbers(self.sizes(), dtype.value_or(self.dtype()),
                                                    device.value_or(self.device()), nullptr);
                           },
                       .samples = like});
  t.define(
      randn_like,
      {.doc = "Numbers of the standard normal distribution with self's sizes, dtype and device unless given.",
       .tags = kTags,
       .decompose =
           [](Tensor self, DTypeOpt dtype, DeviceOpt device, std::optional<bool>, FormatOpt) {
             return normal_numbers(self.sizes(), dtype.value_or(self.dtype()), device.value_or(self.device()),
                                   nullptr);
           },
       .samples = like});
  t.define(randint_like, {.doc = "Integers in [low, high) with self's sizes, dtype and device unless given.",
                          .tags = kTags,
                          .decompose =
                              [](Tensor self, SymInt low, SymInt high, DTypeOpt dtype, DeviceOpt device,
                                 std::optional<bool>, FormatOpt) {
                                return whole_numbers(low, high, self.sizes(), dtype.value_or(self.dtype()),
                                                     device.value_or(self.device()), nullptr);
                              },
                          .samples = shapes_of([](SampleMaker& m, const Samples&) {
                            return std::vector<Sample>{{{m.make({3, 4}), 0, 9}, "", ""}};
                          })});
}

Tensor compared(const Tensor& self, const Tensor& below, Generator* g) {
  const DType draw = is_floating(below.dtype()) ? below.dtype() : DType::Float32;
  return to_dtype(lt(uniform_numbers(self.sizes(), draw, self.device(), g), below), self.dtype());
}

void define_in_shape_of_self(OpTable& t) {
  constexpr Tag kTags = Tag::Random | Tag::NonDifferentiable;
  const Samples floats = samples::unary({.dtypes = dtypes::floats, .low = 0, .high = 1, .gradient = false});
  const Infer same = [](const InferCtx& c, int) {
    return InferResult{make_spec(c.spec(0).sizes, c.spec(0).dtype, c.spec(0).device)};
  };
  t.define(uniform, {.doc = "Uniform numbers in [from, to); the values of self do not matter.",
                     .tags = kTags,
                     .infer = same,
                     .decompose =
                         [](Tensor self, double from, double to, Generator* g) {
                           FL_CHECK(
                               from <= to, RuntimeError,
                               "uniform_ expects to return a [from, to) range, but found from={} > to={}",
                               from, to);
                           const Tensor u = uniform_numbers(self.sizes(), self.dtype(), self.device(), g);
                           return from == 0 && to == 1 ? u : add(mul(u, to - from), from);
                         },
                     .samples = floats});
  t.define(normal, {.doc = "Numbers of a normal distribution; the values of self do not matter.",
                    .tags = kTags,
                    .infer = same,
                    .decompose =
                        [](Tensor self, double mean, double std, Generator* g) {
                          FL_CHECK(std >= 0, RuntimeError, "normal expects std >= 0.0, but found std {}",
                                   std);
                          const Tensor n = normal_numbers(self.sizes(), self.dtype(), self.device(), g);
                          return mean == 0 && std == 1 ? n : add(mul(n, std), mean);
                        },
                    .samples = floats});
  t.define(bernoulli, {.doc = "1 with the probability that each element gives, else 0.",
                       .tags = Tag::Random,
                       .infer = same,
                       .decompose = [](Tensor self, Generator* g) { return compared(self, self, g); },
                       .grad = [](GradCtx&, const Tensor& g) { return zeros_like(g); },
                       .samples = floats});
  t.define(bernoulli_p, {.doc = "1 with probability p, else 0; the values of self do not matter.",
                         .tags = kTags,
                         .infer = same,
                         .decompose =
                             [](Tensor self, double p, Generator* g) {
                               FL_CHECK(p >= 0 && p <= 1, RuntimeError,
                                        "bernoulli_ expects p to be in [0, 1], but got p={}", p);
                               const Tensor u =
                                   uniform_numbers(self.sizes(), DType::Float32, self.device(), g);
                               return to_dtype(lt(u, p), self.dtype());
                             },
                         .samples = samples::custom(
                             [](SampleMaker& m, const Samples& o) {
                               return std::vector<Sample>{
                                   {{m.make({3, 4}, o.low, o.high), 0.3}, "", ""},
                                   {{m.make({3}, o.low, o.high), 1.5}, "p", "RuntimeError: in [0, 1]"}};
                             },
                             {.dtypes = dtypes::all, .gradient = false})});
}

void check_probability(double p) {
  FL_CHECK(p >= 0 && p <= 1, RuntimeError, "dropout probability has to be between 0 and 1, but got {}", p);
}

/// The kept elements, scaled so that the mean stays, and the mask of those kept.
std::tuple<Tensor, Tensor> dropped(const Tensor& input, double p) {
  const Tensor keep = lt(uniform_numbers(input.sizes(), DType::Float32, input.device(), nullptr), 1 - p);
  return {mul(mul(input, to_dtype(keep, input.dtype())), p == 1 ? 0.0 : 1 / (1 - p)), keep};
}

std::vector<Sample> dropout_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
  return {{{x(), 0.3, true}, "", ""},
          {{x(), 0.3, false}, "evaluation", ""},
          {{x(), 0.0, true}, "p = 0", ""},
          {{x(), 1.0, true}, "p = 1", ""},
          {{x(), 1.5, true}, "p", "RuntimeError: between 0 and 1"}};
}

void define_dropout(OpTable& t) {
  const Samples samples = samples::custom(dropout_samples, {.dtypes = dtypes::floats, .gradient = false});
  t.define(native_dropout,
           {.doc = "input with elements dropped with probability p and the others scaled by 1 / (1 - p), and "
                   "the mask of those kept. Without `train` input and ones.",
            .tags = Tag::Random | Tag::NoOut,
            .decompose =
                [](Tensor input, double p, std::optional<bool> train) {
                  check_probability(p);
                  if (train.value_or(true)) return dropped(input, p);
                  return std::tuple<Tensor, Tensor>(clone(input), ones_like(input, DType::Bool));
                },
            .samples = samples});
  t.define(
      dropout,
      {.doc = "input with elements dropped with probability p and the others scaled by 1 / (1 - p); input "
              "itself without `train`.",
       .tags = Tag::Random | Tag::NoOut,
       .infer = rule::same_as_input(),
       .decompose =
           [](Tensor input, double p, bool train) {
             check_probability(p);
             return train && p > 0 ? std::get<0>(dropped(input, p)) : alias(input);
           },
       .samples = samples});
}

}  // namespace

void define_distribution(OpTable& t) {
  define_factories(t);
  define_likes(t);
  define_in_shape_of_self(t);
  define_dropout(t);
}

}  // namespace fl
