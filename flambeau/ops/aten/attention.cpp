#include "flambeau/ops/aten/attention.h"

#include <cmath>

#include "flambeau/op/routine_query.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/attention.h"
#include "flambeau/ops/prims/attention_parts.h"
#include "flambeau/ops/prims/random_source.h"
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

/// The same with 4 dimensions.
Tensor with_batch(const Tensor& x) {
  if (x.dim() == 4) return x;
  if (x.dim() > 4) return flatten(x, 0, x.dim() - 4);
  return with_batch(unsqueeze(x, 0));
}

/// What a mask adds to scores, as libraries take it: finite, for every query and key; and which queries may
/// look at nothing.
struct Bias {
  Tensor numbers, sees_nothing;
};
Bias bias_of(const Tensor& given, DType dtype, SymInt queries, SymInt keys) {
  Tensor mask = given;
  for (int d = 0; d < 2; ++d)  // repeated for all batches, all heads
    if (mask.strides()[d].same_as(0)) mask = narrow(mask, d, 0, 1);
  // Far below any score, and twice as much is still a number.
  const double low = dtype == DType::Float16 ? -32752 : -0x1p126;
  Bias b;
  if (mask.dtype() == DType::Bool) {
    b.numbers = to_dtype(where(mask, 0.0, low), dtype);
    b.sees_nothing = logical_not(any_dim(mask, -1, true));
  } else {
    b.numbers = maximum(mask, full_like(mask, low));
    b.sees_nothing = eq(amax(mask, {-1}, true), -HUGE_VAL);
  }
  b.numbers = contiguous(expand(b.numbers, {b.numbers.size(0), b.numbers.size(1), queries, keys}));
  return b;
}

bool fits(SymInt size, SymInt full) { return size == SymInt(1) || size == full; }

/// Whether _attention means the same for these operands: heads and batches are given for all, and nobody
/// wants the mask's gradient.
bool has_form_of_whole(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout,
                       bool shares_heads) {
  if (q.dim() != k.dim() || q.dim() != v.dim() || dropout == 1) return false;
  if (known_equal(q.size(-2), 1)) return false;  // the keys grow by one a call, and each has its own plan
  if (q.size(-1) != k.size(-1) || k.size(-2) != v.size(-2)) return false;
  for (int d = 0; d < q.dim() - 2; ++d) {
    const bool heads = d == q.dim() - 3 && shares_heads;
    if (k.size(d) != v.size(d) || (!heads && q.size(d) != k.size(d))) return false;
    if (heads && q.size(d) % k.size(d) != SymInt(0)) return false;
  }
  if (!mask.defined()) return true;
  if (q.dim() > 4 || mask.dim() > 4 || mask.dim() < 2) return false;
  if (mask.requires_grad() && dispatch_state().grad_enabled) return false;
  const Tensor m = with_batch(mask), x = with_batch(q);
  return fits(m.size(0), x.size(0)) && fits(m.size(1), x.size(1)) && fits(m.size(2), x.size(2)) &&
         fits(m.size(3), k.size(-2));
}

/// By one call of a library; undefined where none takes these operands.
Tensor attention_as_a_whole(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                            double dropout_p, bool causal, double scale, bool shares_heads) {
  Value asked[] = {query, key, value, Value(), Value(), dropout_p, causal, scale};
  if (mask.defined()) asked[3] = mask;
  if (!has_routine(_attention.info(), asked)) return {};
  if (!has_form_of_whole(query, key, value, mask, dropout_p, shares_heads)) return {};
  const Tensor q = with_batch(query);
  Bias bias;
  if (mask.defined()) bias = bias_of(with_batch(mask), query.dtype(), query.size(-2), key.size(-2));
  const Tensor seed = dropout_p > 0 ? random::seed_tensor(query.device(), nullptr) : Tensor();
  Tensor out = std::get<0>(
      _attention(q, with_batch(key), with_batch(value), bias.numbers, seed, dropout_p, causal, scale));
  if (mask.defined()) out = where(bias.sees_nothing, 0, out);
  if (query.dim() == 4) return out;
  Sizes sizes(query.sizes());
  sizes.back() = value.size(-1);
  return view(out, sizes);
}

Tensor attend(Tensor query, Tensor key, Tensor value, Tensor mask, double dropout_p, bool causal,
              std::optional<double> scale, bool enable_gqa) {
  check_attention(query, key, value, mask, dropout_p, causal);
  const double factor = scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1).guard_int()));
  const Tensor whole = attention_as_a_whole(query, key, value, mask, dropout_p, causal, factor, enable_gqa);
  if (whole.defined()) return whole;
  if (enable_gqa) {
    key = attention::for_heads(key, query.size(-3));
    value = attention::for_heads(value, query.size(-3));
  }
  const Tensor scores = attention::scores(query, key, mask, causal, factor);
  // Behind a mask there may be nothing to look at.
  Tensor weights = mask.defined() ? _safe_softmax(scores, -1) : softmax(scores, -1);
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
       .decompose = attend,
       .samples = samples::custom(attention_samples, {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

}  // namespace fl
