#include "flambeau/ops/aten/indexing.h"

#include <cmath>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using List = std::vector<Tensor>;

/// Indices on the CPU go to the device of the indexed tensor.
Tensor beside(const Tensor& self, const Tensor& index) {
  const Device device = self.device();
  if (!index.defined() || index.device() == device) return index;
  FL_CHECK(index.device().type == DeviceType::CPU, RuntimeError,
           "indices should be either on cpu or on the same device as the indexed tensor ({}), got {}",
           device.str(), index.device().str());
  return _to_copy(index, std::nullopt, device);
}

/// Masks become the positions of their elements that hold; integers become int64.
List as_positions(const Tensor& self, TensorList indices) {
  List out;
  for (const Tensor& given : indices) {
    const Tensor index = beside(self, given);
    if (!index.defined()) {
      out.push_back(index);
    } else if (index.dtype() == DType::Bool || index.dtype() == DType::UInt8) {
      const size_t first = out.size();
      for (int d = 0; d < index.dim(); ++d) {
        const size_t at = first + d;
        FL_CHECK(at < self.sizes().size() && index.sizes()[d] == self.sizes()[at], IndexError,
                 "The shape of the mask {} at index {} does not match the shape of the indexed tensor {} at "
                 "index {}",
                 to_string(index.sizes()), d, to_string(self.sizes()), at);
      }
      const Tensor rows = nonzero(index);
      for (int d = 0; d < index.dim(); ++d) out.push_back(select(rows, 1, d));
    } else {
      FL_CHECK(is_integral(index.dtype()), IndexError,
               "tensors used as indices must be long, int, byte or bool tensors, got {}",
               name(index.dtype()));
      out.push_back(to_dtype(index, DType::Int64));
    }
  }
  FL_CHECK(out.size() <= self.sizes().size(), IndexError,
           "too many indices for tensor of dimension {} (got {})", self.dim(), out.size());
  return out;
}

bool is_mask(const Tensor& t) {
  return t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::UInt8);
}
bool has_mask(TensorList indices) {
  for (const Tensor& t : indices)
    if (is_mask(t)) return true;
  return false;
}
bool all_undefined(TensorList indices) {
  for (const Tensor& t : indices)
    if (t.defined()) return false;
  return true;
}

Tensor index_of(Tensor self, TensorList indices) {
  if (all_undefined(indices)) return alias(self);
  return _index(self, as_positions(self, indices));
}

/// Values under one mask of self's leading dimensions need no positions where there is one value.
Tensor index_put_of(Tensor self, TensorList indices, Tensor values, bool accumulate) {
  if (has_mask(indices) && indices.size() == 1 && !accumulate && values.dim() == 0 &&
      indices[0].dtype() == DType::Bool) {
    Tensor mask = beside(self, indices[0]);
    for (int d = 0; d < mask.dim(); ++d)
      FL_CHECK(d < self.dim() && mask.sizes()[d] == self.sizes()[d], IndexError,
               "The shape of the mask {} at index {} does not match the shape of the indexed tensor {} at "
               "index {}",
               to_string(mask.sizes()), d, to_string(self.sizes()), d);
    while (mask.dim() < self.dim()) mask = unsqueeze(mask, -1);
    return where(mask, values, self);
  }
  if (all_undefined(indices)) {
    const Tensor filled = expand(values, self.sizes());
    return accumulate ? add(self, filled) : clone(filled);
  }
  return _index_put(self, as_positions(self, indices), values, accumulate);
}

void check_vector(const Tensor& index, const char* op) {
  FL_CHECK(index.dim() <= 1, IndexError, "{}(): Index is supposed to be a vector, got {} dimensions", op,
           index.dim());
  FL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, RuntimeError,
           "{}(): Expected dtype int32/int64 for index, got {}", op, name(index.dtype()));
}
Tensor as_vector(const Tensor& index) { return index.dim() == 0 ? unsqueeze(index, 0) : index; }

