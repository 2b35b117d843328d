#include "flambeau/ops/aten/sampling.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/random_source.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using random::normal_numbers;
using random::uniform_numbers;
using random::whole_numbers;

constexpr Tag kDraw = Tag::Random | Tag::NonDifferentiable;

/// Samples only check shapes and errors: no two draws are equal.
Samples shapes_of(samples::MakeSamples make, DTypeSet dtypes = dtypes::full_floats) {
  return samples::custom(make, {.dtypes = dtypes, .gradient = false});
}

InferResult sizes_of_self(const InferCtx& c, int) {
  return {make_spec(c.spec(0).sizes, c.spec(0).dtype, c.spec(0).device)};
}

void check_std(const Tensor& std) {
  FL_CHECK(!is_complex(std.dtype()), RuntimeError, "normal expects standard deviation to be non-complex");
  FL_CHECK(!is_readable(std) || std.numel() == SymInt(0) || amin(std).item().to_double() >= 0, RuntimeError,
           "normal expects all elements of std >= 0.0");
}
void check_std(double std) {
  FL_CHECK(std >= 0, RuntimeError, "normal expects std >= 0.0, but found std {}", std);
}

/// Sizes of argument `of`, and of both where it is 2.
InferResult normal_rule(const InferCtx& c, int of) {
  if (of < 2) return {make_spec(c.spec(of).sizes, c.spec(of).dtype, c.spec(of).device)};
  return {make_spec(broadcast_sizes(c.spec(0).sizes, c.spec(1).sizes),
                    promote(c.spec(0).dtype, c.spec(1).dtype), c.spec(0).device)};
}
Tensors no_slopes(GradCtx& c, const Tensor& g) {
  Tensors out;
  for (int k = 0; k < 2; ++k)
    if (c.is_tensor(k)) out.push_back(zeros(c.in_spec(k).sizes, g.dtype(), g.device()));
  return out;
}

void define_normals(OpTable& t) {
  constexpr Tag kTags = Tag::Random | Tag::NoInPlace;
  t.define(normal_each, {.doc = "Numbers of normal distributions with a mean and a standard deviation each.",
                         .tags = kTags,
                         .decompose =
                             [](Tensor mean, Tensor std, Generator* g) {
                               check_std(std);
                               const Sizes sizes = broadcast_sizes(mean.sizes(), std.sizes());
                               const DType dtype = promote(mean.dtype(), std.dtype());
                               return add(mul(normal_numbers(sizes, dtype, mean.device(), g), std), mean);
                             },
                         .samples = shapes_of([](SampleMaker& m, const Samples&) {
                           return std::vector<Sample>{
                               {{m.make({3, 1}), m.make({4}, 0, 2)}, "", ""},
                               {{m.make({3}), m.make({3}, -2, -1)}, "std", "RuntimeError: std"}};
                         })});
  t.define(normal_about, {.doc = "Numbers of normal distributions with a mean each.",
                          .tags = kTags,
                          .infer = Infer(normal_rule, 0),
                          .decompose =
                              [](Tensor mean, double std, Generator* g) {
                                check_std(std);
                                const Tensor n = normal_numbers(mean.sizes(), mean.dtype(), mean.device(), g);
                                return add(mul(n, std), mean);
                              },
                          .grad = no_slopes,
                          .samples = shapes_of([](SampleMaker& m, const Samples&) {
                            return std::vector<Sample>{{{m.make({3, 4}), 0.5}, "", ""},
                                                       {{m.make({3}), -1.0}, "std", "RuntimeError: std"}};
                          })});
  t.define(normal_spread, {.doc = "Numbers of normal distributions with a standard deviation each.",
                           .tags = kTags,
                           .infer = Infer(normal_rule, 1),
                           .decompose =
                               [](double mean, Tensor std, Generator* g) {
                                 check_std(std);
                                 const Tensor n = normal_numbers(std.sizes(), std.dtype(), std.device(), g);
                                 return add(mul(n, std), mean);
                               },
                           .grad = no_slopes,
                           .samples = shapes_of([](SampleMaker& m, const Samples&) {
                             return std::vector<Sample>{{{0.5, m.make({3, 4}, 0, 2)}, "", ""}};
                           })});
  t.define(normal_of_size,
           {.doc = "Numbers of a normal distribution.",
            .tags = kTags | Tag::NonDifferentiable,
            .decompose =
                [](double mean, double std, IntList size, Generator* g, std::optional<DType> dtype,
                   std::optional<Device> device, std::optional<bool>) {
                  check_std(std);
                  const DType d = dtype.value_or(default_dtype());
                  return add(mul(normal_numbers(size, d, device.value_or(Device{}), g), std), mean);
                },
            .samples = shapes_of([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{{{1.0, 2.0, Sizes{2, 3}, Value(), m.dtype()}, "", ""},
                                         {{1.0, -2.0, Sizes{2}}, "std", "RuntimeError: std"}};
            })});
}

