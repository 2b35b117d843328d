#include "flambeau/ops/prims/factory.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"
#include "flambeau/tensor/number_fits.h"

namespace fl {
namespace {

constexpr Tag kFactory = Tag::Factory | Tag::NonDifferentiable;
constexpr Tag kLike = Tag::NonDifferentiable | Tag::NoInPlace;
using DTypeOpt = std::optional<DType>;
using DeviceOpt = std::optional<Device>;
using FormatOpt = std::optional<MemoryFormat>;

/// A contiguous spec from the arguments size, dtype and device of a factory, the last two at `options`.
TensorSpec factory_spec(const InferCtx& c, int options, IntList sizes, DType default_dtype) {
  for (SymInt s : sizes) {
    FL_CHECK(s >= SymInt(0), RuntimeError, "Trying to create tensor with negative dimension {}: {}", s,
             to_string(sizes));
  }
  return make_spec(sizes, c.has(options) ? c.arg(options).dtype() : default_dtype,
                   c.has(options + 1) ? c.arg(options + 1).device() : Device{});
}

/// One number in every place.
Lowered constant_fill(const LowerCtx& c, std::function<Val(BodyOps&, DType)> value) {
  Lowered l;
  l.sizes = c.out_sizes();
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [dtype, value](BodyOps& s, std::span<const Expr>, std::span<const Expr>) {
    return std::vector<Val>{value(s, dtype)};
  };
  return l;
}

InferResult like_rule(const InferCtx& c, int options) {
  InferResult r = rule::same_as_input().function(c, 0);
  r[0].offset = 0;
  if (c.has(options)) r[0].dtype = c.arg(options).dtype();
  if (c.has(options + 1)) r[0].device = c.arg(options + 1).device();
  if (c.has(options + 3) && c.arg(options + 3).memory_format() != MemoryFormat::Preserve) {
    r[0].strides = strides_for(r[0].sizes, c.arg(options + 3).memory_format());
  }
  return r;
}

Samples of_sizes(samples::MakeSamples make) { return samples::custom(make, {.gradient = false}); }

void define_full(OpTable& t) {
  t.define(full,
           {.doc = "fill_value in every place. The dtype is that of the number unless given.",
            .tags = kFactory,
            .infer =
                [](const InferCtx& c, int) {
                  const Scalar value = c.arg(1).scalar();
                  const TensorSpec s = factory_spec(c, 2, c.ints(0), value.default_dtype());
                  check_fits(value, s.dtype);
                  return InferResult{s};
                },
            .lower =
                [](const LowerCtx& c) {
                  return constant_fill(c, [](BodyOps& s, DType d) { return s.number(1, d); });
                },
            .samples = of_sizes([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{
                  {{Sizes{2, 3}, 1.5, m.dtype()}, "", ""},
                  {{Sizes{}, 2}, "0-dim", ""},
                  {{Sizes{0, 3}, true}, "size 0", ""},
                  {{Sizes{-1}, 1}, "negative", "RuntimeError: negative dimension -1"},
                  {{Sizes{2}, 300, DType::Int8}, "too large", "RuntimeError: type int8 without overflow"}};
            })});
  t.define(full_like,
           {.doc = "fill_value in every place, with self's sizes, layout, dtype and device unless given.",
            .tags = kLike,
            .infer =
                [](const InferCtx& c, int) {
                  const InferResult r = like_rule(c, 2);
                  check_fits(c.arg(1).scalar(), r[0].dtype);
                  return r;
                },
            .lower =
                [](const LowerCtx& c) {
                  return constant_fill(c, [](BodyOps& s, DType d) { return s.number(1, d); });
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return samples::with_arguments(m, o, {{Value(2)}, {Value(1.5), Value(DType::Float64)}});
                },
                {.dtypes = dtypes::all})});
}

void define_empty(OpTable& t) {
  const LowerFn zero = [](const LowerCtx& c) {
    return constant_fill(c, [](BodyOps& s, DType d) { return s.constant(d, 0); });
  };
  t.define(
      empty,
      {.doc = "A tensor whose elements the caller is going to write. They are 0, so that programs that read "
              "them by mistake are at least repeatable.",
       .tags = kFactory,
       .infer =
           [](const InferCtx& c, int) {
             TensorSpec s = factory_spec(c, 1, c.ints(0), default_dtype());
             if (c.has(4)) s.strides = strides_for(s.sizes, c.arg(4).memory_format());
             return InferResult{s};
           },
       .lower = zero,
       .samples = of_sizes([](SampleMaker& m, const Samples&) {
         return std::vector<Sample>{{{Sizes{2, 3}, m.dtype()}, "", ""}, {{Sizes{}}, "0-dim", ""}};
       })});
  t.define(empty_strided, {.doc = "As empty, with given strides.",
                           .tags = kFactory,
                           .infer =
                               [](const InferCtx& c, int) {
                                 TensorSpec s = factory_spec(c, 2, c.ints(0), default_dtype());
                                 const IntList strides = c.ints(1);
                                 FL_CHECK(strides.size() == s.sizes.size(), RuntimeError,
                                          "mismatch in length of strides and shape: {} and {}",
                                          to_string(strides), to_string(s.sizes));
                                 for (SymInt i : strides)
                                   FL_CHECK(i.is_symbolic() || i.raw() >= 0, RuntimeError,
                                            "strides must be non-negative, got {}", to_string(strides));
                                 s.strides.assign(strides.begin(), strides.end());
                                 return InferResult{s};
                               },
                           .lower = zero,
                           .samples = of_sizes([](SampleMaker&, const Samples&) {
                             return std::vector<Sample>{
                                 {{Sizes{2, 3}, Sizes{1, 2}}, "", ""},
                                 {{Sizes{2}, Sizes{-1}}, "backwards", "RuntimeError: non-negative"},
                                 {{Sizes{5}, Sizes{int64_t{1} << 62}}, "far", "RuntimeError: overflow"}};
                           })});
  t.define(empty_like, {.doc = "As empty, with self's sizes, layout, dtype and device unless given.",
                        .tags = kLike,
                        .infer = Infer(like_rule, 1),
                        .lower = zero,
                        .samples = samples::unary({.dtypes = dtypes::all, .gradient = false})});
}

SymInt arange_size(const Scalar& start, const Scalar& end, const Scalar& step) {
  FL_CHECK(step.is_float() ? step.to_double() != 0 : step.sym_int() != SymInt(0), RuntimeError,
           "step must be nonzero");
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    const SymInt a = start.sym_int(), b = end.sym_int(), by = step.sym_int();
    const bool up = by > SymInt(0);
    FL_CHECK(up ? a <= b : a >= b, RuntimeError,
             "upper bound and lower bound inconsistent with step sign: start {}, end {}, step {}", a, b, by);
    return up ? ceildiv(b - a, by) : ceildiv(a - b, -by);
  }
  const double a = start.to_double(), b = end.to_double(), by = step.to_double();
  FL_CHECK(std::isfinite(a) && std::isfinite(b), RuntimeError, "unsupported range: {} -> {}", a, b);
  FL_CHECK((by > 0 && b >= a) || (by < 0 && b <= a), RuntimeError,
           "upper bound and lower bound inconsistent with step sign: start {}, end {}, step {}", a, b, by);
  return static_cast<int64_t>(std::ceil((b - a) / by));
}

