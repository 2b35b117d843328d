#include "flambeau/ops/aten/embedding_bag.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

enum class BagMode : int64_t { Sum, Mean, Max };

void check_call(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                const Tensor& per_sample) {
  FL_CHECK(weight.dim() == 2, ValueError,
           "embedding_bag: weight has to be a 2D Tensor, but got one of sizes {}", to_string(weight.sizes()));
  check_dtype("embedding_bag", weight.dtype(), Takes::Floating);
  const auto whole = [](const Tensor& t) { return t.dtype() == DType::Int64 || t.dtype() == DType::Int32; };
  FL_CHECK(whole(indices) && whole(offsets), RuntimeError,
           "Expected tensor for indices and offsets to have scalar types Long or Int, but got {} and {}",
           name(indices.dtype()), name(offsets.dtype()));
  FL_CHECK(indices.dim() == 1 && offsets.dim() == 1, ValueError,
           "embedding_bag: indices and offsets have to be 1D, but got sizes {} and {}",
           to_string(indices.sizes()), to_string(offsets.sizes()));
  FL_CHECK(mode >= 0 && mode <= 2, ValueError, "embedding_bag: mode has to be 0, 1 or 2, got {}", mode);
  FL_CHECK(
      !per_sample.defined() || mode == 0, RuntimeError,
      "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'");
  FL_CHECK(!per_sample.defined() || (per_sample.dtype() == weight.dtype() && per_sample.dim() == 1 &&
                                     per_sample.sizes()[0] == indices.sizes()[0]),
           RuntimeError,
           "expected per_sample_weights to be a 1D tensor of weight's dtype with one element an index");
  if (!is_readable(offsets) || offsets.numel() == SymInt(0)) return;
  const int64_t first = select(offsets, 0, 0).item().to_int(), last = select(offsets, 0, -1).item().to_int();
  FL_CHECK(first == 0, RuntimeError,
           "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
           "However, got {}",
           first);
  FL_CHECK(last >= 0, IndexError, "offsets[-1] must not be negative, got {}", last);
  FL_CHECK(SymInt(last) <= indices.sizes()[0], RuntimeError,
           "offsets[-1] can not be greater than input's length {} but got offsets[-1] of {}",
           indices.sizes()[0], last);
}

