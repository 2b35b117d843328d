#include "flambeau/autograd/gradient_ops.h"

#include "flambeau/autograd/foreign_gradient.h"
#include "flambeau/autograd/meta.h"

namespace fl {
namespace {
ForeignGradients foreign_gradients = {};
}  // namespace

void install_foreign_gradients(ForeignGradients functions) { foreign_gradients = functions; }

bool is_foreign_gradient(const Tensor& gradient) {
  return gradient.defined() && gradient.impl()->python && !gradient.has_data() &&
         foreign_gradients.is_foreign && foreign_gradients.is_foreign(gradient);
}

Tensor sum_of_foreign_gradients(const Tensor& a, const Tensor& b) { return foreign_gradients.sum(a, b); }

}  // namespace fl

namespace fl::gradient_ops {
namespace {

inline constexpr Op<
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor">
    sum;
inline constexpr Op<
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)">
    to;

/// g summed to `sizes`, which it was broadcast from.
Tensor sum_to(const Tensor& g, IntList sizes) {
  const int leading = g.dim() - static_cast<int>(sizes.size());
  Sizes lost, kept;
  for (int d = 0; d < leading; ++d) lost.push_back(d);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == SymInt(1) && g.sizes()[leading + d] != SymInt(1)) kept.push_back(static_cast<int64_t>(d));
  Tensor r = lost.empty() ? g : sum(g, IntList(lost), false);
  return kept.empty() ? r : sum(r, IntList(kept), true);
}

bool expands_to(IntList from, IntList to) {
  if (from.size() > to.size()) return false;
  const size_t leading = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != SymInt(1) && from[d] != to[leading + d]) return false;
  return true;
}

}  // namespace

bool is_unshared(const Tensor& t) {
  if (t.impl()->use_count() != 1 || !t.storage()) return false;
  const AutogradMeta* m = meta(t);
  const bool owned_base = m && m->view && m->view->base.impl()->use_count() == 1;
  return t.storage()->use_count() == (owned_base ? 2 : 1);
}

bool same_sizes(IntList a, IntList b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

Tensor filled(const TensorSpec& spec, const Scalar& value) {
  return full(spec.sizes, value, spec.dtype, spec.device);
}

Tensor fit(const Tensor& gradient, const TensorSpec& spec, const Node& maker, int index) {
  Tensor g = gradient;
  if (!same_sizes(g.sizes(), spec.sizes)) {
    FL_CHECK(
        expands_to(spec.sizes, g.sizes()), RuntimeError,
        "Function {} returned an invalid gradient at index {} - got {} but expected shape compatible with "
        "{}",
        maker.name(), index, to_string(g.sizes()), to_string(spec.sizes));
    g = sum_to(g, spec.sizes);
  }
  return g.dtype() == spec.dtype ? g : to(g, spec.dtype);
}

Tensor accumulate(Tensor&& a, const Tensor& b) {
  if (is_foreign_gradient(a) || is_foreign_gradient(b)) return sum_of_foreign_gradients(a, b);
  const DispatchState& state = dispatch_state();
  if (!state.grad_enabled && !state.tracer && is_unshared(a) && a.dtype() == b.dtype() &&
      same_sizes(a.sizes(), b.sizes()) && is_non_overlapping_and_dense(a.spec())) {
    add.in_place(a, b);
    return std::move(a);
  }
  return add(a, b);
}

bool has_gradient_layout(const Tensor& gradient, const Tensor& variable) {
  if (!is_non_overlapping_and_dense(variable.spec())) return gradient.is_contiguous();
  for (int d = 0; d < variable.dim(); ++d)
    if (gradient.sizes()[d] != SymInt(1) && gradient.strides()[d] != variable.strides()[d]) return false;
  return true;
}

Tensor clone_for(const Tensor& gradient, const Tensor& variable) {
  if (has_gradient_layout(gradient, variable)) return clone(gradient);
  if (!is_non_overlapping_and_dense(variable.spec())) return clone(gradient, MemoryFormat::Contiguous);
  Tensor result = empty_strided(variable.sizes(), variable.strides(), gradient.dtype(), gradient.device());
  copy.in_place(result, gradient);
  return result;
}

}  // namespace fl::gradient_ops