Lowered lower_arange(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  // Floats are computed in float64 and rounded once.
  const DType out = compute_dtype(c.out().dtype), dtype = is_integral(out) ? DType::Int64 : DType::Float64;
  l.body = [out, dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    const Val at = s.cast(s.index(i[0]), dtype);
    return std::vector<Val>{s.cast(s.add(s.number(0, dtype), s.mul(at, s.number(2, dtype))), out)};
  };
  return l;
}

Lowered lower_linspace(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const DType out = compute_dtype(c.out().dtype), dtype = is_floating(out) ? out : DType::Float64;
  const int64_t steps = c.arg(2).to_int();
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    const auto bound = [&](int arg) {
      const Val x = s.number(arg, dtype);
      return is_integral(out) ? s.trunc(x) : x;
    };
    const Val start = bound(0), end = bound(1);
    if (steps == 1) return std::vector<Val>{s.cast(start, out)};
    // Each half from its own end, so that both ends are exact.
    const Val step = s.div(s.sub(end, start), s.constant(dtype, static_cast<double>(steps - 1)));
    const Val low = s.add(start, s.mul(step, s.cast(s.index(i[0]), dtype)));
    const Val high = s.sub(end, s.mul(step, s.cast(s.index(Expr(steps - 1) - i[0]), dtype)));
    const Val first_half = s.lt(s.index(i[0]), s.constant(DType::Int64, steps / 2));
    return std::vector<Val>{s.cast(s.select(first_half, low, high), out)};
  };
  return l;
}