/// Uniform in (0, 1] of self's sizes.
Tensor uniform_above_zero(const Tensor& self, DType dtype, Generator* g) {
  return sub(1, uniform_numbers(self.sizes(), dtype, self.device(), g));
}

void define_continuous(OpTable& t) {
  const Samples floats = samples::unary({.dtypes = dtypes::floats, .gradient = false});
  t.define(exponential, {.doc = "Numbers of an exponential distribution; the values of self do not matter.",
                         .tags = kDraw,
                         .infer = sizes_of_self,
                         .decompose =
                             [](Tensor self, double lambd, Generator* g) {
                               check_dtype("exponential", self.dtype(), Takes::Floating);
                               FL_CHECK(lambd > 0, RuntimeError,
                                        "exponential_ expects lambda > 0.0, but found lambda={}", lambd);
                               const Tensor u = uniform_above_zero(self, self.dtype(), g);
                               return neg(div(log(u), lambd));
                             },
                         .samples = floats});
  t.define(cauchy, {.doc = "Numbers of a Cauchy distribution; the values of self do not matter.",
                    .tags = kDraw,
                    .infer = sizes_of_self,
                    .decompose =
                        [](Tensor self, double median, double sigma, Generator* g) {
                          check_dtype("cauchy", self.dtype(), Takes::Floating);
                          FL_CHECK(sigma > 0, RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma={}",
                                   sigma);
                          const Tensor u = uniform_numbers(self.sizes(), self.dtype(), self.device(), g);
                          return add(mul(tan(mul(sub(u, 0.5), std::numbers::pi)), sigma), median);
                        },
                    .samples = floats});
  t.define(log_normal, {.doc = "Numbers whose logarithms are of a normal distribution; the values of self do "
                               "not matter.",
                        .tags = kDraw,
                        .infer = sizes_of_self,
                        .decompose =
                            [](Tensor self, double mean, double std, Generator* g) {
                              check_dtype("log_normal", self.dtype(), Takes::Floating);
                              FL_CHECK(std > 0, RuntimeError,
                                       "log_normal_ expects std > 0.0, but found std={}", std);
                              const Tensor n = normal_numbers(self.sizes(), self.dtype(), self.device(), g);
                              return exp(add(mul(n, std), mean));
                            },
                        .samples = floats});
}

/// Limits of the integers that a dtype holds without gaps, the upper one excluded.
std::pair<int64_t, int64_t> whole_range(DType d) {
  switch (d) {
    case DType::Bool:
      return {0, 2};
    case DType::UInt8:
      return {0, 256};
    case DType::Float16:
      return {0, (1 << 11) + 1};
    case DType::BFloat16:
      return {0, (1 << 8) + 1};
    case DType::Float32:
      return {0, (1 << 24) + 1};
    case DType::Float64:
      return {0, (int64_t{1} << 53) + 1};
    default:
      return {0, size_of(d) == 8 ? std::numeric_limits<int64_t>::max() : int64_t{1} << (size_of(d) * 8 - 1)};
  }
}

