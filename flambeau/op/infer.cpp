#include "flambeau/op/infer.h"

#include <algorithm>
#include <numeric>

#include "flambeau/op/op_def.h"

namespace fl {
namespace {

const TensorSpec& graph_or_tensor(const Value& v, const TensorSpec& (*graph)(void*, GraphRef), void* context,
                                  const OpInfo& op, int i) {
  if (v.is_tensor()) return v.tensor().spec();
  FL_CHECK(v.tag() == Value::Tag::GraphRef && graph, TypeError,
           "{}(): argument '{}' must be a Tensor, not {}", op.name(), op.schema.args[i].name, v.describe());
  return graph(context, v.graph_ref());
}

bool takes_part(const OpInfo& op, int i, Promote p) {
  const ArgType t = op.schema.args[i].type;
  if (t != ArgType::Tensor && t != ArgType::OptTensor) return false;
  if (p == Promote::Where && i == 0) return false;
  return p != Promote::First || i == 0;
}

}  // namespace

const TensorSpec& InferCtx::spec(int i, int item) const {
  const Value& v = args_[i];
  if (v.tag() == Value::Tag::TensorList) {
    FL_CHECK(v.tensors()[item].defined(), TypeError, "{}(): item {} of '{}' must be a Tensor, not None",
             op_.name(), item, op_.schema.args[i].name);
    return v.tensors()[item].spec();
  }
  if (v.tag() == Value::Tag::GraphRefList) return graph_spec_(context_, v.graph_refs()[item]);
  return graph_or_tensor(v, graph_spec_, context_, op_, i);
}

int InferCtx::list_size(int i) const {
  const Value& v = args_[i];
  if (v.tag() == Value::Tag::GraphRefList) return static_cast<int>(v.graph_refs().size());
  return static_cast<int>(v.tensors().size());
}

bool InferCtx::item_defined(int i, int item) const {
  const Value& v = args_[i];
  if (v.tag() == Value::Tag::GraphRefList) return v.graph_refs()[item].node >= 0;
  return v.tensors()[item].defined();
}

bool InferCtx::is_wrapped_number(int i) const {
  const Value& v = args_[i];
  if (v.tag() == Value::Tag::GraphRef) return spec(i).wrapped_number;
  return v.is_number() || (v.is_tensor() && v.tensor().impl()->wrapped_number);
}

TensorSpec make_spec(IntList sizes, DType dtype, Device device) {
  TensorSpec s;
  s.sizes = Sizes(sizes.begin(), sizes.end());
  s.strides = contiguous_strides(sizes);
  s.dtype = dtype;
  s.device = device;
  return s;
}

DType result_type(std::optional<DType> dimensioned, std::optional<DType> zero_dim,
                  std::optional<DType> number) {
  // A group decides the category; a lower-priority group joins only if its category is higher.
  std::optional<DType> out = dimensioned;
  for (auto group : {zero_dim, number}) {
    if (!group) continue;
    if (!out)
      out = group;
    else if (category(*group) > category(*out))
      out = promote(*out, *group);
  }
  FL_ASSERT(out.has_value(), "promotion of nothing");
  return *out;
}

ElementwiseTypes promote_types(const InferCtx& c, Promote p) {
  std::optional<DType> dimensioned, zero_dim, number;
  auto join = [](std::optional<DType>& group, DType d) { group = group ? promote(*group, d) : d; };
  for (int i = 0; i < c.op().arg_count(); ++i) {
    if (!takes_part(c.op(), i, p) || !c.has(i)) continue;
    if (c.arg(i).is_number()) {
      join(number, c.arg(i).scalar().default_dtype());
    } else if (c.is_wrapped_number(i)) {
      // The tensor is as wide as can be; promotion sees the default dtype of its category.
      const DType d = c.spec(i).dtype;
      join(number, is_complex(d) ? complex_dtype(default_dtype()) : is_floating(d) ? default_dtype() : d);
    } else {
      const TensorSpec& s = c.spec(i);
      join(s.dim() > 0 ? dimensioned : zero_dim, s.dtype);
    }
  }
  DType common = result_type(dimensioned, zero_dim, number);
  DType result = common;
  switch (p) {
    case Promote::IntToFloat:
      if (is_integral(common, true)) common = result = default_dtype();
      break;
    case Promote::AlwaysBool:
      result = DType::Bool;
      break;
    case Promote::BoolToLong:
      if (common == DType::Bool) common = result = DType::Int64;
      break;
    case Promote::ComplexToFloat:
      result = real_dtype(common);
      break;
    default:
      break;
  }
  return {common, result};
}

Sizes broadcast_sizes(IntList a, IntList b) {
  const size_t n = std::max(a.size(), b.size());
  Sizes out(n);
  for (size_t k = 0; k < n; ++k) {
    const int64_t i = static_cast<int64_t>(a.size()) - 1 - static_cast<int64_t>(k);
    const int64_t j = static_cast<int64_t>(b.size()) - 1 - static_cast<int64_t>(k);
    SymInt& o = out[n - 1 - k];
    if (i < 0) {
      o = b[j];
    } else if (j < 0) {
      o = a[i];
    } else if (a[i].same_as(b[j]) || b[j].same_as(1)) {
      o = a[i];
    } else if (a[i] == SymInt(1)) {
      o = b[j];
    } else {
      FL_CHECK(b[j] == SymInt(1) || a[i] == b[j], RuntimeError,
               "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}",
               a[i], b[j], n - 1 - k);
      o = a[i];
    }
  }
  return out;
}

// Dimensions sorted by the inputs' strides, as TensorIterator does: the order that all inputs agree on, the
// first one deciding in doubt; without one the output is contiguous.
Sizes elementwise_strides(IntList sizes, std::span<const TensorSpec* const> inputs) {
  const int n = static_cast<int>(sizes.size());
  auto same_sizes = [&](const TensorSpec& s) {
    return s.sizes.size() == sizes.size() && std::equal(sizes.begin(), sizes.end(), s.sizes.begin(),
                                                        [](SymInt a, SymInt b) { return a.same_as(b); });
  };
  bool all_contiguous = true;
  for (const TensorSpec* s : inputs) all_contiguous = all_contiguous && (s->dim() == 0 || is_contiguous(*s));
  if (all_contiguous) return contiguous_strides(sizes);
  // One full-size dense input and nothing but contiguous-compatible others: keep its strides.
  bool equal_strides = true;
  const TensorSpec* first = nullptr;
  for (const TensorSpec* s : inputs) {
    if (!same_sizes(*s)) {
      equal_strides = false;
    } else if (!first) {
      first = s;
    } else {
      for (int d = 0; d < n; ++d)
        if (!first->strides[d].same_as(s->strides[d]) && !(sizes[d] == SymInt(1))) equal_strides = false;
    }
  }
  if (first && equal_strides && is_non_overlapping_and_dense(*first)) return first->strides;

  auto stride_of = [&](const TensorSpec& s, int d) -> SymInt {
    const int k = d - (n - s.dim());
    if (k < 0 || (s.sizes[k] == SymInt(1) && sizes[d] != SymInt(1))) return 0;
    return s.strides[k];
  };
  // perm[0] is the fastest dimension.
  std::vector<int> perm(n);
  std::iota(perm.rbegin(), perm.rend(), 0);
  auto should_swap = [&](int a, int b) {
    for (const TensorSpec* s : inputs) {
      const SymInt x = stride_of(*s, a), y = stride_of(*s, b);
      if (x.same_as(0) || y.same_as(0)) continue;
      if (x == y) {
        if (sizes[a] > sizes[b]) return 1;
        continue;
      }
      return x < y ? -1 : 1;
    }
    return 0;
  };
  for (int i = 1; i < n; ++i) {
    int at = i;
    for (int k = i - 1; k >= 0; --k) {
      const int c = should_swap(perm[k], perm[at]);
      if (c > 0) {
        std::swap(perm[k], perm[at]);
        at = k;
      } else if (c < 0) {
        break;
      }
    }
  }
  Sizes out(n);
  SymInt stride = 1;
  for (int d : perm) {
    out[d] = stride;
    stride *= max(sizes[d], 1);
  }
  return out;
}

namespace rule {
namespace {

InferResult elementwise_rule(const InferCtx& c, int data) {
  const auto p = static_cast<Promote>(data);
  Sizes sizes;
  SmallVector<const TensorSpec*, 4> tensors;
  Device device{};
  bool device_known = false;
  const auto is_number = [](const TensorSpec& s) { return s.dim() == 0 && s.device.type == DeviceType::CPU; };
  for (int i = 0; i < c.op().arg_count(); ++i) {
    if (!c.is_tensor(i)) {
      const ArgType t = c.op().schema.args[i].type;
      FL_CHECK((t != ArgType::Tensor || c.arg(i).is_number()) && c.arg(i).tag() != Value::Tag::TensorList,
               TypeError, "{}(): argument '{}' must be Tensor or a number, not {}", c.op().name(),
               c.op().schema.args[i].name, c.arg(i).describe());
      continue;
    }
    const TensorSpec& s = c.spec(i);
    // The first that is no 0-dim tensor of the CPU decides; what takes only values from the others moves
    // them.
    if (!is_number(s) && device_known)
      FL_CHECK(s.device == device || p == Promote::First, RuntimeError,
               "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
               device.str(), s.device.str());
    if ((!is_number(s) && !device_known) || (p == Promote::First && i == 0)) {
      device = s.device;
      device_known = true;
    }
    sizes = tensors.empty() ? s.sizes : broadcast_sizes(sizes, s.sizes);
    tensors.push_back(&s);
  }
  TensorSpec out;
  out.strides =
      tensors.empty()
          ? contiguous_strides(sizes)
          : elementwise_strides(sizes, std::span<const TensorSpec* const>(tensors.data(), tensors.size()));
  out.sizes = std::move(sizes);
  out.dtype = promote_types(c, p).result;
  out.device = device;
  return {std::move(out)};
}

InferResult same_rule(const InferCtx& c, int) {
  TensorSpec out = c.spec(0);
  if (!is_non_overlapping_and_dense(out)) {
    const TensorSpec* in[] = {&c.spec(0)};
    out.strides = elementwise_strides(out.sizes, in);
  }
  out.offset = 0;
  return {std::move(out)};
}

}  // namespace

Infer elementwise(Promote p) { return {elementwise_rule, static_cast<int>(p)}; }
Infer same_as_input() { return {same_rule, 0}; }

}  // namespace rule
}  // namespace fl