void define_ranges(OpTable& t) {
  t.define(arange, {.doc = "start, start + step, ... before end. int64 if all three are integers.",
                    .tags = kFactory,
                    .infer =
                        [](const InferCtx& c, int) {
                          const Scalar a = c.arg(0).scalar(), b = c.arg(1).scalar(), by = c.arg(2).scalar();
                          const bool whole = a.is_integral() && b.is_integral() && by.is_integral();
                          return InferResult{factory_spec(c, 3, {arange_size(a, b, by)},
                                                          whole ? DType::Int64 : default_dtype())};
                        },
                    .lower = lower_arange,
                    .samples = of_sizes([](SampleMaker& m, const Samples&) {
                      return std::vector<Sample>{
                          {{0, 5}, "", ""},
                          {{1, 10, 3, m.dtype()}, "dtype", ""},
                          {{10, 0, -4}, "down", ""},
                          {{0.5, 2.0, 0.25}, "float", ""},
                          {{3, 3}, "empty", ""},
                          {{0, 5, 0}, "step 0", "RuntimeError: nonzero"},
                          {{0, 5, -1}, "wrong sign", "RuntimeError: inconsistent with step sign"}};
                    })});
  t.define(linspace, {.doc = "`steps` numbers evenly spaced from start to end, both included.",
                      .tags = kFactory,
                      .infer =
                          [](const InferCtx& c, int) {
                            FL_CHECK(c.sym_int(2) >= SymInt(0), RuntimeError,
                                     "number of steps must be non-negative, got {}", c.sym_int(2));
                            return InferResult{factory_spec(c, 3, {c.sym_int(2)}, default_dtype())};
                          },
                      .lower = lower_linspace,
                      .samples = of_sizes([](SampleMaker& m, const Samples&) {
                        return std::vector<Sample>{{{0, 1, 11, m.dtype()}, "", ""},
                                                   {{-2.5, 3.5, 7}, "float", ""},
                                                   {{1, 2, 1}, "one", ""},
                                                   {{1, 2, 0}, "empty", ""},
                                                   {{0, 1, -1}, "negative", "RuntimeError: non-negative"}};
                      })});
  t.define(eye, {.doc = "1 on the diagonal of an n by m matrix, 0 elsewhere.",
                 .tags = kFactory,
                 .infer =
                     [](const InferCtx& c, int) {
                       return InferResult{factory_spec(c, 2, {c.sym_int(0), c.sym_int(1)}, default_dtype())};
                     },
                 .lower =
                     [](const LowerCtx& c) {
                       Lowered l;
                       l.sizes = c.out_sizes();
                       const DType dtype = compute_dtype(c.out().dtype);
                       l.body = [dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
                         const Val on = s.eq(s.index(i[0]), s.index(i[1]));
                         return std::vector<Val>{s.select(on, s.constant(dtype, 1), s.constant(dtype, 0))};
                       };
                       return l;
                     },
                 .samples = of_sizes([](SampleMaker& m, const Samples&) {
                   return std::vector<Sample>{{{3, 4, m.dtype()}, "", ""}, {{0, 2}, "size 0", ""}};
                 })});
}

