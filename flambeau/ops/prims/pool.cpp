#include "flambeau/ops/prims/pool.h"

#include <limits>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/convolution_geometry.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

struct Pool {
  Sizes kernel;
  ConvolutionWindow window;
  bool ceil_mode = false;
  int spatial() const { return static_cast<int>(kernel.size()); }
  std::vector<Expr> kernel_sizes() const {
    std::vector<Expr> out;
    for (const SymInt k : kernel) out.push_back(k.expr());
    return out;
  }
};

/// A list of one entry stands for all dimensions; no stride for the kernel's sizes.
Pool pool_of(const Value& kernel, const Value& stride, const Value& padding, const Value& dilation,
             bool ceil_mode) {
  Pool p;
  const IntList k = kernel.ints();
  p.kernel = Sizes(k.begin(), k.end());
  const int n = p.spatial();
  for (const SymInt size : p.kernel)
    FL_CHECK(size > SymInt(0), RuntimeError, "kernel size should be greater than zero, but got {}",
             to_string(p.kernel));
  p.window = convolution_window(stride.ints().empty() ? Value(p.kernel) : stride, padding, dilation, n);
  p.ceil_mode = ceil_mode;
  for (int d = 0; d < n; ++d) {
    const SymInt reach = p.window.dilation[d] * (p.kernel[d] - SymInt(1)) + SymInt(1);
    FL_CHECK(p.window.padding[d] * SymInt(2) <= reach, RuntimeError,
             "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and "
             "dilation={}",
             p.window.padding[d], p.kernel[d], p.window.dilation[d]);
  }
  return p;
}

SymInt pooled_size(const Pool& p, int d, SymInt in) {
  const ConvolutionWindow& w = p.window;
  const SymInt stride = w.stride[d], padding = w.padding[d];
  const SymInt room = in + padding * SymInt(2) - w.dilation[d] * (p.kernel[d] - SymInt(1)) - SymInt(1);
  if (!p.ceil_mode) return room / stride + SymInt(1);
  // A last window has to start inside the input or its padding on the left.
  const SymInt out = (room + stride - SymInt(1)) / stride + SymInt(1);
  return (out - SymInt(1)) * stride >= in + padding ? out - SymInt(1) : out;
}

TensorSpec pooled_spec(const InferCtx& c, const Pool& p) {
  const TensorSpec& in = c.spec(0);
  const int n = p.spatial(), first = in.dim() - n;
  FL_CHECK(first >= 1, RuntimeError, "{}: expected an input of at least {} dimensions, got one of sizes {}",
           c.op().schema.name, n + 1, to_string(in.sizes));
  check_dtype(c.op().schema.name, in.dtype, Takes::RealNumber);
  Sizes sizes = in.sizes;
  for (int d = 0; d < n; ++d) {
    sizes[first + d] = pooled_size(p, d, in.sizes[first + d]);
    FL_CHECK(sizes[first + d] >= SymInt(1), RuntimeError,
             "Given input size: {}. Calculated output size: {}. Output size is too small",
             to_string(in.sizes), to_string(sizes));
  }
  TensorSpec out = make_spec(sizes, in.dtype, in.device);
  out.strides = image_strides(sizes, in, in);
  return out;
}

Index joined(std::span<const Expr> leading, const Index& rest) {
  Index out(leading.begin(), leading.end());
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

/// The point under a window's offset, and whether it lies in the input.
Index pooled_point(ScalarOps& s, const Pool& p, std::span<const Expr> y, std::span<const Expr> k,
                   std::span<const Expr> in, Val* inside) {
  Index at = large_point(s, p.window, y, k, in, inside);
  if (!p.ceil_mode) return at;
  for (int d = 0; d < p.spatial(); ++d) {
    const Val here = s.lt(s.index(at[d]), s.index(in[d]));
    *inside = inside->id < 0 ? here : s.bit_and(*inside, here);
  }
  return at;
}

Expr flat_position(std::span<const Expr> at, std::span<const Expr> sizes) {
  Expr out(0);
  for (size_t d = 0; d < at.size(); ++d) out = out * sizes[d] + at[d];
  return out;
}

Val lowest(ScalarOps& s, DType dtype) {
  if (is_floating(dtype)) return s.constant(dtype, -std::numeric_limits<double>::infinity());
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  return s.constant(
      dtype, info(dtype).is_signed ? -static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) - 1 : int64_t{0});
}

