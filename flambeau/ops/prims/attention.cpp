#include "flambeau/ops/prims/attention.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/attention_parts.h"
#include "flambeau/ops/prims/random_source.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace attention {
namespace {

/// Positions that a query may look at: itself and those before it.
Tensor causal_mask(SymInt queries, SymInt keys, Device device) {
  const Tensor row = unsqueeze(arange_end(queries, DType::Int64, device), 1);
  return le(arange_end(keys, DType::Int64, device), row);
}

}  // namespace

Tensor for_heads(const Tensor& x, SymInt heads) {
  const SymInt own = x.size(-3);
  if (known_equal(own, heads)) return x;
  FL_CHECK(heads % own == SymInt(0), RuntimeError,
           "Number of heads in key and value must divide the number of heads in query: {} and {}", own,
           heads);
  return repeat_interleave(x, heads / own, x.dim() - 3);
}

Tensor scores(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal, double scale) {
  const Tensor products = mul(matmul(query, transpose(key, -2, -1)), scale);
  if (causal) return where(causal_mask(query.size(-2), key.size(-2), query.device()), products, -HUGE_VAL);
  if (!mask.defined()) return products;
  return mask.dtype() == DType::Bool ? where(mask, products, -HUGE_VAL) : add(products, mask);
}

}  // namespace attention

namespace {

/// The operands of a call and of its gradients.
struct Call {
  Tensor query, key, value, mask, seed;
  double dropout;
  bool causal;
  double scale;

