#include "flambeau/ops/prims/scan.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/reduced_dims.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// Sums keep self's layout, products do not.
InferResult running_rule(const InferCtx& c, int op) {
  const TensorSpec& in = c.spec(0);
  wrap_dim(c.arg(1).to_int(), in.dim());
  InferResult r = rule::same_as_input().function(c, 0);
  if (static_cast<ReduceOp>(op) == ReduceOp::Prod) r[0].strides = contiguous_strides(in.sizes);
  if (c.has(2))
    r[0].dtype = c.arg(2).dtype();
  else if (is_integral(in.dtype, true))
    r[0].dtype = DType::Int64;
  return r;
}

/// A scan over a 0-dim tensor is a copy, which has no loop to scan along.
Lowered scan_along(const LowerCtx& c, ReduceOp op) {
  Lowered l;
  l.sizes = c.out_sizes();
  if (l.sizes.empty()) return l;
  l.kind = Lowered::Kind::Scan;
  l.reduce = op;
  l.scan_dim = static_cast<int>(wrap_dim(c.arg(1).to_int(), c.out().dim()));
  return l;
}

Lowered lower_running(const LowerCtx& c, ReduceOp op) {
  Lowered l = scan_along(c, op);
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    return std::vector<Val>{converted(s, s.load(0, i), dtype)};
  };
  return l;
}

Tensor sum_from_the_end(const Tensor& g, int64_t dim) {
  if (g.dim() == 0) return g;
  const Sizes along{SymInt(dim)};
  return flip(cumsum(flip(g, along), dim), along);
}

/// Sums from the end of g * out, divided by x. A first zero gets the products that leave it out; what comes
/// after it gets 0.
Tensor cumprod_gradient(GradCtx& c, const Tensor& g) {
  const int64_t dim = c.arg(1).to_int();
  const Tensor x = to_dtype(c.in(0), c.out_spec(0).dtype);
  if (x.dim() == 0) return g;
  const Tensor zero = eq(x, 0), seen = cumsum(zero, dim);
  const Tensor first = logical_and(zero, eq(seen, 1));
  const Tensor before = div(sum_from_the_end(mul(g, c.out(0)), dim), where(zero, 1, x));
  const Tensor left_out = sum_from_the_end(mul(g, cumprod(where(first, 1, x), dim)), dim);
  return where(eq(seen, 0), before, where(first, left_out, 0));
}

std::vector<Sample> running_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({3, 5}), 1}, "", ""},
          {{x({3, 5}), 0}, "columns", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), -2}, "transposed", ""},
          {{m.make_strided({3, 4}, o.low, o.high), -1}, "strided", ""},
          {{x({}), 0}, "0-dim", ""},
          {{x({3, 0}), 1}, "size 0", ""},
          {{x({3}), 1}, "no such dimension", "IndexError: out of range"}};
}

void define_running_sums(OpTable& t) {
  t.define(cumsum,
           {.doc = "Running sums along a dimension; integers and bool add up to int64.",
            .infer = running_rule,
            .lower = [](const LowerCtx& c) { return lower_running(c, ReduceOp::Sum); },
            .grad = [](GradCtx& c, const Tensor& g) { return sum_from_the_end(g, c.arg(1).to_int()); },
            .samples = samples::custom(running_samples, {.dtypes = dtypes::all})});
  t.define(cumprod, {.doc = "Running products along a dimension; integers and bool multiply to int64.",
                     .infer = Infer(running_rule, static_cast<int>(ReduceOp::Prod)),
                     .lower = [](const LowerCtx& c) { return lower_running(c, ReduceOp::Prod); },
                     .saves = saves::in({0}) | saves::out({0}),
                     .grad = cumprod_gradient,
                     .samples = samples::custom(running_samples, {.dtypes = dtypes::real})});
}

InferResult running_extreme_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  check_dtype(c.op().schema.name, in.dtype, Takes::Real);
  wrap_dim(c.arg(1).to_int(), in.dim());
  InferResult r(2, make_spec(in.sizes, in.dtype, in.device));
  r[1].dtype = DType::Int64;
  return r;
}