Pool max_pool_of(const Value* first, bool ceil_mode) {
  return pool_of(first[0], first[1], first[2], first[3], ceil_mode);
}

InferResult max_pool_rule(const InferCtx& c, int) {
  const TensorSpec out = pooled_spec(c, max_pool_of(&c.arg(1), c.flag(5)));
  InferResult r(2, out);
  r[1].dtype = DType::Int64;
  return r;
}

Lowered lower_max_pool(const LowerCtx& c) {
  const Pool p = max_pool_of(&c.arg(1), c.arg(5).to_bool());
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.reduce = ReduceOp::ArgMax;
  l.sizes = c.out_sizes();
  l.reduce_sizes = p.kernel_sizes();
  l.window = true;
  const size_t first = l.sizes.size() - p.spatial();
  const std::vector<Expr> sizes = c.sizes(0);
  const std::vector<Expr> in(sizes.begin() + first, sizes.end());
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> k) {
    Val inside;
    const Index at = pooled_point(s, p, i.subspan(first), k, in, &inside);
    Val x = s.load(0, joined(i.first(first), at), inside);
    Val position = s.index(flat_position(at, in));
    if (inside.id >= 0) {
      x = s.select(inside, x, lowest(s, x.dtype));
      position = s.select(inside, position, s.constant(DType::Int64, std::numeric_limits<int64_t>::max()));
    }
    return std::vector<Val>{x, position};
  };
  return l;
}

InferResult backward_rule(const InferCtx& c, int size_arg) {
  const TensorSpec& g = c.spec(0);
  TensorSpec out = make_spec(c.ints(size_arg), g.dtype, g.device);
  out.strides = image_strides(out.sizes, g, g);
  return {out};
}

/// Every input point asks the windows over it whether they took it: no two threads write one place.
Lowered lower_max_pool_backward(const LowerCtx& c) {
  const Pool p = pool_of(c.arg(3), c.arg(4), c.arg(5), c.arg(6), false);
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  l.reduce_sizes = p.kernel_sizes();
  l.window = true;
  const size_t first = l.sizes.size() - p.spatial();
  const std::vector<Expr> sizes = c.sizes(0);
  const std::vector<Expr> small(sizes.begin() + first, sizes.end()),
      large(l.sizes.begin() + first, l.sizes.end());
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> k) {
    Val inside;
    const Index y = joined(i.first(first), small_point(s, p.window, i.subspan(first), k, small, &inside));
    const Val chosen = s.eq(s.load(1, y, inside), s.index(flat_position(i.subspan(first), large)));
    const Val takes = s.bit_and(inside, chosen);
    const Val g = s.cast(s.load(0, y, takes), dtype);
    return std::vector<Val>{s.select(takes, g, s.like(g, 0))};
  };
  return l;
}

/// The elements that were chosen, from a tensor of the input's sizes.
Tensor at_indices(const Tensor& x, const Tensor& indices, int spatial) {
  const int first = x.dim() - spatial;
  const Tensor taken = gather(flatten(x, first, -1), first, flatten(indices, first, -1));
  return view(taken, indices.sizes());
}