void define_more_layouts(OpTable& t) {
  t.define(logspace,
           {.doc = "`steps` powers of base whose exponents are evenly spaced from start to end.",
            .tags = Tag::NonDifferentiable,
            .decompose =
                [](Scalar start, Scalar end, int64_t steps, double base, DTypeOpt dtype, DeviceOpt device,
                   std::optional<bool>) {
                  FL_CHECK(steps >= 0, RuntimeError, "number of steps must be non-negative, got {}", steps);
                  const DType d = dtype.value_or(default_dtype());
                  const auto bound = [&](const Scalar& s) { return is_integral(d) ? Scalar(s.to_int()) : s; };
                  const Tensor exponents = linspace(bound(start), bound(end), steps, DType::Float64, device);
                  return to_dtype(_pow(base, exponents), d);
                },
            .samples = of_sizes([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{{{0, 1, 11, 10.0, m.dtype()}, "", ""},
                                         {{-2.5, 3.5, 7, 2.0}, "base 2", ""},
                                         {{0, 1, -1}, "negative", "RuntimeError: non-negative"}};
            })});
  t.define(empty_permuted,
           {.doc = "As empty, with the dimensions in memory in a given order, the outermost first.",
            .tags = Tag::NonDifferentiable,
            .decompose =
                [](IntList size, IntList layout, DTypeOpt dtype, DeviceOpt device, std::optional<bool>) {
                  FL_CHECK(layout.size() == size.size(), RuntimeError,
                           "Number of dimensions in size does not match the length of the physical_layout; "
                           "i.e. len(size) = {} is not equal to len(physical_layout) = {}",
                           size.size(), layout.size());
                  const auto rank = static_cast<int64_t>(size.size());
                  Sizes strides(rank, SymInt(0));
                  std::vector<bool> seen(rank);
                  SymInt step = 1;
                  for (int64_t k = rank - 1; k >= 0; --k) {
                    const int64_t d = layout[k].expect_int();
                    FL_CHECK(
                        d >= 0 && d < rank, RuntimeError,
                        "Dimension out of range (expected to be between 0 and {}, but got {} at index {})",
                        rank - 1, d, k);
                    FL_CHECK(!seen[d], RuntimeError, "Duplicate dim not allowed: {}", d);
                    seen[d] = true;
                    strides[d] = step;
                    step = step * max(size[d], 1);
                  }
                  return empty_strided(size, strides, dtype, device);
                },
            .samples = of_sizes([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{{{Sizes{2, 3, 4}, Sizes{2, 0, 1}, m.dtype()}, "", ""},
                                         {{Sizes{2, 3}, Sizes{0, 0}}, "twice", "RuntimeError: Duplicate"}};
            })});
  t.define(
      new_empty_strided,
      {.doc = "As empty_strided, with self's dtype and device unless given.",
       .tags = Tag::NoInPlace | Tag::NonDifferentiable,
       .decompose =
           [](Tensor self, IntList size, IntList stride, DTypeOpt dtype, DeviceOpt device,
              std::optional<bool>) {
             return empty_strided(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device()));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{{{m.make({2}, o.low, o.high), Sizes{2, 3}, Sizes{1, 2}}, "", ""}};
           },
           {.dtypes = dtypes::all, .gradient = false})});
}