/// The positions as an index for gather and scatter, of the tensor's sizes but along dim.
Tensor spread(const Tensor& index, const Tensor& like, int64_t dim) {
  if (like.dim() == 0) return reshape(index, IntList());
  const int64_t d = wrap_dim(dim, like.dim());
  Sizes along(like.dim(), SymInt(1)), sizes = like.sizes();
  along[d] = sizes[d] = index.numel();
  return expand(view(as_vector(index), along), sizes);
}

Tensor selected(Tensor self, int64_t dim, Tensor index) {
  check_vector(index, "index_select");
  FL_CHECK(self.dim() > 0 || index.numel() == SymInt(1), IndexError,
           "index_select(): Index to scalar can have only 1 value, got {} value(s)", index.numel());
  return gather(self, dim, spread(index, self, dim));
}

Tensor put_along(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& values,
                 const char* mode) {
  const Tensor source = self.dim() == 0 ? reshape(values, IntList()) : values;
  return _scatter(self, dim, spread(index, source, dim), source, mode);
}

void check_source(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  const char* op) {
  check_vector(index, op);
  FL_CHECK(self.dtype() == source.dtype(), RuntimeError,
           "{}(): self ({}) and source ({}) must have the same scalar type", op, name(self.dtype()),
           name(source.dtype()));
  const SymInt count = source.dim() == 0 ? SymInt(1) : source.size(dim);
  FL_CHECK(count == index.numel(), RuntimeError,
           "{}(): Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {}", op,
           index.numel(), count, dim);
}

/// The places along the dimension are marked first; marks are the same for every other dimension.
Tensor filled_along(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  const Tensor at = as_vector(to_dtype(index, DType::Int64));
  const SymInt size = self.dim() == 0 ? SymInt(1) : self.size(dim);
  const Tensor wrapped = where(lt(at, 0), add(at, size), at);
  const Tensor mark = ones(at.sizes(), DType::Bool, self.device());
  const Tensor named = _scatter(zeros({size}, DType::Bool, self.device()), 0, wrapped, mark, "set");
  Sizes along(self.dim(), SymInt(1));
  if (self.dim() > 0) along[wrap_dim(dim, self.dim())] = size;
  return masked_fill(self, view(named, along), value);
}

std::vector<Sample> select_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x({3, 4}), 1, m.make_index({6}, 0, 4)}, "", ""},
          {{m.make_transposed({2, 3, 4}, o.low, o.high), 0, m.make_index({3}, 0, 2)}, "transposed", ""},
          {{x({3, 4}), 0, m.make_index({0}, 0, 3)}, "size 0", ""},
          {{x({3, 4}), 0, m.make_index({2}, 3, 5)}, "out of range", "IndexError: out of "},
          {{x({3, 4}), 0, m.make_index({2, 2}, 0, 3)}, "matrix", "IndexError: vector"}};
}
std::vector<Sample> source_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Tensor rows = tensor_from<int64_t>({2, 0}, Sizes{2});
  return {{{x({3, 4}), 0, rows, x({2, 4})}, "", ""},
          {{m.make_transposed({4, 3}, o.low, o.high), -1, rows, x({4, 2})}, "columns", ""},
          {{x({3, 4}), 0, rows, x({3, 4})}, "sizes", "RuntimeError: Number of indices"}};
}

