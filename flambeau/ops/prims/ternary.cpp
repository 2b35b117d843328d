#include "flambeau/ops/prims/ternary.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

InferResult masked_fill_rule(const InferCtx& c, int) {
  const DType self = c.spec(0).dtype;
  const bool complex_value =
      c.is_tensor(2) ? is_complex(c.spec(2).dtype) : c.arg(2).is_number() && c.arg(2).scalar().is_complex();
  FL_CHECK(!c.is_tensor(2) || c.spec(2).dim() == 0, RuntimeError,
           "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
           c.spec(2).dim());
  FL_CHECK(!c.is_tensor(1) || c.spec(1).dtype == DType::Bool, RuntimeError,
           "masked_fill_ only supports boolean masks, but got mask with dtype {}", name(c.spec(1).dtype));
  FL_CHECK(is_complex(self) || !complex_value, RuntimeError,
           "value cannot be converted to type {} without overflow", name(self));
  return rule::elementwise_result(c, Promote::First);
}

void define_selection(OpTable& t) {
  t.define(where, {.doc = "self where condition holds, other elsewhere.",
                   .tags = Tag::Elementwise,
                   .infer = rule::elementwise(Promote::Where),
                   .scalar = [](ScalarOps& s, Val condition, Val a,
                                Val b) { return s.select(s.cast(condition, DType::Bool), a, b); },
                   .saves = saves::in({0}),
                   .grad =
                       [](GradCtx& c, const Tensor& g) {
                         const Tensor condition = c.in(0);
                         return Tensors{Tensor(), c.needs(1) ? where(condition, g, 0) : Tensor(),
                                        c.needs(2) ? where(condition, 0, g) : Tensor()};
                       },
                   .samples = samples::where({.dtypes = dtypes::all})});
  t.define(
      masked_fill,
      {.doc = "value where mask holds, self elsewhere; in self's dtype.",
       .tags = Tag::Elementwise | Tag::CastsInPlace,
       .infer = masked_fill_rule,
       .scalar =
           [](ScalarOps& s, Val self, Val mask, Val value) {
             const Val set = mask.dtype == DType::Bool ? mask : s.ne(mask, s.like(mask, 0));
             return s.select(set, value, self);
           },
       .saves = saves::in({1}),
       .grad =
           [](GradCtx& c, const Tensor& g) {
             const Tensor mask = c.in(1);
             return Tensors{c.needs(0) ? where(mask, 0, g) : Tensor(), Tensor(),
                            c.needs(2) ? where(mask, g, 0) : Tensor()};
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({3, 4}, o.low, o.high), m.make({3, 4}, DType::Bool, 0, 1), Value(1)}, "number", ""},
                 {{m.make({3, 4}, o.low, o.high), m.make({4}, DType::Bool, 0, 1), m.make({}, o.low, o.high)},
                  "broadcast mask",
                  ""},
                 {{m.make({4}, o.low, o.high), m.make({2, 1}, DType::Bool, 0, 1), Value(0)},
                  "broadcast self",
                  ""},
                 {{m.make({0, 4}, o.low, o.high), m.make({0, 1}, DType::Bool, 0, 1), Value(0)},
                  "size 0",
                  ""}};
           },
           {.dtypes = dtypes::all})});
}

void define_bounds(OpTable& t) {
  const Samples real = samples::binary({.dtypes = dtypes::real});
  t.define(clamp_min, {.doc = "self, or min where self is less; nan stays.",
                       .tags = Tag::Elementwise,
                       .infer = rule::real(),
                       .scalar = [](ScalarOps& s, Val x, Val low) { return s.maximum(x, low); },
                       .saves = saves::in({0, 1}),
                       .grad =
                           [](GradCtx& c, const Tensor& g) {
                             const Tensor inside = ge(operand(c, 0), operand(c, 1));
                             return Tensors{c.needs(0) ? where(inside, g, 0) : Tensor(),
                                            c.needs(1) ? where(inside, 0, g) : Tensor()};
                           },
                       .samples = real});
  t.define(clamp_max, {.doc = "self, or max where self is more; nan stays.",
                       .tags = Tag::Elementwise,
                       .infer = rule::real(),
                       .scalar = [](ScalarOps& s, Val x, Val high) { return s.minimum(x, high); },
                       .saves = saves::in({0, 1}),
                       .grad =
                           [](GradCtx& c, const Tensor& g) {
                             const Tensor inside = le(operand(c, 0), operand(c, 1));
                             return Tensors{c.needs(0) ? where(inside, g, 0) : Tensor(),
                                            c.needs(1) ? where(inside, 0, g) : Tensor()};
                           },
                       .samples = real});
}

/// From the end that is nearer, so that weights 0 and 1 give the ends exactly.
Val interpolate(ScalarOps& s, Val a, Val b, Val w) {
  const Val difference = s.sub(b, a);
  const Val from_a = s.add(a, s.mul(w, difference));
  const Val from_b = s.sub(b, s.mul(difference, s.sub(s.like(w, 1), w)));
  return s.select(s.lt(s.abs(w), s.like(w, 0.5)), from_a, from_b);
}