/// The position (in indices) of the maximum of each bag, a column each: the first where several are equal.
Tensor maxima(const Tensor& rows, const Tensor& best, const Tensor& bag, SymInt bags, SymInt count) {
  const Tensor positions = unsqueeze(arange_end(count, DType::Int64, rows.device()), 1);
  const Tensor is_best = eq(rows, index_select(best, 0, bag));
  const Tensor candidates = where(is_best, positions, count);
  const Tensor start = full({bags, rows.sizes()[1]}, count, DType::Int64, rows.device());
  const Tensor places = expand(unsqueeze(bag, 1), candidates.sizes());
  return scatter_reduce(start, 0, places, candidates, "amin", true);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> bags_of(Tensor weight, Tensor indices, Tensor offsets,
                                                   bool by_frequency, int64_t mode, bool, Tensor per_sample,
                                                   bool include_last, std::optional<int64_t> padding) {
  check_call(weight, indices, offsets, mode, per_sample);
  const Device device = weight.device();
  const SymInt count = indices.sizes()[0], bags = offsets.sizes()[0] - SymInt(include_last ? 1 : 0);
  FL_CHECK(bags >= SymInt(0), RuntimeError, "include_last_offset: number of offsets should be at least 1");
  const Tensor starts = slice(to_dtype(offsets, DType::Int64), 0, 0, bags, 1);
  const Tensor places = to_dtype(indices, DType::Int64);
  const int64_t skipped = padding.value_or(-1);
  // The bag of each index: how many bags start at or before it, less one.
  const Tensor number = arange_end(count, DType::Int64, device);
  const Tensor bag = sub(searchsorted(starts, number, false, true), 1);
  const Tensor counts_here = ne(places, skipped);
  const Tensor sizes =
      index_add(zeros({bags}, DType::Int64, device), 0, bag, to_dtype(counts_here, DType::Int64));
  const Tensor rows = to_compute(embedding(weight, places, SymInt(skipped), by_frequency));
  const Tensor start = zeros({bags, weight.sizes()[1]}, rows.dtype(), device);
  const auto result_indices = [&](const Tensor& t) { return to_dtype(t, indices.dtype()); };
  const Tensor no_maxima = zeros({bags}, DType::Int64, device);
  if (static_cast<BagMode>(mode) == BagMode::Max) {
    const Tensor valid = unsqueeze(counts_here, 1);
    const Tensor seen = where(valid, detach(rows), -std::numeric_limits<double>::infinity());
    const Tensor best =
        scatter_reduce(start, 0, expand(unsqueeze(bag, 1), rows.sizes()), seen, "amax", false);
    const Tensor chosen = maxima(seen, best, bag, bags, count);
    const Tensor any = unsqueeze(gt(sizes, 0), 1);
    // Rows with one of zeros at the end, for bags without anything.
    const Tensor padded = constant_pad_nd(rows, {SymInt(0), SymInt(0), SymInt(0), SymInt(1)}, 0);
    const Tensor values = gather(padded, 0, where(any, chosen, count));
    return {to_dtype(values, weight.dtype()), result_indices(bag), result_indices(sizes),
            result_indices(
                where(any,
                      gather(constant_pad_nd(expand(unsqueeze(places, 1), rows.sizes()), {0, 0, 0, 1}, -1), 0,
                             where(any, chosen, count)),
                      -1))};
  }
  Tensor terms = where(unsqueeze(counts_here, 1), rows, 0);
  if (per_sample.defined()) terms = mul(terms, unsqueeze(to_compute(per_sample), 1));
  Tensor sums = index_add(start, 0, bag, terms);
  if (static_cast<BagMode>(mode) == BagMode::Mean)
    sums = div(sums, unsqueeze(to_dtype(clamp_min(sizes, 1), sums.dtype()), 1));
  return {to_dtype(sums, weight.dtype()), result_indices(bag), result_indices(sizes),
          result_indices(no_maxima)};
}

}  // namespace

void define_embedding_bag(OpTable& t) {
  t.define(
      embedding_bag,
      {.doc =
           "The sum, mean or maximum (mode 0, 1, 2) of the rows of weight that each bag names: the indices "
           "between one offset and the next. An index equal to padding_idx does not count.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = bags_of,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto table = [&] { return m.make({5, 3}, o.low, o.high); };
             const Tensor indices = tensor_from<int64_t>({1, 4, 0, 2, 2, 3}, Sizes{6});
             const Tensor offsets = tensor_from<int64_t>({0, 2, 2, 5}, Sizes{4});
             std::vector<Sample> out;
             for (const int mode : {0, 1, 2})
               out.push_back(
                   {{table(), indices, offsets, false, mode, false, Value(), false, Value()}, "", ""});
             out.push_back({{table(), indices, offsets, false, 0, false, m.make({6}, o.low, o.high), true, 2},
                            "weights, last offset, padding",
                            ""});
             out.push_back({{table(), indices, offsets, false, 3, false, Value(), false, Value()},
                            "mode",
                            "ValueError: has to be 0, 1 or 2"});
             const auto wrong = [&](std::vector<int64_t> at, std::vector<int64_t> from, const char* error) {
               const auto vector = [](const std::vector<int64_t>& v) {
                 return tensor_from<int64_t>(v, Sizes{SymInt(static_cast<int64_t>(v.size()))});
               };
               out.push_back({{table(), vector(at), vector(from), false, 0, false, Value(), false, Value()},
                              error,
                              error});
             };
             wrong({1, 5}, {0}, "IndexError: out of ");
             wrong({1, -1}, {0}, "IndexError: out of ");
             wrong({1, 2}, {1}, "RuntimeError: has to be 0");
             wrong({1, 2}, {0, 3}, "RuntimeError: greater than input's length");
             return out;
           },
           {.dtypes = dtypes::full_floats})});
}

}  // namespace fl