void define_selection(OpTable& t) {
  t.define(index,
           {.doc = "self[indices] with tensors of integers, which broadcast, and masks, which stand for the "
                   "positions that hold; None stands for a whole dimension.",
            .tags = Tag::NoInPlace,
            .decompose = index_of,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  const Tensor none;
                  return std::vector<Sample>{
                      {{x({3, 4}), List{m.make_index({5}, -3, 3)}}, "rows", ""},
                      {{x({3, 4}), List{none, m.make({2}, DType::Int32, 0, 3)}}, "int32", ""},
                      {{x({2, 3}), List{m.make_index({2, 2, 2}, 0, 2)}}, "three dimensions", ""},
                      {{x({3}), List{m.make({2}, 0, 2)}}, "floats", "IndexError: must be long"},
                      {{x({3}), List{none, m.make_index({2}, 0, 2)}}, "too many", "IndexError: too many"}};
                },
                {.dtypes = dtypes::full_floats})});
  t.define(index_put,
           {.doc = "self with values set, or added, at self[indices].",
            .decompose = index_put_of,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  const Tensor rows = tensor_from<int64_t>({2, 0}, Sizes{2});
                  return std::vector<Sample>{
                      {{x({3, 4}), List{rows}, x({4})}, "rows", ""},
                      {{x({3, 4}), List{m.make({3, 4}, DType::Bool, 0, 1)}, x({})}, "mask", ""},
                      {{x({3, 4}), List{m.make({3}, DType::Bool, 0, 1)}, x({})}, "mask of rows", ""},
                      {{x({3, 4}), List{m.make_index({5}, 0, 3)}, x({5, 4}), true}, "accumulate", ""}};
                },
                {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(index_select, {.doc = "Elements along a dimension at the positions that a vector gives.",
                          .tags = Tag::NoInPlace,
                          .decompose = selected,
                          .samples = samples::custom(select_samples, {.dtypes = dtypes::all})});
  t.define(index_add,
           {.doc = "self with alpha * source added along a dimension at the positions that a vector gives.",
            .decompose =
                [](Tensor self, int64_t dim, Tensor index, Tensor source, Scalar alpha) {
                  check_source(self, dim, index, source, "index_add");
                  const Tensor values = alpha == Scalar(1) ? source : mul(source, alpha);
                  return put_along(self, dim, index, values, "sum");
                },
            .samples = samples::custom(source_samples, {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(index_copy,
           {.doc = "self with source along a dimension at the positions that a vector gives.",
            .decompose =
                [](Tensor self, int64_t dim, Tensor index, Tensor source) {
                  check_source(self, dim, index, source, "index_copy");
                  return put_along(self, dim, index, source, "set");
                },
            .samples = samples::custom(source_samples, {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(index_fill,
           {.doc = "self with a value along a dimension at the positions that a vector gives.",
            .decompose =
                [](Tensor self, int64_t dim, Tensor index, Tensor value) {
                  check_vector(index, "index_fill");
                  FL_CHECK(value.dim() == 0, RuntimeError,
                           "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
                           "dimension(s).",
                           value.dim());
                  return filled_along(self, dim, index, value);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({3, 4}), 1, m.make_index({2}, 0, 4), x({})}, "", ""},
                      {{x({3, 4}), 0, m.make_index({5}, -3, 3), x({})}, "from the end, twice", ""},
                      {{x({}), 0, m.make_index({1}, 0, 1), x({})}, "0-dim", ""},
                      {{x({3, 4}), 1, m.make_index({0}, 0, 4), x({})}, "no index", ""},
                      {{x({3, 4}), 0, m.make_index({2}, 3, 5), x({})}, "out of range", "IndexError: out of "},
                      {{x({3, 4}), 0, m.make_index({2}, -5, -3), x({})}, "before", "IndexError: out of "}};
                },
                {.dtypes = dtypes::integers | dtypes::floats})});
}

/// self where nothing is scattered to; the neutral element of the reduction elsewhere.
Tensor without_targets(const Tensor& self, int64_t dim, const Tensor& index, std::string_view mode) {
  const bool whole = is_integral(self.dtype(), true);
  const double infinity = HUGE_VAL;
  const int bits = self.dtype() == DType::Bool ? 1 : static_cast<int>(size_of(self.dtype())) * 8;
  const bool has_sign = info(self.dtype()).is_signed;
  const int64_t high =
      has_sign ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) : (int64_t{1} << bits) - 1;
  const int64_t low = has_sign ? -high - 1 : 0;
  Scalar neutral(0);
  if (mode == "prod") neutral = Scalar(1);
  if (mode == "amax") neutral = whole ? Scalar(low) : Scalar(-infinity);
  if (mode == "amin") neutral = whole ? Scalar(high) : Scalar(infinity);
  const Tensor value = expand(full({}, neutral, self.dtype(), self.device()), index.sizes());
  return _scatter(self, dim, index, value, "set");
}

Tensor scatter_reduced(Tensor self, int64_t dim, Tensor index, Tensor src, std::string_view reduce,
                       bool include_self) {
  const bool is_mean = reduce == "mean";
  const std::string_view mode = is_mean ? "sum" : reduce;
  FL_CHECK(mode != "set", RuntimeError,
           "reduce argument must be either sum, prod, mean, amax or amin, got {}", reduce);
  const Tensor base = include_self ? self : without_targets(self, dim, index, mode);
  const Tensor total = _scatter(base, dim, index, src, mode);
  if (!is_mean) return total;
  const Tensor one = full({}, 1, self.dtype(), self.device());
  const Tensor start = full(self.sizes(), include_self ? 1 : 0, self.dtype(), self.device());
  const Tensor count = _scatter(start, dim, index, expand(one, index.sizes()), "sum");
  const Tensor divisor = clamp_min(count, 1);
  return is_floating(self.dtype()) ? div(total, divisor) : floor_divide(total, divisor);
}

std::vector<Sample> scatter_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Tensor at = tensor_from<int64_t>({0, 2, 1, 4, 3, 0}, Sizes{2, 3});
  return {{{x({3, 5}), 1, at, x({2, 3})}, "", ""}, {{x({}), 0, m.make_index({}, 0, 1), x({})}, "0-dim", ""}};
}

void define_scatters(OpTable& t) {
  const Samples plain = samples::custom(scatter_samples, {.dtypes = dtypes::all});
  t.define(scatter, {.doc = "self with src at the positions that `gather` would read.",
                     .decompose = [](Tensor self, int64_t dim, Tensor index,
                                     Tensor src) { return _scatter(self, dim, index, src, "set"); },
                     .samples = plain});
  t.define(scatter_value,
           {.doc = "self with a number at the positions that `gather` would read.",
            .decompose =
                [](Tensor self, int64_t dim, Tensor index, Scalar value) {
                  const Tensor filled = full({}, value, self.dtype(), self.device());
                  return _scatter(self, dim, index, expand(filled, index.sizes()), "set");
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({3, 5}, o.low, o.high), 1, m.make_index({2, 3}, 0, 5), 2}, "", ""}};
                },
                {.dtypes = dtypes::all})});
  t.define(scatter_add,
           {.doc = "self with src added at the positions that `gather` would read.",
            .decompose = [](Tensor self, int64_t dim, Tensor index,
                            Tensor src) { return _scatter(self, dim, index, src, "sum"); },
            .samples = samples::custom(scatter_samples, {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(scatter_with,
           {.doc = "self with src added (`add`) or multiplied (`multiply`) at the positions that `gather` "
                   "would read.",
            .decompose =
                [](Tensor self, int64_t dim, Tensor index, Tensor src, std::string_view reduce) {
                  FL_CHECK(reduce == "add" || reduce == "multiply", RuntimeError,
                           "reduce argument must be either add or multiply, got {}", reduce);
                  return _scatter(self, dim, index, src, reduce == "add" ? "sum" : "prod");
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  std::vector<Sample> out = scatter_samples(m, o);
                  for (Sample& s : out) s.args.push_back("multiply");
                  out[0].args.back() = "add";
                  return out;
                },
                {.dtypes = dtypes::integers | dtypes::floats, .low = 1, .high = 3})});
  t.define(
      scatter_reduce,
      {.doc = "src reduced (sum, prod, mean, amax, amin) into the positions that `gather` would read, with "
              "self's elements there or without.",
       .decompose = scatter_reduced,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             std::vector<Sample> out;
             for (const char* mode : {"sum", "prod", "mean", "amax", "amin"}) {
               for (const bool with_self : {true, false}) {
                 out.push_back({{m.make({3, 5}, o.low, o.high), 1, m.make_index({3, 7}, 0, 5),
                                 m.make({3, 7}, o.low, o.high), mode, with_self},
                                mode,
                                ""});
               }
             }
             out.push_back(
                 {{m.make({3}, o.low, o.high), 0, m.make_index({2}, 0, 3), m.make({2}, o.low, o.high), "max"},
                  "mode",
                  "RuntimeError: either sum"});
             return out;
           },
           {.dtypes = dtypes::full_floats, .low = 1, .high = 3})});
}