InferResult addcdiv_rule(const InferCtx& c, int p) {
  InferResult r = rule::arithmetic().function(c, p);
  FL_CHECK(!is_integral(r[0].dtype, true), RuntimeError,
           "Integer division with addcdiv is not supported: expected a floating point tensor, got {}",
           name(r[0].dtype));
  return r;
}

void define_fused_arithmetic(OpTable& t) {
  t.define(lerp, {.doc = "self + weight * (end - self).",
                  .tags = Tag::Elementwise,
                  .infer = rule::real(),
                  .scalar = interpolate,
                  .saves = saves::in({0, 1, 2}),
                  .grad =
                      [](GradCtx& c, const Tensor& g) {
                        return Tensors{c.needs(0) ? mul(g, sub(1, operand(c, 2))) : Tensor(),
                                       c.needs(1) ? mul(g, operand(c, 2)) : Tensor(),
                                       c.needs(2) ? mul(g, sub(operand(c, 1), operand(c, 0))) : Tensor()};
                      },
                  .samples = samples::ternary({.dtypes = dtypes::floats})});
  t.define(addcmul,
           {.doc = "self + value * tensor1 * tensor2.",
            .tags = Tag::Elementwise,
            .infer = rule::arithmetic(),
            .scalar = [](ScalarOps& s, Val x, Val a, Val b,
                         Val value) { return s.add(x, s.mul(s.mul(value, a), b)); },
            .saves = saves::in({1, 2}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const Scalar value = conj_if_complex_number(c.arg(3).scalar());
                  return Tensors{g, c.needs(1) ? mul(mul(g, conj_operand(c, 2)), value) : Tensor(),
                                 c.needs(2) ? mul(mul(g, conj_operand(c, 1)), value) : Tensor()};
                },
            .samples = samples::ternary({.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes})});
  t.define(addcdiv,
           {.doc = "self + value * tensor1 / tensor2. Raises RuntimeError on integers.",
            .tags = Tag::Elementwise,
            .infer = Infer(addcdiv_rule, static_cast<int>(Promote::Default)),
            .scalar = [](ScalarOps& s, Val x, Val a, Val b,
                         Val value) { return s.add(x, s.div(s.mul(value, a), b)); },
            .saves = saves::in({1, 2}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const Scalar value = conj_if_complex_number(c.arg(3).scalar());
                  const auto divisor = conj_operand(c, 2);
                  const Tensor by_first = mul(div(g, divisor), value);
                  return Tensors{
                      g, by_first,
                      c.needs(2) ? neg(mul(by_first, div(conj_operand(c, 1), divisor))) : Tensor()};
                },
            .samples = samples::ternary({.dtypes = dtypes::floats | dtypes::complexes, .low = 0.5})});
}

/// The result has exactly self's sizes: the other arguments broadcast to them.
InferResult into_self_rule(const InferCtx& c, int p) {
  InferResult r = rule::elementwise_result(c, static_cast<Promote>(p));
  const TensorSpec& self = c.spec(0);
  FL_CHECK(r[0].sizes.size() == self.sizes.size() &&
               broadcast_sizes(self.sizes, r[0].sizes).size() == self.sizes.size(),
           RuntimeError, "{}: a tensor of sizes {} can't be broadcast to the sizes {} of self",
           c.op().schema.name, to_string(c.is_tensor(1) ? c.spec(1).sizes : Sizes{}), to_string(self.sizes));
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    FL_CHECK(r[0].sizes[d] == self.sizes[d], RuntimeError,
             "{}: a tensor of sizes {} can't be broadcast to the sizes {} of self", c.op().schema.name,
             to_string(c.spec(1).sizes), to_string(self.sizes));
  }
  return r;
}

InferResult layout_rule(const InferCtx& c, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) return rule::same_as_input().function(c, 0);
  TensorSpec out = c.spec(0);
  out.strides = strides_for(out.sizes, format);
  out.offset = 0;
  return {std::move(out)};
}
InferResult clone_rule(const InferCtx& c, int) {
  return layout_rule(c, c.has(1) ? c.arg(1).memory_format() : MemoryFormat::Preserve);
}
InferResult to_copy_rule(const InferCtx& c, int) {
  InferResult r = layout_rule(c, c.has(5) ? c.arg(5).memory_format() : MemoryFormat::Preserve);
  if (c.has(1)) r[0].dtype = c.arg(1).dtype();
  if (c.has(2)) r[0].device = c.arg(2).device();
  return r;
}

Lowered lower_copy(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Val x = s.load(0, i);
    if (is_complex(x.dtype) && !is_complex(dtype)) x = s.real(x);
    return std::vector<Val>{s.cast(x, dtype)};
  };
  return l;
}