void define_max_pool(OpTable& t) {
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::floats | dtypes::integers});
  };
  t.define(
      _max_pool,
      {.doc = "The maximum of each window and its position in the flattened last dimensions. Padding counts "
              "as less than every element; ceil_mode adds a last window that reaches over the end.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .infer = max_pool_rule,
       .lower = lower_max_pool,
       .saves = saves::out({1}),
       .grad =
           [](GradCtx& c, const Tensor& g) {
             return _max_pool_backward(g, c.out(1), c.in_spec(0).sizes, c.arg(1).ints(), c.arg(2).ints(),
                                       c.arg(3).ints(), c.arg(4).ints());
           },
       .samples = options([](SampleMaker& m, const Samples& o) {
         const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
         return std::vector<Sample>{
             {{x({2, 3, 6, 5}), Sizes{2, 3}, Sizes{2, 1}, Sizes{0, 1}, Sizes{1, 1}, false}, "", ""},
             {{x({1, 2, 7}), Sizes{3}, Sizes{2}, Sizes{1}, Sizes{1}, true}, "ceil", ""},
             {{x({1, 7, 7}), Sizes{2, 2}, Sizes{}, Sizes{0}, Sizes{2}, false}, "dilation", ""},
             {{x({1, 4, 4}), Sizes{2, 2}, Sizes{}, Sizes{2}, Sizes{1}, false}, "pad", "RuntimeError: half"}};
       })});
  t.define(_max_pool_backward,
           {.doc = "The gradient of `_max_pool` by its input.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .infer = Infer(backward_rule, 2),
            .lower = lower_max_pool_backward,
            .saves = saves::in({1}),
            .grad =
                [](GradCtx& c, const Tensor& h) {
                  return at_indices(h, c.in(1), static_cast<int>(c.arg(3).ints().size()));
                },
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              const Tensor at = tensor_from<int64_t>({1, 2, 4, 0, 4, 5}, Sizes{1, 2, 3});
              return std::vector<Sample>{{{m.make({1, 2, 3}, o.low, o.high), at, Sizes{1, 2, 7}, Sizes{3},
                                           Sizes{2}, Sizes{0}, Sizes{1}},
                                          "",
                                          ""}};
            })});
}

/// What a window's sum is divided by: its size with padding, the number of elements in it, or a given number.
struct Divisor {
  Pool pool;
  std::vector<Expr> in;
  bool with_padding;
  std::optional<int64_t> given;

  Expr at(std::span<const Expr> y) const {
    if (given) return Expr(*given);
    Expr out(1);
    for (int d = 0; d < pool.spatial(); ++d) {
      const Expr padding = pool.window.padding[d].expr(), kernel = pool.kernel[d].expr();
      const Expr start = y[d] * pool.window.stride[d].expr() - padding;
      const Expr end = sym::min(start + kernel, in[d] + padding);
      out *= with_padding ? end - start : sym::min(end, in[d]) - sym::max(start, Expr(0));
    }
    return out;
  }
};

Pool avg_pool_of(const Value* first, bool ceil_mode) {
  return pool_of(first[0], first[1], first[2], Value(Sizes{SymInt(1)}), ceil_mode);
}
/// first: kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override.
Divisor divisor_of(const Value* first, std::vector<Expr> in) {
  Divisor d{avg_pool_of(first, first[3].to_bool()), std::move(in), first[4].to_bool(), std::nullopt};
  if (!first[5].is_none()) {
    d.given = first[5].to_int();
    FL_CHECK(*d.given != 0, RuntimeError, "divisor must be not zero");
  }
  return d;
}

InferResult avg_pool_rule(const InferCtx& c, int) {
  divisor_of(&c.arg(1), {});
  return {pooled_spec(c, avg_pool_of(&c.arg(1), c.flag(4)))};
}

Lowered lower_avg_pool(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const std::vector<Expr> sizes = c.sizes(0);
  const size_t first = sizes.size() - c.arg(1).ints().size();
  const Divisor divisor = divisor_of(&c.arg(1), {sizes.begin() + first, sizes.end()});
  l.reduce_sizes = divisor.pool.kernel_sizes();
  l.window = true;
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> k) {
    Val inside;
    const Index at = pooled_point(s, divisor.pool, i.subspan(first), k, divisor.in, &inside);
    return std::vector<Val>{s.load(0, joined(i.first(first), at), inside)};
  };
  l.finish = [=](BodyOps& s, std::span<const Expr> i, std::span<const Val> results) {
    const Val count = s.cast(s.index(divisor.at(i.subspan(first))), results[0].dtype);
    return std::vector<Val>{s.div(results[0], count)};
  };
  return l;
}

Lowered lower_avg_pool_backward(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const size_t first = l.sizes.size() - c.arg(2).ints().size();
  const Divisor divisor = divisor_of(&c.arg(2), {l.sizes.begin() + first, l.sizes.end()});
  const std::vector<Expr> sizes = c.sizes(0);
  const std::vector<Expr> small(sizes.begin() + first, sizes.end());
  l.reduce_sizes = divisor.pool.kernel_sizes();
  l.window = true;
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> k) {
    Val inside;
    const Index y = small_point(s, divisor.pool.window, i.subspan(first), k, small, &inside);
    const Val g = s.load(0, joined(i.first(first), y), inside);
    const Val share = s.div(g, s.cast(s.index(divisor.at(y)), g.dtype));
    return std::vector<Val>{s.select(inside, share, s.like(g, 0))};
  };
  return l;
}

