#include "flambeau/ops/aten/attention.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                     double dropout, bool causal) {
  FL_CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(), RuntimeError,
           "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and "
           "value.dtype: {} instead.",
           name(query.dtype()), name(key.dtype()), name(value.dtype()));
  FL_CHECK(
      query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, RuntimeError,
      "Expected query, key, and value to all be at least 2 dimensional, but got query.dim: {}, key.dim: {} "
      "and value.dim: {} instead.",
      query.dim(), key.dim(), value.dim());
  FL_CHECK(!mask.defined() || !causal, RuntimeError,
           "Explicit attn_mask should not be set when is_causal=True");
  FL_CHECK(!mask.defined() || mask.dtype() == DType::Bool || mask.dtype() == query.dtype(), RuntimeError,
           "Expected attn_mask dtype to be bool or to match query dtype, but got attn_mask.dtype: {} and "
           "query.dtype: {} instead.",
           mask.defined() ? name(mask.dtype()) : "", name(query.dtype()));
  FL_CHECK(dropout >= 0 && dropout <= 1, RuntimeError,
           "dropout probability has to be between 0 and 1, but got {}", dropout);
}

/// Keys or values of fewer heads than the query has, each for a run of the query's heads.
Tensor for_heads(const Tensor& x, SymInt heads) {
  const SymInt own = x.size(-3);
  if (known_equal(own, heads)) return x;
  FL_CHECK(heads % own == SymInt(0), RuntimeError,
           "Number of heads in key and value must divide the number of heads in query: {} and {}", own,
           heads);
  return repeat_interleave(x, heads / own, x.dim() - 3);
}

/// Positions that a query may look at: itself and those before it.
Tensor causal_mask(SymInt queries, SymInt keys, Device device) {
  const Tensor row = unsqueeze(arange_end(queries, DType::Int64, device), 1);
  return le(arange_end(keys, DType::Int64, device), row);
}

Tensor attention(Tensor query, Tensor key, Tensor value, Tensor mask, double dropout_p, bool causal,
                 std::optional<double> scale, bool enable_gqa) {
  check_attention(query, key, value, mask, dropout_p, causal);
  if (enable_gqa) {
    key = for_heads(key, query.size(-3));
    value = for_heads(value, query.size(-3));
  }
  const double factor = scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1).guard_int()));
  Tensor scores = mul(matmul(query, transpose(key, -2, -1)), factor);
  bool may_be_empty = false;
  if (causal) {
    scores = where(causal_mask(query.size(-2), key.size(-2), query.device()), scores, -HUGE_VAL);
  } else if (mask.defined()) {
    may_be_empty = true;
    scores = mask.dtype() == DType::Bool ? where(mask, scores, -HUGE_VAL) : add(scores, mask);
  }
  Tensor weights = may_be_empty ? _safe_softmax(scores, -1) : softmax(scores, -1);
  if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
  return matmul(weights, value);
}

std::vector<Sample> attention_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto q = [&] { return x({2, 2, 3, 4}); };
  const auto k = [&] { return x({2, 2, 5, 4}); };
  std::vector<Sample> out{
      {{q(), k(), x({2, 2, 5, 6})}, "", ""},
      {{q(), k(), k(), Value(), 0.0, true}, "causal", ""},
      {{q(), k(), k(), m.make({3, 5}, DType::Bool, 0, 1)}, "mask", ""},
      {{q(), k(), k(), x({2, 1, 3, 5})}, "added mask", ""},
      {{x({3, 4}), x({5, 4}), x({5, 4}), Value(), 0.0, false, 0.3}, "matrices, scale", ""},
      {{x({2, 4, 3, 4}), k(), k(), Value(), 0.0, false, Value(), true}, "shared heads", ""},
      {{q(), k(), k(), m.make({3, 5}, DType::Bool, 0, 1), 0.0, true},
       "both",
       "RuntimeError: is_causal=True"}};
  return out;
}

}  // namespace

void define_attention(OpTable& t) {
  t.define(
      scaled_dot_product_attention,
      {.doc = "softmax(query key^T scale + mask) value along the last two dimensions, with dropout on the "
              "weights; scale is 1 / sqrt(last size) unless given. A bool mask keeps where it holds; a query "
              "that may look at nothing gets 0. enable_gqa shares each key and value among several heads.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = attention,
       .samples = samples::custom(attention_samples, {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

}  // namespace fl