void define_copies(OpTable& t) {
  t.define(copy,
           {.doc = "src broadcast to self's sizes in self's dtype. The values of self do not matter.",
            .tags = Tag::Elementwise | Tag::CastsInPlace,
            .infer = Infer(into_self_rule, static_cast<int>(Promote::First)),
            .scalar = [](ScalarOps&, Val, Val src) { return src; },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return Tensors{c.needs(0) ? zeros_like(g) : Tensor(), g};
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({3, 4}, o.low, o.high), m.make({3, 4}, o.low, o.high)}, "equal sizes", ""},
                      {{m.make({3, 4}, o.low, o.high), m.make({4}, DType::Float64, 0, 3)}, "other dtype", ""},
                      {{m.make_transposed({3, 4}, o.low, o.high), m.make({}, o.low, o.high)}, "0-dim", ""},
                      {{m.make({4}, o.low, o.high), m.make({3, 4}, o.low, o.high)},
                       "too many dimensions",
                       "RuntimeError: can't be broadcast"}};
                },
                {.dtypes = dtypes::all})});
  t.define(fill,
           {.doc = "value in every place, with self's sizes and dtype. The values of self do not matter.",
            .tags = Tag::Elementwise | Tag::CastsInPlace,
            .infer = Infer(into_self_rule, static_cast<int>(Promote::First)),
            .scalar = [](ScalarOps&, Val, Val value) { return value; },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return Tensors{c.needs(0) ? zeros_like(g) : Tensor(), g};
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  std::vector<Sample> out = samples::with_arguments(m, o, {{Value(2)}});
                  out.push_back({{m.make({3, 4}, o.low, o.high), m.make({}, o.low, o.high)}, "tensor", ""});
                  return out;
                },
                {.dtypes = dtypes::all})});
  t.define(clone, {.doc = "A copy. Its layout is self's where that is dense, or the memory format given.",
                   .tags = Tag::NoInPlace,
                   .infer = clone_rule,
                   .lower = lower_copy,
                   .grad = [](GradCtx&, const Tensor& g) { return g; },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         return samples::with_arguments(m, o, {{}, {Value(MemoryFormat::Contiguous)}});
                       },
                       {.dtypes = dtypes::all})});
  t.define(_to_copy,
           {.doc = "A copy in another dtype, by C++'s conversion; complex to real drops the imaginary part.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .infer = to_copy_rule,
            .lower = lower_copy,
            .grad = [](GradCtx&, const Tensor& g) { return g; },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return samples::with_arguments(m, o,
                                                 {{Value(DType::Float64)},
                                                  {Value(DType::Float16)},
                                                  {Value(DType::Int32)},
                                                  {Value(DType::Bool)}});
                },
                {.dtypes = dtypes::all, .low = 0, .high = 3, .gradient = false})});
  t.define(complex, {.doc = "Complex numbers from real and imaginary parts of one floating dtype.",
                     .tags = Tag::NoInPlace,
                     .infer =
                         [](const InferCtx& c, int) {
                           const DType re = c.spec(0).dtype, im = c.spec(1).dtype;
                           for (const DType part : {re, im})
                             FL_CHECK(is_floating(part) && size_of(part) >= 4, NotImplementedError,
                                      "expected both inputs to be float32 or float64, got {} and {}",
                                      name(re), name(im));
                           FL_CHECK(re == im, RuntimeError,
                                    "expected both inputs to have one dtype, got {} and {}", name(re),
                                    name(im));
                           InferResult r{make_spec(broadcast_sizes(c.spec(0).sizes, c.spec(1).sizes),
                                                   complex_dtype(c.spec(0).dtype), c.spec(0).device)};
                           return r;
                         },
                     .lower =
                         [](const LowerCtx& c) {
                           Lowered l;
                           l.sizes = c.out_sizes();
                           const std::vector<Expr> re = c.sizes(0), im = c.sizes(1);
                           l.body = [re, im](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
                             return std::vector<Val>{s.complex(s.load(0, broadcast_index(i, re)),
                                                               s.load(1, broadcast_index(i, im)))};
                           };
                           return l;
                         },
                     .grad =
                         [](GradCtx& c, const Tensor& g) {
                           return Tensors{c.needs(0) ? real(g) : Tensor(), c.needs(1) ? imag(g) : Tensor()};
                         },
                     .samples = samples::custom([](SampleMaker& m, const Samples& o) {
                       return std::vector<Sample>{
                           {{m.make({3, 4}, o.low, o.high), m.make({3, 4}, o.low, o.high)}, "", ""},
                           {{m.make({3, 1}, o.low, o.high), m.make({4}, o.low, o.high)}, "broadcast", ""}};
                     })});
}

}  // namespace

void define_ternary(OpTable& t) {
  define_selection(t);
  define_bounds(t);
  define_fused_arithmetic(t);
  define_copies(t);
}

}  // namespace fl