  Tensor scores() const {
    return attention::scores(query, attention::for_heads(key, query.size(1)), mask, causal, scale);
  }
  Tensor values() const { return attention::for_heads(value, query.size(1)); }
  /// Weights, or their gradient, after dropout.
  Tensor dropped(const Tensor& weights) const {
    if (dropout == 0) return weights;
    if (dropout == 1) return zeros_like(weights);
    const Tensor numbers = philox_uniform_by_seed(seed, weights.sizes(), DType::Float32);
    return where(lt(numbers, 1 - dropout), mul(weights, 1 / (1 - dropout)), 0);
  }
};

/// The layout of results: tokens before heads where the operand has them so.
bool has_tokens_first(IntList strides) { return strides[1] < strides[2]; }

Tensor laid_out_like(const Tensor& like, const Tensor& x) {
  if (!has_tokens_first(like.strides())) return x;
  return transpose(contiguous(transpose(x, 1, 2)), 1, 2);
}

std::tuple<Tensor, Tensor> attend(Tensor query, Tensor key, Tensor value, Tensor mask, Tensor seed,
                                  double dropout, bool causal, double scale) {
  const Call call{query, key, value, mask, seed, dropout, causal, scale};
  const Tensor scores = call.scores();
  const Tensor out = matmul(call.dropped(softmax(scores, -1)), call.values());
  return {laid_out_like(query, out), logsumexp(to_compute(scores), {-1})};
}

/// A gradient by what was repeated for the query's heads, summed over each run.
Tensor by_own_heads(const Tensor& g, SymInt heads) {
  if (known_equal(g.size(1), heads)) return g;
  const Tensor runs = reshape(g, {g.size(0), heads, g.size(1) / heads, g.size(2), g.size(3)});
  return to_dtype(sum(to_compute(runs), IntList{2}), g.dtype());
}

struct Gradients {
  Tensor query, key, value, scores;
};

/// From the operands alone. by_sums: the gradient by logsumexp, or undefined.
Gradients gradients(const Call& c, const Tensor& g, const Tensor& by_sums) {
  const DType dtype = c.query.dtype();
  const Tensor weights = softmax(to_compute(c.scores()), -1);
  const Tensor by_weights = c.dropped(to_compute(matmul(g, transpose(c.values(), -2, -1))));
  Tensor outer = sum(mul(by_weights, weights), IntList{-1}, true);
  if (by_sums.defined()) outer = sub(outer, unsqueeze(by_sums, -1));
  const Tensor by_scores = mul(sub(by_weights, outer), weights);
  const Tensor by_products = to_dtype(mul(by_scores, c.scale), dtype);
  Gradients out;
  out.scores = to_dtype(by_scores, dtype);
  out.query = matmul(by_products, attention::for_heads(c.key, c.query.size(1)));
  out.key = by_own_heads(matmul(transpose(by_products, -2, -1), c.query), c.key.size(1));
  out.value = by_own_heads(matmul(transpose(to_dtype(c.dropped(weights), dtype), -2, -1), g), c.key.size(1));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> attend_backward(Tensor g, Tensor query, Tensor key, Tensor value,
                                                   Tensor mask, Tensor seed, Tensor, Tensor, double dropout,
                                                   bool causal, double scale) {
  const Gradients by = gradients({query, key, value, mask, seed, dropout, causal, scale}, g, Tensor());
  return {laid_out_like(query, by.query), laid_out_like(key, by.key), laid_out_like(value, by.value)};
}

Tensors attention_gradient(GradCtx& c, const Tensor& g) {
  const Call call{c.in(0),
                  c.in(1),
                  c.in(2),
                  c.is_tensor(3) ? c.in(3) : Tensor(),
                  c.is_tensor(4) ? c.in(4) : Tensor(),
                  c.arg(5).to_double(),
                  c.arg(6).to_bool(),
                  c.arg(7).to_double()};
  const bool by_mask = c.is_tensor(3) && c.needs(3);
  if (by_mask || c.grad_defined(1)) {
    const Gradients by = gradients(call, g, c.grad_defined(1) ? c.grad(1) : Tensor());
    return {by.query, by.key, by.value, by_mask ? by.scores : Tensor(), Tensor()};
  }
  const auto [query, key, value] =
      _attention_backward(g, call.query, call.key, call.value, call.mask, call.seed, c.out(0), c.out(1),
                          call.dropout, call.causal, call.scale);
  return {query, key, value, Tensor(), Tensor()};
}

/// Tokens before heads where `like` has them so, as projections of all heads do; else row-major.
TensorSpec result_like(const TensorSpec& like, IntList sizes) {
  TensorSpec out = make_spec(sizes, like.dtype, like.device);
  if (has_tokens_first(like.strides)) {
    const SymInt row = sizes[1] * sizes[3];
    out.strides = {sizes[2] * row, sizes[3], row, SymInt(1)};
  }
  return out;
}

void check_operands(const InferCtx& c, int first) {
  const TensorSpec &q = c.spec(first), &k = c.spec(first + 1), &v = c.spec(first + 2);
  const auto text = [&] {
    return fmt::format("got query {}, key {} and value {}", to_string(q.sizes), to_string(k.sizes),
                       to_string(v.sizes));
  };
  FL_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, RuntimeError,
           "{}: expected operands of 4 dimensions, {}", c.op().schema.name, text());
  const bool fit = q.sizes[0] == k.sizes[0] && q.sizes[0] == v.sizes[0] && k.sizes[1] == v.sizes[1] &&
                   k.sizes[2] == v.sizes[2] && q.sizes[3] == k.sizes[3];
  FL_CHECK(fit, RuntimeError, "{}: sizes do not fit: {}", c.op().schema.name, text());
  FL_CHECK(k.sizes[1] == q.sizes[1] || (k.sizes[1] > SymInt(0) && q.sizes[1] % k.sizes[1] == SymInt(0)),
           RuntimeError, "{}: the heads of the key have to divide the query's, {}", c.op().schema.name,
           text());
  check_dtype(c.op().schema.name, q.dtype, Takes::Floating);
  FL_CHECK(q.dtype == k.dtype && q.dtype == v.dtype, RuntimeError,
           "{}: expected operands of one dtype, got {}, {} and {}", c.op().schema.name, name(q.dtype),
           name(k.dtype), name(v.dtype));
}

InferResult attention_rule(const InferCtx& c, int) {
  check_operands(c, 0);
  const TensorSpec &q = c.spec(0), &v = c.spec(2);
  FL_CHECK(c.has(4) || c.arg(5).to_double() == 0, RuntimeError, "{}: dropout needs a seed",
           c.op().schema.name);
  return {result_like(q, {q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]}),
          make_spec({q.sizes[0], q.sizes[1], q.sizes[2]}, compute_dtype(q.dtype), q.device)};
}