/// The last of equals: positions count down.
Lowered lower_running_extreme(const LowerCtx& c, ReduceOp op) {
  Lowered l = scan_along(c, op);
  if (l.kind != Lowered::Kind::Scan) {
    l.body = [](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
      return std::vector<Val>{s.load(0, i), s.constant(DType::Int64, 0)};
    };
    return l;
  }
  const int dim = l.scan_dim;
  l.body = [dim](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    const Val x = s.load(0, i);
    return std::vector<Val>{x.dtype == DType::Bool ? s.cast(x, DType::UInt8) : x, s.index(-i[dim])};
  };
  l.finish = [](BodyOps& s, std::span<const Expr>, std::span<const Val> results) {
    return std::vector<Val>{results[0], s.neg(results[1])};
  };
  return l;
}

Tensor running_extreme_gradient(GradCtx& c, const Tensor& g) {
  return _scatter(zeros(c.in_spec(0).sizes, g.dtype(), g.device()), c.arg(1).to_int(), c.out(1), g, "sum");
}

InferResult running_log_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  check_dtype(c.op().schema.name, in.dtype, Takes::Floating);
  wrap_dim(c.arg(1).to_int(), in.dim());
  return {make_spec(in.sizes, in.dtype, in.device)};
}

Lowered lower_running_log(const LowerCtx& c) {
  Lowered l = scan_along(c, ReduceOp::OnlineSoftmax);
  l.body = [](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    return std::vector<Val>{s.load(0, i)};
  };
  if (l.kind != Lowered::Kind::Scan) return l;
  l.finish = [](BodyOps& s, std::span<const Expr>, std::span<const Val> results) {
    const Val top = results[0], infinite = s.eq(s.abs(top), s.like(top, HUGE_VAL));
    return std::vector<Val>{s.select(infinite, top, s.add(top, s.log(results[1])))};
  };
  return l;
}

/// Sum from the end of g e^-out, times e^x, with the positive and the negative part apart. In place of 0 they
/// have a number whose logarithm is finite.
Tensor running_log_gradient(GradCtx& c, const Tensor& g) {
  const int64_t dim = c.arg(1).to_int();
  if (g.dim() == 0) return g;
  const Tensor x = to_compute(c.in(0)), out = to_compute(c.out(0)), slope = to_compute(g);
  const Sizes along{SymInt(dim)};
  const auto part = [&](const Tensor& positive) {
    const Tensor terms = sub(log(positive), out);
    return exp(add(flip(logcumsumexp(flip(terms, along), dim), along), x));
  };
  constexpr double kTiny = 1e-37;
  return to_dtype(sub(part(clamp_min(slope, kTiny)), part(clamp_min(neg(slope), kTiny))), c.in_spec(0).dtype);
}

void define_running_extremes(OpTable& t) {
  const Samples real = samples::custom(running_samples, {.dtypes = dtypes::real});
  t.define(cummax, {.doc = "Running maxima along a dimension and their positions, the last of equals.",
                    .tags = Tag::NoInPlace,
                    .infer = running_extreme_rule,
                    .lower = [](const LowerCtx& c) { return lower_running_extreme(c, ReduceOp::ArgMax); },
                    .saves = saves::out({1}),
                    .grad = running_extreme_gradient,
                    .samples = real});
  t.define(cummin, {.doc = "Running minima along a dimension and their positions, the last of equals.",
                    .tags = Tag::NoInPlace,
                    .infer = running_extreme_rule,
                    .lower = [](const LowerCtx& c) { return lower_running_extreme(c, ReduceOp::ArgMin); },
                    .saves = saves::out({1}),
                    .grad = running_extreme_gradient,
                    .samples = real});
  t.define(logcumsumexp, {.doc = "Running log(sum(exp(x))) along a dimension, without overflow on the way.",
                          .tags = Tag::NoInPlace,
                          .infer = running_log_rule,
                          .lower = lower_running_log,
                          .saves = saves::in({0}) | saves::out({0}),
                          .grad = running_log_gradient,
                          .samples = samples::custom(running_samples, {.dtypes = dtypes::floats})});
}

}  // namespace

void define_scan(OpTable& t) {
  define_running_sums(t);
  define_running_extremes(t);
}

}  // namespace fl
