#include "flambeau/ops/prims/index.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/index_geometry.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"
#include "flambeau/sym/shape_env.h"

namespace fl {
namespace {

/// gather and scatter: the rank of a 0-dim tensor counts as 1.
int64_t index_dim(const Value& dim, const TensorSpec& self) { return wrap_dim(dim.to_int(), self.dim()); }

void check_index(const InferCtx& c, const TensorSpec& self, const TensorSpec& index) {
  if (index.numel().same_as(0)) return;
  const bool whole = index.dtype == DType::Int64 || index.dtype == DType::Int32;
  FL_CHECK(whole, RuntimeError, "{}(): Expected dtype int32/int64 for index, got {}", c.op().schema.name,
           name(index.dtype));
  FL_CHECK(std::max(self.dim(), 1) == std::max(index.dim(), 1), RuntimeError,
           "Index tensor must have the same number of dimensions as self tensor: {} and {}", index.dim(),
           self.dim());
}

void check_index_sizes(const TensorSpec& index, const TensorSpec& other, int64_t dim, const char* what,
                       bool all_dims) {
  for (int d = 0; d < std::min(index.dim(), other.dim()); ++d) {
    FL_CHECK((!all_dims && d == dim) || index.sizes[d] <= other.sizes[d], RuntimeError,
             "Size does not match at dimension {} expected index {} to be no larger than {} {} apart from "
             "dimension {}",
             d, to_string(index.sizes), what, to_string(other.sizes), dim);
  }
}

InferResult gather_rule(const InferCtx& c, int) {
  const TensorSpec &self = c.spec(0), &index = c.spec(2);
  check_index(c, self, index);
  check_index_sizes(index, self, index_dim(c.arg(1), self), "self", false);
  return {make_spec(index.sizes, self.dtype, self.device)};
}

/// i with the index tensor's element there along dim.
Index replaced_index(BodyOps& s, std::span<const Expr> i, int index_arg, int64_t dim,
                     const std::vector<Expr>& sizes, Val* valid) {
  const Val at = strict_index(s, s.load(index_arg, i), sizes.empty() ? Expr(1) : sizes[dim]);
  const Expr found = s.indirect(at, sizes.empty() ? Expr(1) : sizes[dim], "index", valid);
  Index out(i.begin(), i.begin() + std::min(i.size(), sizes.size()));
  while (out.size() < sizes.size()) out.push_back(0);
  if (!out.empty()) out[dim] = found;
  return out;
}

Lowered lower_gather(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const std::vector<Expr> sizes = c.sizes(0);
  const int64_t dim = index_dim(c.arg(1), c.spec(0));
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Val valid;
    const Index at = replaced_index(s, i, 2, dim, sizes, &valid);
    return std::vector<Val>{s.load(0, at, valid)};
  };
  return l;
}

InferResult scatter_rule(const InferCtx& c, int) {
  const TensorSpec &self = c.spec(0), &index = c.spec(2), &src = c.spec(3);
  check_index(c, self, index);
  FL_CHECK(src.dtype == self.dtype, RuntimeError, "{}(): Expected self.dtype to be equal to src.dtype",
           c.op().schema.name);
  FL_CHECK(std::max(src.dim(), 1) == std::max(index.dim(), 1), RuntimeError,
           "Index tensor must have the same number of dimensions as src tensor: {} and {}", index.dim(),
           src.dim());
  const int64_t dim = index_dim(c.arg(1), self);
  check_index_sizes(index, self, dim, "self", false);
  check_index_sizes(index, src, dim, "src", true);
  return {make_spec(self.sizes, self.dtype, self.device)};
}

StoreMode store_mode(std::string_view name) {
  if (name == "set") return StoreMode::Set;
  if (name == "sum") return StoreMode::Add;
  if (name == "prod") return StoreMode::Mul;
  if (name == "amin") return StoreMode::Min;
  FL_CHECK(name == "amax", RuntimeError,
           "reduce argument must be either sum, prod, mean, amax or amin, got {}", name);
  return StoreMode::Max;
}

Lowered lower_scatter(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Scatter;
  l.sizes = c.sizes(2);
  l.mode = store_mode(c.arg(4).str());
  const std::vector<Expr> sizes = c.sizes(0);
  const size_t src_rank = c.spec(3).dim();
  const int64_t dim = index_dim(c.arg(1), c.spec(0));
  const DType dtype = compute_dtype(c.out().dtype);
  l.update = [=](BodyOps& s, std::span<const Expr> i) {
    Val valid;
    Index at = replaced_index(s, i, 2, dim, sizes, &valid);
    Index from(i.begin(), i.begin() + std::min(i.size(), src_rank));
    while (from.size() < src_rank) from.push_back(0);
    return Lowered::Update{std::move(at), s.cast(s.load(3, from), dtype), valid};
  };
  return l;
}

/// x with zeros after it up to the given sizes.
Tensor padded_to(const Tensor& x, const Sizes& sizes) {
  Sizes pad;
  bool equal = true;
  for (int d = x.dim() - 1; d >= 0; --d) {
    pad.insert(pad.end(), {SymInt(0), sizes[d] - x.sizes()[d]});
    equal = equal && known_equal(sizes[d], x.sizes()[d]);
  }
  return equal ? x : constant_pad_nd(x, pad, 0);
}

/// The part of src that is read.
Tensor read_part(Tensor src, const Tensor& index) {
  for (int d = 0; d < src.dim(); ++d)
    if (!known_equal(src.sizes()[d], index.sizes()[d])) src = narrow(src, d, 0, index.sizes()[d]);
  return src;
}

/// self at the elements that take part in an extreme equally.
Tensors extreme_scatter_gradient(GradCtx& c, const Tensor& g) {
  const int64_t dim = c.arg(1).to_int();
  const Tensor self = c.in(0), index = c.in(2), src = read_part(c.in(3), index), out = c.out(0);
  const Tensor kept = to_dtype(eq(self, out), g.dtype());
  const Tensor taken = to_dtype(eq(src, gather(out, dim, index)), g.dtype());
  const Tensor share = div(g, _scatter(kept, dim, index, taken, "sum"));
  return {mul(share, kept), Tensor(), padded_to(mul(gather(share, dim, index), taken), c.in_spec(3).sizes)};
}

Tensors scatter_gradient(GradCtx& c, const Tensor& g) {
  const int64_t dim = c.arg(1).to_int();
  const Tensor index = c.in(2);
  const auto at = [&](const Tensor& x) { return padded_to(gather(x, dim, index), c.in_spec(3).sizes); };
  switch (store_mode(c.arg(4).str())) {
    case StoreMode::Add:
      return {g, Tensor(), c.needs(3) ? at(g) : Tensor()};
    case StoreMode::Set: {
      const Tensor zero = zeros(c.in_spec(3).sizes, g.dtype(), g.device());
      return {c.needs(0) ? _scatter(g, dim, index, zero, "set") : Tensor(), Tensor(),
              c.needs(3) ? at(g) : Tensor()};
    }
    case StoreMode::Mul: {
      const Tensor scaled = mul(g, c.out(0));
      return {div(scaled, c.in(0)), Tensor(), div(at(scaled), c.in(3))};
    }
    default:
      return extreme_scatter_gradient(c, g);
  }
}

std::vector<Sample> gather_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {
      {{x({3, 4}), 1, m.make_index({3, 2}, 0, 4)}, "", ""},
      {{x({3, 4}), 0, m.make_index({5, 4}, 0, 3)}, "rows", ""},
      {{m.make_transposed({2, 3, 4}, o.low, o.high), -1, m.make_index({2, 2, 6}, 0, 4)}, "transposed", ""},
      {{x({}), 0, m.make_index({}, 0, 1)}, "0-dim", ""},
      {{x({3, 4}), 1, m.make_index({3, 0}, 0, 4)}, "size 0", ""},
      {{x({3}), 0, m.make_index({2}, 3, 5)}, "out of range", "IndexError: out of "},
      {{x({3}), 0, m.make_index({2}, -3, -1)}, "negative", "IndexError: out of "},
      {{x({3, 4}), 1, m.make_index({4, 2}, 0, 4)}, "sizes", "RuntimeError: no larger than self"}};
}