void define_whole(OpTable& t) {
  const Samples real = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""}};
      },
      {.dtypes = dtypes::integers | dtypes::floats, .gradient = false});
  t.define(
      geometric,
      {.doc = "How many trials of probability p it takes to the first success; the values of self do not "
              "matter.",
       .tags = kDraw,
       .infer = sizes_of_self,
       .decompose =
           [](Tensor self, double p, Generator* g) {
             FL_CHECK(p > 0 && p < 1, RuntimeError, "geometric_ expects p to be in (0, 1), but got p={}", p);
             const Tensor u = uniform_above_zero(self, DType::Float64, g);
             return to_dtype(clamp_min(ceil(div(log(u), std::log1p(-p))), 1.0), self.dtype());
           },
       .samples = shapes_of(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), 0.3}, "", ""},
                                        {{m.make({3}, o.low, o.high), 1.5}, "p", "RuntimeError: in (0, 1)"}};
           },
           dtypes::integers | dtypes::floats)});
  t.define(random_any, {.doc = "Integers in [0, limit of the dtype]; the values of self do not matter.",
                        .tags = kDraw,
                        .infer = sizes_of_self,
                        .decompose =
                            [](Tensor self, Generator* g) {
                              const auto [low, high] = whole_range(self.dtype());
                              return whole_numbers(low, high, self.sizes(), self.dtype(), self.device(), g);
                            },
                        .samples = real});
  t.define(random_below, {.doc = "Integers in [0, to); the values of self do not matter.",
                          .tags = kDraw,
                          .infer = sizes_of_self,
                          .decompose =
                              [](Tensor self, int64_t to, Generator* g) {
                                return whole_numbers(0, to, self.sizes(), self.dtype(), self.device(), g);
                              },
                          .samples = shapes_of([](SampleMaker& m, const Samples&) {
                            return std::vector<Sample>{
                                {{m.make({3, 4}), 9}, "", ""},
                                {{m.make({3}), 0}, "empty range", "RuntimeError: less than"}};
                          })});
  t.define(
      random_between,
      {.doc = "Integers in [from, to), to the limit of the dtype without `to`; the values of self do not "
              "matter.",
       .tags = kDraw,
       .infer = sizes_of_self,
       .decompose =
           [](Tensor self, int64_t from, std::optional<int64_t> to, Generator* g) {
             const int64_t end = to.value_or(whole_range(self.dtype()).second);
             return whole_numbers(from, end, self.sizes(), self.dtype(), self.device(), g);
           },
       .samples = shapes_of([](SampleMaker& m, const Samples&) {
         return std::vector<Sample>{{{m.make({3, 4}), -2, 9}, "", ""},
                                    {{m.make({3, 4}), 2, Value()}, "open", ""}};
       })});
}

void define_factories(OpTable& t) {
  constexpr Tag kTags = Tag::Random | Tag::NoInPlace | Tag::NonDifferentiable;
  t.define(randint_below, {.doc = "Integers in [0, high).",
                           .tags = kTags,
                           .decompose =
                               [](SymInt high, IntList size, Generator* g, std::optional<DType> dtype,
                                  std::optional<Device> device, std::optional<bool>) {
                                 return whole_numbers(0, high, size, dtype.value_or(DType::Int64),
                                                      device.value_or(Device{}), g);
                               },
                           .samples = shapes_of([](SampleMaker&, const Samples&) {
                             return std::vector<Sample>{
                                 {{5, Sizes{3, 5}}, "", ""},
                                 {{0, Sizes{2}}, "empty range", "RuntimeError: less than"}};
                           })});
  t.define(randint_like_below,
           {.doc = "Integers in [0, high) with self's sizes, dtype and device unless given.",
            .tags = kTags | Tag::NoOut,
            .decompose =
                [](Tensor self, SymInt high, std::optional<DType> dtype, std::optional<Device> device,
                   std::optional<bool>, std::optional<MemoryFormat>) {
                  return whole_numbers(0, high, self.sizes(), dtype.value_or(self.dtype()),
                                       device.value_or(self.device()), nullptr);
                },
            .samples = shapes_of([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{{{m.make({3, 4}), 9}, "", ""}};
            })});
  t.define(randperm, {.doc = "The integers 0 to n - 1 in random order: the order of n draws of 63 bits.",
                      .tags = kTags,
                      .decompose =
                          [](SymInt n, Generator* g, std::optional<DType> dtype, std::optional<Device> device,
                             std::optional<bool>) {
                            FL_CHECK(n >= SymInt(0), RuntimeError, "n must be non-negative, got {}", n);
                            const Tensor bits = whole_numbers(0, std::numeric_limits<int64_t>::max(), {n},
                                                              DType::Int64, device.value_or(Device{}), g);
                            return to_dtype(stable_argsort(bits, true, 0, false),
                                            dtype.value_or(DType::Int64));
                          },
                      .samples = shapes_of([](SampleMaker&, const Samples&) {
                        return std::vector<Sample>{{{7}, "", ""},
                                                   {{5, Value(), DType::Float32}, "dtype", ""},
                                                   {{0}, "none", ""},
                                                   {{-1}, "negative", "RuntimeError: non-negative"}};
                      })});
}