std::vector<Sample> avg_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Value none;
  return {{{x({2, 3, 6, 5}), Sizes{2, 3}, Sizes{2, 1}, Sizes{0, 1}, false, true, none}, "", ""},
          {{x({1, 2, 7}), Sizes{3}, Sizes{2}, Sizes{1}, true, false, none}, "ceil, without padding", ""},
          {{x({1, 2, 7}), Sizes{3}, Sizes{3}, Sizes{1}, true, true, none}, "ceil", ""},
          {{x({1, 5, 5}), Sizes{2, 2}, Sizes{}, Sizes{0}, false, true, 3}, "divisor", ""}};
}

void define_avg_pool(OpTable& t) {
  t.define(_avg_pool,
           {.doc = "The mean of each window; padding counts as 0, and as elements if count_include_pad.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .infer = avg_pool_rule,
            .lower = lower_avg_pool,
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const Value& divisor = c.arg(6);
                  return _avg_pool_backward(
                      g, c.in_spec(0).sizes, c.arg(1).ints(), c.arg(2).ints(), c.arg(3).ints(),
                      c.arg(4).to_bool(), c.arg(5).to_bool(),
                      divisor.is_none() ? std::nullopt : std::optional(divisor.to_int()));
                },
            .samples = samples::custom(avg_samples, {.dtypes = dtypes::floats})});
  t.define(_avg_pool_backward,
           {.doc = "The gradient of `_avg_pool` by its input.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .infer = Infer(backward_rule, 1),
            .lower = lower_avg_pool_backward,
            .grad =
                [](GradCtx& c, const Tensor& h) {
                  const Value& divisor = c.arg(7);
                  return _avg_pool(h, c.arg(2).ints(), c.arg(3).ints(), c.arg(4).ints(), c.arg(5).to_bool(),
                                   c.arg(6).to_bool(),
                                   divisor.is_none() ? std::nullopt : std::optional(divisor.to_int()));
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  std::vector<Sample> out;
                  for (const Sample& s : avg_samples(m, o)) {
                    const TensorSpec result = infer_outputs(_avg_pool.info(), s.args.data())[0];
                    std::vector<Value> args{m.make(result.sizes, o.low, o.high), s.args[0].tensor().sizes()};
                    args.insert(args.end(), s.args.begin() + 1, s.args.end());
                    out.push_back({std::move(args), s.note, ""});
                  }
                  return out;
                },
                {.dtypes = dtypes::floats})});
}

/// Windows from floor(y in / out) to ceil((y + 1) in / out): a point x lies in window y if and only if y lies
/// in the window of x with the sizes exchanged.
struct AdaptiveWindows {
  std::vector<Expr> in, out;
  Expr start(size_t d, const Expr& y) const { return sym::floordiv(y * in[d], out[d]); }
  Expr end(size_t d, const Expr& y) const { return sym::ceildiv((y + Expr(1)) * in[d], out[d]); }
  AdaptiveWindows exchanged() const { return {out, in}; }
  /// No window is longer.
  std::vector<Expr> longest() const {
    std::vector<Expr> r;
    for (size_t d = 0; d < in.size(); ++d) {
      const auto even = sym::exact_divide(in[d], out[d]);
      r.push_back(even ? *even : sym::ceildiv(in[d], out[d]) + Expr(1));
    }
    return r;
  }
  Index point(ScalarOps& s, std::span<const Expr> y, std::span<const Expr> k, Val* inside) const {
    Index at;
    for (size_t d = 0; d < in.size(); ++d) {
      at.push_back(start(d, y[d]) + k[d]);
      if (sym::exact_divide(in[d], out[d])) continue;
      const Val here = s.lt(s.index(at[d]), s.index(end(d, y[d])));
      *inside = inside->id < 0 ? here : s.bit_and(*inside, here);
    }
    return at;
  }
  Val count(ScalarOps& s, std::span<const Expr> y, DType dtype) const {
    Expr n(1);
    for (size_t d = 0; d < in.size(); ++d) n *= end(d, y[d]) - start(d, y[d]);
    return s.cast(s.index(n), dtype);
  }
};