/// Distinct positions, so that the order of stores does not matter.
Tensor distinct_rows(SampleMaker& m, int64_t rows, int64_t count, int64_t limit) {
  std::vector<int64_t> out;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<int64_t> all(limit);
    for (int64_t k = 0; k < limit; ++k) all[k] = k;
    std::shuffle(all.begin(), all.end(), m.random());
    out.insert(out.end(), all.begin(), all.begin() + count);
  }
  return tensor_from<int64_t>(out, Sizes{rows, count});
}

std::vector<Sample> scatter_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  std::vector<Sample> out{
      {{x({3, 5}), 1, distinct_rows(m, 3, 4, 5), x({3, 4}), "set"}, "set", ""},
      {{x({3, 5}), 1, m.make_index({2, 4}, 0, 5), x({3, 4}), "sum"}, "sum", ""},
      {{x({4, 3}), 0, m.make_index({6, 3}, 0, 4), x({6, 3}), "prod"}, "prod", ""},
      {{x({3, 5}), 1, m.make_index({3, 4}, 0, 5), x({3, 4}), "amax"}, "amax", ""},
      {{m.make_transposed({3, 5}, o.low, o.high), 1, m.make_index({3, 4}, 0, 5), x({3, 4}), "amin"},
       "amin",
       ""},
      {{x({}), 0, m.make_index({}, 0, 1), x({}), "sum"}, "0-dim", ""},
      {{x({3, 5}), 1, m.make_index({3, 0}, 0, 5), x({3, 4}), "set"}, "size 0", ""},
      {{x({3}), 0, m.make_index({2}, 3, 5), x({2}), "set"}, "out of range", "IndexError: out of "},
      {{x({3, 5}), 1, m.make_index({3, 4}, 0, 5), x({3, 2}), "sum"}, "sizes", "RuntimeError: than src"}};
  return out;
}