void check_distribution(const Tensor& self, SymInt count, bool replacement) {
  FL_CHECK(self.dim() == 1 || self.dim() == 2, RuntimeError, "prob_dist must be 1 or 2 dim");
  FL_CHECK(is_floating(self.dtype()), RuntimeError,
           "multinomial only supports floating-point dtypes for input, got: {}", name(self.dtype()));
  FL_CHECK(count > SymInt(0), RuntimeError, "cannot sample n_sample <= 0 samples");
  FL_CHECK(replacement || count <= self.size(-1), RuntimeError,
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (!is_readable(self) || self.numel() == SymInt(0)) return;
  FL_CHECK(all_all(logical_and(isfinite(self), ge(self, 0))).item().to_bool(), RuntimeError,
           "probability tensor contains either `inf`, `nan` or element < 0");
  FL_CHECK(all_all(gt(sum(self, IntList{SymInt(-1)}), 0)).item().to_bool(), RuntimeError,
           "invalid multinomial distribution (sum of probabilities <= 0)");
}

/// Without replacement: the largest of p / e for exponential draws e. With: where uniform draws fall among
/// the running sums; never on the flat part at the end.
Tensor choices(Tensor self, SymInt count, bool replacement, Generator* g) {
  check_distribution(self, count, replacement);
  const Tensor p = to_compute(self);
  if (!replacement) {
    const Tensor e = neg(log(uniform_above_zero(p, p.dtype(), g)));
    return std::get<1>(topk(div(p, clamp_min(e, 1e-37)), count, -1));
  }
  Sizes sizes = p.sizes();
  sizes.back() = count;
  const Tensor ends = cumsum(p, -1), total = narrow(ends, -1, p.size(-1) - SymInt(1), 1);
  const Tensor draws = mul(uniform_numbers(sizes, p.dtype(), p.device(), g), total);
  const Tensor last = argmax(ends, -1, true);
  return minimum(searchsorted(ends, draws, false, true), last);
}

void define_choices(OpTable& t) {
  t.define(
      multinomial,
      {.doc = "Positions drawn from each line with the probabilities in its proportions, with or without "
              "replacement.",
       .tags = Tag::Random | Tag::NoInPlace | Tag::NonDifferentiable,
       .decompose = choices,
       .samples = shapes_of(
           [](SampleMaker& m, const Samples&) {
             return std::vector<Sample>{
                 {{m.make({3, 5}, 0.5, 2), 3}, "", ""},
                 {{m.make({5}, 0.5, 2), 7, true}, "repeated", ""},
                 {{m.make({2}, 0.5, 2), 3}, "too many", "RuntimeError: without replacement"},
                 {{m.make({3}, -2, -1), 1}, "negative", "RuntimeError: element < 0"}};
           },
           dtypes::floats)});
}

}  // namespace

void define_sampling(OpTable& t) {
  define_normals(t);
  define_continuous(t);
  define_whole(t);
  define_factories(t);
  define_choices(t);
}

}  // namespace fl