Tensor taken_along(Tensor self, Tensor indices, std::optional<int64_t> dim) {
  FL_CHECK(indices.dtype() == DType::Int64, RuntimeError,
           "take_along_dim(): dtype of indices should be Long but got {}", name(indices.dtype()));
  if (!dim) return gather(reshape(self, {SymInt(-1)}), 0, reshape(indices, {SymInt(-1)}));
  FL_CHECK(self.dim() == indices.dim(), RuntimeError,
           "take_along_dim(): input and indices should have the same number of dimensions, but got {} and {}",
           self.dim(), indices.dim());
  const int64_t d = wrap_dim(*dim, self.dim());
  if (self.dim() == 0) return gather(self, d, indices);
  Sizes of_self = self.sizes(), of_index = indices.sizes();
  of_self[d] = of_index[d] = 1;
  Sizes self_sizes = broadcast_sizes(of_self, of_index), index_sizes = self_sizes;
  self_sizes[d] = self.sizes()[d];
  index_sizes[d] = indices.sizes()[d];
  return gather(expand(self, self_sizes), d, expand(indices, index_sizes));
}

/// The k-th element under the mask takes source's k-th.
Tensor masked_from(Tensor self, Tensor mask, Tensor source) {
  FL_CHECK(self.dtype() == source.dtype(), RuntimeError,
           "masked_scatter: expected self and source to have same dtypes but got {} and {}",
           name(self.dtype()), name(source.dtype()));
  FL_CHECK(mask.dtype() == DType::Bool, RuntimeError,
           "masked_scatter_ only supports boolean masks, but got mask with dtype {}", name(mask.dtype()));
  const Sizes sizes = broadcast_sizes(self.sizes(), mask.sizes());
  const Tensor wide = expand(mask, sizes), flat = reshape(wide, {SymInt(-1)});
  const Tensor position = reshape(where(flat, sub(cumsum(flat, 0), 1), 0), sizes);
  const Tensor values = _index(reshape(source, {SymInt(-1)}), List{position});
  return where(wide, values, self);
}