void define_gather_and_scatter(OpTable& t) {
  t.define(
      gather,
      {.doc = "out[i][j] = self[i][index[i][j]] for dim 1, and likewise for others. Negative indices raise.",
       .tags = Tag::NoInPlace,
       .infer = gather_rule,
       .lower = lower_gather,
       .saves = saves::in({2}),
       .grad =
           [](GradCtx& c, const Tensor& g) {
             const TensorSpec& in = c.in_spec(0);
             return _scatter(zeros(in.sizes, g.dtype(), g.device()), c.arg(1).to_int(), c.in(2), g, "sum");
           },
       .samples = samples::custom(gather_samples, {.dtypes = dtypes::all})});
  t.define(_scatter,
           {.doc = "self with src set, added, multiplied, or its extremes taken, at the positions that "
                   "`gather` would read.",
            .tags = Tag::NoInPlace,
            .infer = scatter_rule,
            .lower = lower_scatter,
            .saves = saves::in({0, 2, 3}) | saves::out({0}),
            .grad = scatter_gradient,
            .samples = samples::custom(
                scatter_samples, {.dtypes = dtypes::integers | dtypes::floats, .low = 0.5, .high = 3})});
}

/// The result's layout is TensorIterator's for self, with strides 0 along indexed dimensions, and the
/// indices.
InferResult index_rule(const InferCtx& c, int) {
  const TensorSpec& self = c.spec(0);
  const IndexPlan plan = index_plan(c);
  TensorSpec out = make_spec(plan.out_sizes(self.sizes), self.dtype, self.device);
  TensorSpec source = out;
  std::vector<TensorSpec> specs;
  source.strides = plan.source_strides(self.strides);
  for (const int k : plan.given) {
    TensorSpec s = out;
    s.strides = plan.index_strides(c.spec(1, k), out.dim());
    specs.push_back(std::move(s));
  }
  std::vector<const TensorSpec*> all{&source};
  for (const TensorSpec& s : specs) all.push_back(&s);
  out.strides = elementwise_strides(out.sizes, all);
  return {out};
}

/// The element of self that a point of the result names.
Index indexed_position(BodyOps& s, const IndexPlan& plan, std::span<const Expr> i,
                       const std::vector<Expr>& self_sizes, const std::vector<std::vector<Expr>>& index_sizes,
                       Val* valid) {
  const std::span<const Expr> point = i.subspan(plan.start, plan.sizes.size());
  Index out;
  size_t rest = 0;
  const auto next_kept = [&] {
    if (rest == static_cast<size_t>(plan.start)) rest += plan.sizes.size();
    return i[rest++];
  };
  size_t g = 0;
  for (int d = 0; d < static_cast<int>(self_sizes.size()); ++d) {
    if (g < plan.given.size() && plan.given[g] == d) {
      const Val at = s.load(1, broadcast_index(point, index_sizes[g]), {}, d);
      Val ok;
      out.push_back(s.indirect(at, self_sizes[d], "index", &ok));
      *valid = valid->id < 0 ? ok : s.bit_and(*valid, ok);
      ++g;
    } else {
      out.push_back(next_kept());
    }
  }
  return out;
}