InferResult attention_backward_rule(const InferCtx& c, int) {
  check_operands(c, 1);
  InferResult out;
  for (int i = 1; i <= 3; ++i) out.push_back(result_like(c.spec(i), c.spec(i).sizes));
  return out;
}

std::vector<Sample> attention_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto turned = [&](IntList sizes) {
    return transpose(x({sizes[0], sizes[2], sizes[1], sizes[3]}), 1, 2);
  };
  const Value none;
  const Value seed = m.make_index({1}, 0, 1000);
  const auto k = [&] { return x({2, 2, 5, 4}); };
  return {{{x({2, 2, 3, 4}), k(), x({2, 2, 5, 6}), none, none, 0.0, false, 0.5}, "", ""},
          {{x({2, 2, 6, 4}), k(), k(), none, none, 0.0, true, 0.5}, "causal", ""},
          {{x({2, 2, 3, 4}), k(), k(), x({2, 1, 3, 5}), none, 0.0, false, 0.5}, "mask", ""},
          {{turned({2, 4, 3, 4}), turned({2, 2, 5, 4}), k(), none, none, 0.0, true, 1.0}, "shared heads", ""},
          {{x({2, 2, 3, 4}), k(), k(), none, seed, 0.25, false, 0.5}, "dropout", ""},
          {{x({0, 2, 3, 4}), x({0, 2, 5, 4}), x({0, 2, 5, 4}), none, none, 0.0, false, 0.5}, "size 0", ""},
          {{x({2, 3, 3, 4}), k(), k(), none, none, 0.0, false, 0.5}, "heads", "RuntimeError: have to divide"},
          {{x({2, 2, 3, 4}), k(), k(), none, none, 0.5, false, 0.5}, "no seed", "RuntimeError: needs a seed"},
          {{x({3, 4}), k(), k(), none, none, 0.0, false, 0.5}, "rank", "RuntimeError: 4 dimensions"}};
}

std::vector<Sample> backward_samples(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out;
  for (const Sample& s : attention_samples(m, o)) {
    if (!s.error.empty()) continue;
    const auto [result, sums] = attend(s.args[0].tensor(), s.args[1].tensor(), s.args[2].tensor(),
                                       s.args[3].is_none() ? Tensor() : s.args[3].tensor(),
                                       s.args[4].is_none() ? Tensor() : s.args[4].tensor(),
                                       s.args[5].to_double(), s.args[6].to_bool(), s.args[7].to_double());
    std::vector<Value> args{m.make(result.sizes(), o.low, o.high)};
    args.insert(args.end(), s.args.begin(), s.args.begin() + 5);
    args.insert(args.end(), {result, sums});
    args.insert(args.end(), s.args.begin() + 5, s.args.end());
    out.push_back({std::move(args), s.note, ""});
  }
  return out;
}

}  // namespace

void define_attention_prim(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive;
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::floats, .low = -1, .high = 1, .tolerance = 1e-4});
  };
  t.define(_attention,
           {.doc = "softmax(query key^T scale + mask) value, with dropout on the weights by the numbers of a "
                   "seed, and the logarithm of each row's sum of exponentials. A library has dropout's "
                   "numbers of its own.",
            .tags = kTags,
            .infer = attention_rule,
            .library = LibraryCall::HostRoutine,
            .decompose = attend,
            .saves = saves::in({0, 1, 2, 3, 4}) | saves::out({0, 1}),
            .grad = attention_gradient,
            .samples = options(attention_samples)});
  t.define(_attention_backward, {.doc = "The gradients of `_attention` by query, key and value.",
                                 .tags = kTags,
                                 .infer = attention_backward_rule,
                                 .library = LibraryCall::HostRoutine,
                                 .decompose = attend_backward,
                                 .samples = options(backward_samples)});
}

}  // namespace fl
