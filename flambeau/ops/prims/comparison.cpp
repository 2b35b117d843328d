// Comparisons, choices between two values, logic and bits.
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kPredicate = Tag::Elementwise | Tag::NonDifferentiable;

void define_relations(OpTable& t) {
  const Samples any = samples::binary({.dtypes = dtypes::all}),
                real = samples::binary({.dtypes = dtypes::real});
  const Infer compare = rule::real(Promote::AlwaysBool);
  t.define(eq, {.doc = "Whether the elements are equal; nan equals nothing.",
                .tags = kPredicate,
                .infer = rule::elementwise(Promote::AlwaysBool),
                .scalar = [](ScalarOps& s, Val a, Val b) { return s.eq(a, b); },
                .samples = any});
  t.define(ne, {.doc = "Whether the elements differ; nan differs from everything.",
                .tags = kPredicate,
                .infer = rule::elementwise(Promote::AlwaysBool),
                .scalar = [](ScalarOps& s, Val a, Val b) { return s.ne(a, b); },
                .samples = any});
  t.define(lt, {.doc = "self < other.",
                .tags = kPredicate,
                .infer = compare,
                .scalar = [](ScalarOps& s, Val a, Val b) { return s.lt(a, b); },
                .samples = real});
  t.define(le, {.doc = "self <= other.",
                .tags = kPredicate,
                .infer = compare,
                .scalar = [](ScalarOps& s, Val a, Val b) { return s.le(a, b); },
                .samples = real});
  t.define(gt, {.doc = "self > other.",
                .tags = kPredicate,
                .infer = compare,
                .scalar = [](ScalarOps& s, Val a, Val b) { return s.gt(a, b); },
                .samples = real});
  t.define(ge, {.doc = "self >= other.",
                .tags = kPredicate,
                .infer = compare,
                .scalar = [](ScalarOps& s, Val a, Val b) { return s.ge(a, b); },
                .samples = real});
}

/// g where `mine` holds, half of it where both sides are equal, 0 elsewhere.
Tensors split_by_order(GradCtx& c, const Tensor& g, bool larger) {
  const auto a = operand(c, 0), b = operand(c, 1);
  const Tensor shared = where(eq(a, b), mul(g, 0.5), g);
  const Tensor not_first = larger ? lt(a, b) : gt(a, b), not_second = larger ? gt(a, b) : lt(a, b);
  return {c.needs(0) ? masked_fill(shared, not_first, 0) : Tensor(),
          c.needs(1) ? masked_fill(shared, not_second, 0) : Tensor()};
}

/// All of g to the side that fmax or fmin took, self where both are equal.
Tensors chosen_side(GradCtx& c, const Tensor& g, bool larger) {
  const auto a = operand(c, 0), b = operand(c, 1);
  const Tensor first = logical_or(larger ? ge(a, b) : le(a, b), isnan(b));
  return {c.needs(0) ? where(first, g, 0.0) : Tensor(), c.needs(1) ? where(first, 0.0, g) : Tensor()};
}

Val choose(ScalarOps& s, Val a, Val b, bool larger) {
  const Val first = larger ? s.le(b, a) : s.le(a, b);
  if (!is_floating(a.dtype)) return s.select(first, a, b);
  return s.select(s.bit_or(first, s.is_nan(b)), a, b);
}