std::vector<std::vector<Expr>> sizes_of_indices(const LowerCtx& c, const IndexPlan& plan) {
  std::vector<std::vector<Expr>> out;
  for (const int k : plan.given) out.push_back(c.sizes(1, k));
  return out;
}

Lowered lower_index(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const IndexPlan plan = index_plan(c);
  const std::vector<Expr> sizes = c.sizes(0);
  const auto index_sizes = sizes_of_indices(c, plan);
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Val valid;
    const Index at = indexed_position(s, plan, i, sizes, index_sizes, &valid);
    return std::vector<Val>{s.load(0, at, valid)};
  };
  return l;
}

InferResult index_put_rule(const InferCtx& c, int) {
  const TensorSpec &self = c.spec(0), &values = c.spec(2);
  FL_CHECK(
      values.dtype == self.dtype, RuntimeError,
      "Index put requires the source and destination dtypes match, got {} for the destination and {} for "
      "the source.",
      name(self.dtype), name(values.dtype));
  const Sizes target = index_plan(c).out_sizes(self.sizes);
  bool fits = values.sizes.size() <= target.size();
  for (size_t d = 0; fits && d < values.sizes.size(); ++d) {
    const SymInt size = values.sizes[values.sizes.size() - 1 - d], want = target[target.size() - 1 - d];
    fits = size.same_as(want) || size == SymInt(1) || size == want;
  }
  FL_CHECK(fits, RuntimeError,
           "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
           to_string(values.sizes), to_string(target));
  return rule::same_as_input().function(c, 0);
}

Lowered lower_index_put(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Scatter;
  const IndexPlan plan = index_plan(c);
  for (const SymInt s : plan.out_sizes(c.spec(0).sizes)) l.sizes.push_back(s.expr());
  l.mode = c.arg(3).to_bool() ? StoreMode::Add : StoreMode::Set;
  const std::vector<Expr> sizes = c.sizes(0), value_sizes = c.sizes(2);
  const auto index_sizes = sizes_of_indices(c, plan);
  const DType dtype = compute_dtype(c.out().dtype);
  l.update = [=](BodyOps& s, std::span<const Expr> i) {
    Val valid;
    Index at = indexed_position(s, plan, i, sizes, index_sizes, &valid);
    return Lowered::Update{std::move(at), s.cast(s.load(2, broadcast_index(i, value_sizes)), dtype), valid};
  };
  return l;
}

std::vector<Tensor> saved_indices(GradCtx& c) {
  std::vector<Tensor> out;
  for (int k = 0; k < c.list_size(1); ++k) out.push_back(c.in(1, k));
  return out;
}

Tensors index_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec& in = c.in_spec(0);
  Tensors out(1 + c.list_size(1));
  out[0] = _index_put(zeros(in.sizes, g.dtype(), g.device()), saved_indices(c), g, true);
  return out;
}

Tensors index_put_gradient(GradCtx& c, const Tensor& g) {
  const std::vector<Tensor> indices = saved_indices(c);
  Tensors out(2 + indices.size());
  if (c.needs(0)) {
    out[0] = c.arg(3).to_bool() ? g : _index_put(g, indices, zeros({}, g.dtype(), g.device()), false);
  }
  if (c.needs(2)) out.back() = _index(g, indices);
  return out;
}