void define_lookups(OpTable& t) {
  t.define(take,
           {.doc = "Elements of the flattened tensor at the positions that a tensor gives.",
            .tags = Tag::NoInPlace,
            .decompose =
                [](Tensor self, Tensor index) {
                  FL_CHECK(index.dtype() == DType::Int64, RuntimeError,
                           "take(): Expected a long tensor for index, but got {}", name(index.dtype()));
                  return _index(reshape(self, {SymInt(-1)}), List{index});
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make_transposed({3, 4}, o.low, o.high), m.make_index({2, 3}, -12, 12)}, "", ""},
                      {{m.make({3}, o.low, o.high), m.make({2}, DType::Int32, 0, 1)},
                       "int32",
                       "RuntimeError: long tensor"}};
                },
                {.dtypes = dtypes::all})});
  t.define(take_along_dim,
           {.doc = "gather with sizes that broadcast; of the flattened tensors without a dimension.",
            .tags = Tag::NoInPlace,
            .decompose = taken_along,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{{{x({3, 4}), m.make_index({3, 2}, 0, 4), 1}, "", ""},
                                             {{x({3, 4}), m.make_index({1, 2}, 0, 4), 1}, "broadcast", ""},
                                             {{x({}), m.make_index({}, 0, 1), 0}, "0-dim", ""},
                                             {{x({3, 4}), m.make_index({5}, 0, 12)}, "flattened", ""}};
                },
                {.dtypes = dtypes::all})});
  t.define(masked_select,
           {.doc = "The elements under a mask, as a vector.",
            .tags = Tag::NoInPlace | Tag::DataDependent,
            .decompose =
                [](Tensor self, Tensor mask) {
                  FL_CHECK(mask.dtype() == DType::Bool, RuntimeError,
                           "masked_select: expected BoolTensor for mask, got {}", name(mask.dtype()));
                  const Sizes sizes = broadcast_sizes(self.sizes(), mask.sizes());
                  const Tensor flat = reshape(expand(self, sizes), {SymInt(-1)});
                  const Tensor rows = nonzero(reshape(expand(mask, sizes), {SymInt(-1)}));
                  return _index(flat, List{select(rows, 1, 0)});
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({3, 4}, o.low, o.high), m.make({4}, DType::Bool, 0, 1)}, "", ""},
                      {{m.make({3}, o.low, o.high), m.make({3}, DType::Int32, 0, 1)},
                       "mask",
                       "RuntimeError: BoolTensor"}};
                },
                {.dtypes = dtypes::all})});
  t.define(masked_scatter,
           {.doc = "self with the elements under a mask replaced by source's, in row-major order.",
            .decompose = masked_from,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({3, 4}, o.low, o.high), m.make({3, 4}, DType::Bool, 0, 1),
                        m.make({12}, o.low, o.high)},
                       "",
                       ""},
                      {{m.make({3, 4}, o.low, o.high), m.make({4}, DType::Bool, 0, 1),
                        m.make({3, 4}, o.low, o.high)},
                       "broadcast",
                       ""}};
                },
                {.dtypes = dtypes::all})});
}