void define_extrema(OpTable& t) {
  const Samples real = samples::binary({.dtypes = dtypes::real});
  t.define(maximum, {.doc = "The larger element; nan where either is.",
                     .tags = Tag::Elementwise,
                     .infer = rule::real(),
                     .scalar = [](ScalarOps& s, Val a, Val b) { return s.maximum(a, b); },
                     .saves = saves::in({0, 1}),
                     .grad = [](GradCtx& c, const Tensor& g) { return split_by_order(c, g, true); },
                     .samples = real});
  t.define(minimum, {.doc = "The smaller element; nan where either is.",
                     .tags = Tag::Elementwise,
                     .infer = rule::real(),
                     .scalar = [](ScalarOps& s, Val a, Val b) { return s.minimum(a, b); },
                     .saves = saves::in({0, 1}),
                     .grad = [](GradCtx& c, const Tensor& g) { return split_by_order(c, g, false); },
                     .samples = real});
  t.define(fmax, {.doc = "The larger element; the other one where one is nan.",
                  .tags = Tag::Elementwise,
                  .infer = rule::real(),
                  .scalar = [](ScalarOps& s, Val a, Val b) { return choose(s, a, b, true); },
                  .saves = saves::in({0, 1}),
                  .grad = [](GradCtx& c, const Tensor& g) { return chosen_side(c, g, true); },
                  .samples = real});
  t.define(fmin, {.doc = "The smaller element; the other one where one is nan.",
                  .tags = Tag::Elementwise,
                  .infer = rule::real(),
                  .scalar = [](ScalarOps& s, Val a, Val b) { return choose(s, a, b, false); },
                  .saves = saves::in({0, 1}),
                  .grad = [](GradCtx& c, const Tensor& g) { return chosen_side(c, g, false); },
                  .samples = real});
}

Val truth(ScalarOps& s, Val x) { return x.dtype == DType::Bool ? x : s.ne(x, s.like(x, 0)); }

void define_logic(OpTable& t) {
  const Samples any = samples::binary({.dtypes = dtypes::all});
  const Infer logic = rule::elementwise(Promote::AlwaysBool);
  t.define(logical_and,
           {.doc = "Whether both elements are other than 0.",
            .tags = kPredicate,
            .infer = logic,
            .scalar = [](ScalarOps& s, Val a, Val b) { return s.bit_and(truth(s, a), truth(s, b)); },
            .samples = any});
  t.define(logical_or,
           {.doc = "Whether either element is other than 0.",
            .tags = kPredicate,
            .infer = logic,
            .scalar = [](ScalarOps& s, Val a, Val b) { return s.bit_or(truth(s, a), truth(s, b)); },
            .samples = any});
  t.define(logical_xor,
           {.doc = "Whether exactly one element is other than 0.",
            .tags = kPredicate,
            .infer = logic,
            .scalar = [](ScalarOps& s, Val a, Val b) { return s.bit_xor(truth(s, a), truth(s, b)); },
            .samples = any});
}

void define_bits(OpTable& t) {
  const Samples bits = samples::binary({.dtypes = dtypes::integers | dtypes::boolean});
  const Samples shifts = samples::binary({.dtypes = dtypes::integers, .low = 0, .high = 6});
  t.define(bitwise_and, {.doc = "Bits set in both. Integers and bool.",
                         .tags = kPredicate,
                         .infer = rule::integral(),
                         .scalar = [](ScalarOps& s, Val a, Val b) { return s.bit_and(a, b); },
                         .samples = bits});
  t.define(bitwise_or, {.doc = "Bits set in either. Integers and bool.",
                        .tags = kPredicate,
                        .infer = rule::integral(),
                        .scalar = [](ScalarOps& s, Val a, Val b) { return s.bit_or(a, b); },
                        .samples = bits});
  t.define(bitwise_xor, {.doc = "Bits set in one of both. Integers and bool.",
                         .tags = kPredicate,
                         .infer = rule::integral(),
                         .scalar = [](ScalarOps& s, Val a, Val b) { return s.bit_xor(a, b); },
                         .samples = bits});
  t.define(bitwise_left_shift, {.doc = "self * 2^other, wrapping; 0 for counts outside the width.",
                                .tags = kPredicate,
                                .infer = rule::integral(),
                                .scalar = [](ScalarOps& s, Val a, Val b) { return s.shl(a, b); },
                                .samples = shifts});
  t.define(bitwise_right_shift, {.doc = "floor(self / 2^other); keeps the sign of signed integers.",
                                 .tags = kPredicate,
                                 .infer = rule::integral(),
                                 .scalar = [](ScalarOps& s, Val a, Val b) { return s.shr(a, b); },
                                 .samples = shifts});
}

}  // namespace

void define_comparison(OpTable& t) {
  define_relations(t);
  define_extrema(t);
  define_logic(t);
  define_bits(t);
}

}  // namespace fl
