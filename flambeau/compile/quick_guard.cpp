#include "flambeau/compile/quick_guard.h"

#include <algorithm>

#include "flambeau/op/dispatch.h"

namespace fl {
namespace {
constexpr size_t kMaxSymbols = 16;

const Storage* storage_of(const Tensor& t) { return t.storage().get(); }

bool all_differ(const Tensors& args) {
  constexpr size_t kCompared = 16;
  if (args.size() > kCompared) {
    QuickGuard::Storages sorted;
    for (const Tensor& t : args) sorted.push_back(storage_of(t));
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  }
  for (size_t i = 1; i < args.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (storage_of(args[i]) == storage_of(args[j])) return false;
  return true;
}

}  // namespace

QuickGuard::QuickGuard(const trace::TracedProgram& p) {
  std::vector<sym::Expr> symbols;
  plain_ = p.guards().empty();
  for (const trace::InputInfo& in : p.inputs) {
    if (!plain_) return;
    plain_ = in.node >= 0 && in.same_as < 0 && in.shares_with < 0;
    Input out{in.spec.dtype, in.spec.device, in.requires_grad, in.is_leaf, true, {}, {}};
    for (SymInt s : in.spec.sizes) {
      if (!s.is_symbolic()) {
        out.sizes.push_back(s.expect_int());
      } else if (s.expr().is_symbol()) {
        auto it = std::find(symbols.begin(), symbols.end(), s.expr());
        out.sizes.push_back(-1 - (it - symbols.begin()));
        if (it == symbols.end()) symbols.push_back(s.expr());
        plain_ = plain_ && s.expr().lower() != 1;
        if (s.expr().lower() == 0) out.lower = 0;
      } else {
        plain_ = false;
      }
    }
    const Sizes dense = contiguous_strides(in.spec.sizes);
    for (int d = 0; d < in.spec.dim(); ++d)
      out.contiguous = out.contiguous && dense[d].same_as(in.spec.strides[d]);
    if (!out.contiguous)
      for (SymInt s : in.spec.strides) {
        plain_ = plain_ && !s.is_symbolic();
        if (plain_) out.strides.push_back(s.expect_int());
      }
    inputs_.push_back(std::move(out));
  }
  plain_ = plain_ && symbols.size() <= kMaxSymbols;
}

bool QuickGuard::fits(const Input& want, const Tensor& t, int64_t* symbols) {
  if (!t.defined() || t.dtype() != want.dtype || t.device() != want.device ||
      t.sizes().size() != want.sizes.size())
    return false;
  if (t.requires_grad() != want.requires_grad || (want.requires_grad && t.is_leaf() != want.is_leaf))
    return false;
  for (size_t d = 0; d < want.sizes.size(); ++d) {
    const SymInt s = t.sizes()[d];
    if (s.is_symbolic()) return false;
    const int64_t size = s.expect_int(), expected = want.sizes[d];
    if (expected >= 0) {
      if (size != expected) return false;
      continue;
    }
    int64_t& value = symbols[-1 - expected];
    if (size < want.lower || (value != 0 && value != size)) return false;
    value = size;
  }
  if (want.contiguous) return t.is_contiguous();
  for (size_t d = 0; d < want.strides.size(); ++d)
    if (!t.strides()[d].same_as(want.strides[d])) return false;
  return true;
}

bool QuickGuard::fits(const trace::TracedProgram& p, const Tensors& args) const {
  if (!plain_ || args.size() != inputs_.size() || dispatch_state().grad_enabled != p.grad_enabled ||
      autocast_state().mode() != p.autocast)
    return false;
  int64_t symbols[kMaxSymbols] = {};
  for (size_t i = 0; i < args.size(); ++i)
    if (!fits(inputs_[i], args[i], symbols)) return false;
  return trace::gradient_difference(p, args).empty();
}

bool QuickGuard::accepts(const trace::TracedProgram& p, const Tensors& args) const {
  return fits(p, args) && all_differ(args);
}

bool QuickGuard::accepts(const trace::TracedProgram& p, const Tensors& args, Storages& last) const {
  constexpr size_t kFew = 4;
  if (!fits(p, args)) return false;
  size_t changed[kFew], count = last.size() == args.size() ? 0 : kFew + 1;
  for (size_t i = 0; count <= kFew && i < args.size(); ++i) {
    if (storage_of(args[i]) == last[i]) continue;
    if (count < kFew) changed[count] = i;
    ++count;
  }
  if (count > kFew) {
    if (!all_differ(args)) return false;
    last.clear();
    for (const Tensor& t : args) last.push_back(storage_of(t));
    return true;
  }
  for (size_t k = 0; k < count; ++k)
    for (size_t i = 0; i < args.size(); ++i)
      if (i != changed[k] && storage_of(args[i]) == storage_of(args[changed[k]])) return false;
  for (size_t k = 0; k < count; ++k) last[changed[k]] = storage_of(args[changed[k]]);
  return true;
}

}  // namespace fl