Tensor embedded(Tensor weight, Tensor indices, SymInt, bool, bool sparse) {
  FL_CHECK(weight.dim() == 2, RuntimeError, "'weight' must be 2-D, got {} dimensions", weight.dim());
  FL_CHECK(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, RuntimeError,
           "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
           "but got {}",
           name(indices.dtype()));
  FL_CHECK(!sparse, NotImplementedError, "embedding: sparse gradients are not supported");
  // Rows are not counted from the end.
  const Tensor at = to_dtype(indices, DType::Int64);
  return _index(weight, List{where(lt(at, 0), sub(at, weight.size(0)), at)});
}

/// Rows of g added up by their index; those of padding_idx count as 0.
Tensor embedding_gradient(Tensor g, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale) {
  const Tensor at = to_dtype(indices, DType::Int64);
  Tensor rows = g;
  if (scale) {
    const Tensor ones_of = expand(full({}, 1, g.dtype(), g.device()), at.sizes());
    const Tensor count = _index_put(zeros({num_weights}, g.dtype(), g.device()), List{at}, ones_of, true);
    rows = div(rows, unsqueeze(_index(count, List{at}), -1));
  }
  if (!padding_idx.same_as(-1)) rows = where(unsqueeze(eq(at, padding_idx), -1), 0, rows);
  return _index_put(zeros({num_weights, g.size(-1)}, g.dtype(), g.device()), List{at}, rows, true);
}

void define_embedding(OpTable& t) {
  t.define(embedding,
           {.doc = "The rows of weight that indices name. The gradient of row padding_idx is 0; with "
                   "scale_grad_by_freq each row's is divided by how often it was named.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = embedded,
            .saves = saves::in({1}),
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return embedding_dense_backward(g, c.in(1), c.in_spec(0).sizes[0], c.arg(2).sym_int(),
                                                  c.arg(3).to_bool());
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({5, 3}), m.make_index({2, 4}, 0, 5)}, "", ""},
                      {{x({5, 3}), m.make_index({}, 0, 5)}, "0-dim", ""},
                      {{x({5, 3}), m.make_index({0}, 0, 5)}, "size 0", ""},
                      {{x({5, 3}), m.make_index({2}, 5, 9)}, "out of range", "IndexError: out of "},
                      {{x({5, 3}), m.make_index({2}, -2, 0)}, "negative", "IndexError: out of "},
                      {{x({5}), m.make_index({2}, 0, 5)}, "vector", "RuntimeError: 2-D"}};
                },
                {.dtypes = dtypes::floats})});
  t.define(embedding_dense_backward,
           {.doc = "The gradient of `embedding` by its weight.",
            .tags = Tag::NoInPlace,
            .decompose = embedding_gradient,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({2, 4, 3}), m.make_index({2, 4}, 0, 5), 5, -1, false}, "", ""},
                      {{x({6, 3}), m.make_index({6}, 0, 3), 5, 1, false}, "padding", ""},
                      {{x({6, 3}), m.make_index({6}, 0, 3), 5, -1, true}, "by frequency", ""}};
                },
                {.dtypes = dtypes::full_floats})});
}

}  // namespace

void define_indexing(OpTable& t) {
  define_selection(t);
  define_scatters(t);
  define_lookups(t);
  define_embedding(t);
}

}  // namespace fl