std::vector<Expr> last_of(const std::vector<Expr>& sizes, size_t first) {
  return {sizes.begin() + first, sizes.end()};
}

InferResult adaptive_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  const IntList size = c.ints(1);
  const int first = in.dim() - static_cast<int>(size.size());
  FL_CHECK(first >= 1, RuntimeError,
           "adaptive_avg_pool: expected an input of at least {} dimensions, got one of sizes {}",
           size.size() + 1, to_string(in.sizes));
  check_dtype("adaptive_avg_pool", in.dtype, Takes::Floating);
  Sizes sizes = in.sizes;
  for (size_t d = 0; d < size.size(); ++d) {
    FL_CHECK(in.sizes[first + d] > SymInt(0) && size[d] >= SymInt(0), RuntimeError,
             "adaptive_avg_pool: expected non-empty input and output dimensions, got {} and {}",
             to_string(in.sizes), to_string(size));
    sizes[first + d] = size[d];
  }
  TensorSpec out = make_spec(sizes, in.dtype, in.device);
  out.strides = image_strides(sizes, in, in);
  return {out};
}

Lowered lower_adaptive(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const size_t first = l.sizes.size() - c.arg(1).ints().size();
  const AdaptiveWindows w{last_of(c.sizes(0), first), last_of(l.sizes, first)};
  l.reduce_sizes = w.longest();
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> k) {
    Val inside;
    const Index at = w.point(s, i.subspan(first), k, &inside);
    return std::vector<Val>{s.load(0, joined(i.first(first), at), inside)};
  };
  l.finish = [=](BodyOps& s, std::span<const Expr> i, std::span<const Val> results) {
    return std::vector<Val>{s.div(results[0], w.count(s, i.subspan(first), results[0].dtype))};
  };
  return l;
}

Lowered lower_adaptive_backward(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const size_t first = 2;
  const AdaptiveWindows w{last_of(l.sizes, first), last_of(c.sizes(0), first)};
  const AdaptiveWindows back = w.exchanged();
  l.reduce_sizes = back.longest();
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> k) {
    Val inside;
    const Index y = back.point(s, i.subspan(first), k, &inside);
    const Val g = s.load(0, joined(i.first(first), y), inside);
    const Val share = s.div(g, w.count(s, y, g.dtype));
    return std::vector<Val>{inside.id < 0 ? share : s.select(inside, share, s.like(g, 0))};
  };
  return l;
}

void define_adaptive(OpTable& t) {
  t.define(
      _adaptive_avg_pool,
      {.doc = "Means of windows that cut the last dimensions into the given numbers of pieces.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .infer = adaptive_rule,
       .lower = lower_adaptive,
       .grad = [](GradCtx& c, const Tensor& g) { return _adaptive_avg_pool_backward(g, c.in_spec(0).sizes); },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{{{x({2, 3, 6, 4}), Sizes{3, 2}}, "", ""},
                                        {{x({1, 2, 7, 5}), Sizes{3, 4}}, "uneven", ""},
                                        {{x({1, 2, 3, 3}), Sizes{5, 7}}, "larger", ""}};
           },
           {.dtypes = dtypes::floats})});
  t.define(
      _adaptive_avg_pool_backward,
      {.doc = "The gradient of `_adaptive_avg_pool` by its input, from dimension 2 on.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .infer = Infer(backward_rule, 1),
       .lower = lower_adaptive_backward,
       .grad =
           [](GradCtx& c, const Tensor& h) {
             const Sizes& small = c.in_spec(0).sizes;
             return _adaptive_avg_pool(h, IntList(small.data() + 2, small.size() - 2));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{{{m.make({1, 2, 3, 4}, o.low, o.high), Sizes{1, 2, 7, 5}}, "", ""}};
           },
           {.dtypes = dtypes::floats})});
}

}  // namespace

void define_pool_prim(OpTable& t) {
  define_max_pool(t);
  define_avg_pool(t);
  define_adaptive(t);
}

}  // namespace fl
