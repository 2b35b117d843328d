#include "flambeau/ops/aten/segments.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

struct Reduction {
  std::string_view scatter;  ///< the mode of scatter_reduce
  double neutral;
};
Reduction reduction(std::string_view name) {
  if (name == "sum" || name == "mean") return {"sum", 0};
  if (name == "prod") return {"prod", 1};
  if (name == "max") return {"amax", -HUGE_VAL};
  FL_CHECK(name == "min", RuntimeError,
           "segment_reduce: expected reduce to be one of sum, mean, prod, max or min, got {}", name);
  return {"amin", HUGE_VAL};
}

/// Where the segments begin, and the end of the last one, along the last dimension.
Tensor bounds(const Tensor& lengths, const Tensor& offsets) {
  FL_CHECK(lengths.defined() != offsets.defined(), RuntimeError,
           "segment_reduce: expected either lengths or offsets");
  if (offsets.defined()) return to_dtype(offsets, DType::Int64);
  const Tensor ends = cumsum(lengths, -1);
  Sizes first = ends.sizes();
  first.back() = 1;
  return cat(std::vector<Tensor>{zeros(first, ends.dtype(), ends.device()), ends}, -1);
}

void check_lengths(const Tensor& data, const Tensor& begins, int64_t axis, bool unsafe,
                   bool given_as_offsets) {
  FL_CHECK(begins.dim() == axis + 1, RuntimeError,
           "segment_reduce(): Expected lengths or offsets of {} dimensions, got {}", axis + 1, begins.dim());
  if (unsafe || !is_readable(begins) || begins.numel() == SymInt(0)) return;
  FL_CHECK(all_all(ge(diff(begins), 0)).item().to_bool(), RuntimeError, "lengths contains negative value!");
  if (given_as_offsets) {
    FL_CHECK(all_all(logical_and(ge(begins, 0), le(begins, Scalar(data.size(axis))))).item().to_bool(),
             RuntimeError, "segment_reduce(): Expected offsets from 0 to {}", data.size(axis));
    return;
  }
  const Tensor last = select(begins, -1, -1);
  FL_CHECK(all_all(eq(last, Scalar(data.size(axis)))).item().to_bool(), RuntimeError,
           "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1)");
}

/// Every element's segment along axis; one more than the last for those of none.
Tensor segments_of(const Tensor& data, const Tensor& begins, int64_t axis) {
  const SymInt count = begins.size(-1) - SymInt(1);
  const Sizes lines(data.sizes().begin(), data.sizes().begin() + axis + 1);
  const Tensor place = expand(arange_end(data.size(axis), DType::Int64, data.device()), lines);
  const Tensor found = sub(searchsorted(clone(begins), clone(place), false, true), 1);
  const Tensor segment = where(logical_and(ge(found, 0), lt(found, Scalar(count))), found, Scalar(count));
  Sizes kept = segment.sizes();
  while (static_cast<int>(kept.size()) < data.dim()) kept.push_back(1);
  return expand(view(segment, kept), data.sizes());
}

Tensor reduced_by_segment(Tensor data, std::string_view reduce, Tensor lengths, Tensor indices,
                          Tensor offsets, int64_t axis, bool unsafe, std::optional<Scalar> initial) {
  FL_CHECK(!indices.defined(), RuntimeError,
           "segment_reduce(): indices based reduction is not supported yet.");
  FL_CHECK(data.dim() > 0 && is_floating(data.dtype()), RuntimeError,
           "segment_reduce(): expected floating point data of one dimension or more");
  const Reduction how = reduction(reduce);
  const int64_t d = wrap_dim(axis, data.dim());
  const Tensor begins = bounds(lengths, offsets);
  check_lengths(data, begins, d, unsafe, offsets.defined());
  const SymInt count = begins.size(-1) - SymInt(1);
  const Tensor segment = segments_of(data, begins, d);
  Sizes sizes = data.sizes();
  sizes[d] = count + SymInt(1);
  const Tensor base = full(sizes, initial.value_or(Scalar(how.neutral)), data.dtype(), data.device());
  const Tensor out = narrow(scatter_reduce(base, d, segment, data, how.scatter, true), d, 0, count);
  if (reduce != "mean") return clone(out, MemoryFormat::Contiguous);
  const Tensor none = zeros(sizes, data.dtype(), data.device());
  const Tensor counts = narrow(_scatter(none, d, segment, ones_like(data), "sum"), d, 0, count);
  return div(out, initial ? clamp_min(counts, 1) : counts);
}

}  // namespace

void define_segments(OpTable& t) {
  t.define(
      segment_reduce,
      {.doc = "Consecutive segments of a dimension reduced (sum, mean, prod, max, min); their lengths, "
              "or where they begin and the last one ends, may differ between lines.",
       .tags = Tag::NoInPlace,
       .decompose = reduced_by_segment,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             std::vector<Sample> out;
             const Tensor lengths = tensor_from<int64_t>({2, 3, 1}, Sizes{3});
             for (const char* how : {"sum", "mean", "prod", "max", "min"})
               out.push_back({{m.make({6, 2}, o.low, o.high), how, lengths}, how, ""});
             out.push_back({{m.make({2, 4}, o.low, o.high), "sum", Value(), Value(),
                             tensor_from<int64_t>({0, 1, 4, 0, 2, 4}, Sizes{2, 3}), 1, false, 0.5},
                            "offsets",
                            ""});
             out.push_back({{m.make({6}, o.low, o.high), "last", lengths}, "how", "RuntimeError: one of"});
             return out;
           },
           {.low = 1, .high = 3})});
}

}  // namespace fl