std::vector<Sample> index_samples(SampleMaker& m, const Samples& o) {
  using List = std::vector<Tensor>;
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Tensor none;
  return {
      {{x({3, 4}), List{m.make_index({5}, -3, 3)}}, "rows", ""},
      {{x({3, 4}), List{none, m.make_index({2, 2}, 0, 4)}}, "columns", ""},
      {{x({3, 4}), List{m.make_index({2, 1}, 0, 3), m.make_index({3}, 0, 4)}}, "broadcast", ""},
      {{x({2, 3, 4}), List{m.make_index({5}, 0, 2), none, m.make_index({5}, 0, 4)}}, "apart", ""},
      {{m.make_transposed({2, 3, 4}, o.low, o.high), List{none, m.make_index({3}, 0, 3)}}, "transposed", ""},
      {{x({3, 4}), List{m.make_index({}, 0, 3)}}, "0-dim index", ""},
      {{x({3, 4}), List{m.make_index({0}, 0, 3)}}, "size 0", ""},
      {{x({3, 4}), List{m.make_index({2}, 3, 5)}}, "out of range", "IndexError: out of "},
      {{x({3, 4}), List{m.make_index({2}, 0, 3), m.make_index({3}, 0, 4)}},
       "sizes",
       "IndexError: could not be broadcast"}};
}

std::vector<Sample> index_put_samples(SampleMaker& m, const Samples& o) {
  using List = std::vector<Tensor>;
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Tensor none;
  const Tensor rows = tensor_from<int64_t>({2, 0}, Sizes{2});
  return {{{x({3, 4}), List{rows}, x({2, 4})}, "rows", ""},
          {{x({3, 4}), List{none, rows}, x({3, 2})}, "columns", ""},
          {{x({3, 4}), List{rows}, x({})}, "0-dim value", ""},
          {{x({3, 4}), List{m.make_index({5}, -3, 3)}, x({5, 4}), true}, "accumulate", ""},
          {{x({2, 3, 4}), List{m.make_index({5}, 0, 2), none, m.make_index({5}, 0, 4)}, x({5, 3}), true},
           "apart",
           ""},
          {{x({3, 4}), List{m.make_index({0}, 0, 3)}, x({0, 4})}, "size 0", ""},
          {{x({3, 4}), List{rows}, x({3, 4})}, "sizes", "RuntimeError: shape mismatch"}};
}

void define_index_and_put(OpTable& t) {
  t.define(_index,
           {.doc = "Elements at the positions that tensors of integers give; the dimensions of the "
                   "positions stand where the indexed ones stood if those are neighbours, else first.",
            .tags = Tag::NoInPlace,
            .infer = index_rule,
            .lower = lower_index,
            .saves = saves::in({1}),
            .grad = index_gradient,
            .samples = samples::custom(index_samples, {.dtypes = dtypes::all})});
  t.define(_index_put,
           {.doc = "self with values set, or added, at the positions that `_index` would read.",
            .tags = Tag::NoInPlace,
            .infer = index_put_rule,
            .lower = lower_index_put,
            .saves = saves::in({1}),
            .grad = index_put_gradient,
            .samples = samples::custom(index_put_samples,
                                       {.dtypes = dtypes::integers | dtypes::floats | dtypes::complexes})});
}

InferResult nonzero_rule(const InferCtx& c, int) {
  // In a trace the number of rows is a symbol that only a run knows.
  if (sym::ShapeEnv* env = sym::ShapeEnv::active())
    return {make_spec(Sizes{SymInt(env->create_unbacked()), SymInt(c.spec(0).dim())}, DType::Int64,
                      c.spec(0).device)};
  FL_RAISE(UnsupportedError, "{}: the number of rows depends on the elements of a tensor of sizes {}",
           c.op().schema.name, to_string(c.spec(0).sizes));
}

void define_nonzero(OpTable& t) {
  t.define(nonzero, {.doc = "The positions of the elements that are not 0, one row each, in row-major order.",
                     .tags = Tag::NoInPlace | Tag::NonDifferentiable | Tag::DataDependent,
                     .infer = nonzero_rule,
                     .library = LibraryCall::Nonzero,
                     .samples = samples::custom(
                         [](SampleMaker& m, const Samples& o) {
                           std::vector<Sample> out;
                           for (auto& [note, x] : samples::layouts(m, o.low, o.high))
                             out.push_back({{x}, note, ""});
                           return out;
                         },
                         {.dtypes = dtypes::all, .low = -1, .high = 1, .gradient = false})});
}

}  // namespace

void define_index(OpTable& t) {
  define_gather_and_scatter(t);
  define_index_and_put(t);
  define_nonzero(t);
}

}  // namespace fl