void define_filled(OpTable& t) {
  const Samples sizes = of_sizes([](SampleMaker& m, const Samples&) {
    return std::vector<Sample>{
        {{Sizes{2, 3}, m.dtype()}, "", ""}, {{Sizes{}}, "0-dim", ""}, {{Sizes{0}}, "size 0", ""}};
  });
  t.define(zeros, {.doc = "0 in every place.",
                   .decompose =
                       [](IntList size, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin) {
                         return full(size, 0, dtype.value_or(default_dtype()), device, pin);
                       },
                   .samples = sizes});
  t.define(ones, {.doc = "1 in every place.",
                  .decompose =
                      [](IntList size, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin) {
                        return full(size, 1, dtype.value_or(default_dtype()), device, pin);
                      },
                  .samples = sizes});
  const Samples like = samples::unary({.dtypes = dtypes::all, .gradient = false});
  t.define(zeros_like,
           {.doc = "0 in every place, with self's sizes, layout, dtype and device unless given.",
            .tags = Tag::NoInPlace,
            .decompose = [](Tensor self, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin,
                            FormatOpt format) { return full_like(self, 0, dtype, device, pin, format); },
            .samples = like});
  t.define(ones_like,
           {.doc = "1 in every place, with self's sizes, layout, dtype and device unless given.",
            .tags = Tag::NoInPlace,
            .decompose = [](Tensor self, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin,
                            FormatOpt format) { return full_like(self, 1, dtype, device, pin, format); },
            .samples = like});
}

void define_new(OpTable& t) {
  const Samples sizes = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{{{m.make({2}, o.low, o.high), Sizes{2, 3}}, "", ""},
                                   {{m.make({2}, o.low, o.high), Sizes{}, DType::Int32}, "0-dim, dtype", ""}};
      },
      {.dtypes = dtypes::all, .gradient = false});
  t.define(new_empty,
           {.doc = "As empty, with self's dtype and device unless given.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, IntList size, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin) {
                  return empty(size, dtype.value_or(self.dtype()), device.value_or(self.device()), pin);
                },
            .samples = sizes});
  t.define(new_zeros,
           {.doc = "As zeros, with self's dtype and device unless given.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, IntList size, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin) {
                  return full(size, 0, dtype.value_or(self.dtype()), device.value_or(self.device()), pin);
                },
            .samples = sizes});
  t.define(new_ones,
           {.doc = "As ones, with self's dtype and device unless given.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, IntList size, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin) {
                  return full(size, 1, dtype.value_or(self.dtype()), device.value_or(self.device()), pin);
                },
            .samples = sizes});
  t.define(new_full,
           {.doc = "As full, with self's dtype and device unless given.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, IntList size, Scalar value, DTypeOpt dtype, DeviceOpt device,
                   std::optional<bool> pin) {
                  return full(size, value, dtype.value_or(self.dtype()), device.value_or(self.device()), pin);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2}, o.low, o.high), Sizes{2, 3}, 2}, "", ""}};
                },
                {.dtypes = dtypes::all, .gradient = false})});
}

void define_short_forms(OpTable& t) {
  t.define(scalar_tensor_op, {.doc = "A 0-dim tensor of a number, of the default dtype unless one is given.",
                              .decompose =
                                  [](Scalar s, DTypeOpt dtype, DeviceOpt device, std::optional<bool> pin) {
                                    return full(IntList(), s, dtype.value_or(default_dtype()), device, pin);
                                  },
                              .samples = of_sizes([](SampleMaker& m, const Samples&) {
                                return std::vector<Sample>{{{2.5, m.dtype()}, "", ""}, {{3}, "int", ""}};
                              })});
  t.define(arange_end,
           {.doc = "0, 1, ... before end.",
            .decompose = [](Scalar end, DTypeOpt dtype, DeviceOpt device,
                            std::optional<bool> pin) { return arange(0, end, 1, dtype, device, pin); },
            .samples = of_sizes([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{{{5}, "", ""}, {{2.5, m.dtype()}, "float", ""}};
            })});
  t.define(square_eye, {.doc = "The n by n identity matrix.",
                        .decompose = [](SymInt n, DTypeOpt dtype, DeviceOpt device,
                                        std::optional<bool> pin) { return eye(n, n, dtype, device, pin); },
                        .samples = of_sizes([](SampleMaker& m, const Samples&) {
                          return std::vector<Sample>{{{3, m.dtype()}, "", ""}, {{0}, "size 0", ""}};
                        })});
}

}  // namespace

void define_factory(OpTable& t) {
  define_full(t);
  define_empty(t);
  define_ranges(t);
  define_more_layouts(t);
  define_filled(t);
  define_new(t);
  define_short_forms(t);
}

}  // namespace fl
