#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/op/dispatch.h"
#include "flambeau/sym/unbacked.h"
#include "flambeau/trace/trace.h"

namespace fl::trace {
namespace {

std::string name_of(const TracedProgram& p, size_t input) {
  const int32_t node = p.inputs[input].node;
  return node >= 0 ? p.graph.node(node).name : fmt::format("arg{}", input);
}

std::string metadata_difference(const TracedProgram& p, const Tensors& args, size_t i) {
  const InputInfo& want = p.inputs[i];
  const Tensor& t = args[i];
  if (!t.defined()) return "it is undefined";
  if (t.dtype() != want.spec.dtype)
    return fmt::format("its dtype is {}, captured for {}", name(t.dtype()), name(want.spec.dtype));
  if (t.device() != want.spec.device)
    return fmt::format("it is on {}, captured for {}", t.device().str(), want.spec.device.str());
  if (t.dim() != want.spec.dim())
    return fmt::format("it has {} dimensions, captured for {}", t.dim(), want.spec.dim());
  if (t.requires_grad() != want.requires_grad)
    return fmt::format("its requires_grad is {}, captured for {}", t.requires_grad(), want.requires_grad);
  if (want.requires_grad && t.is_leaf() != want.is_leaf)
    return fmt::format("it is {}a leaf, captured for the opposite", t.is_leaf() ? "" : "not ");
  return {};
}

// Which inputs are the same tensor or share memory.
std::string sharing_difference(const TracedProgram& p, const Tensors& args, size_t i) {
  int same_as = -1, shares_with = -1;
  for (size_t j = 0; j < i; ++j) {
    if (args[j].is_same(args[i])) {
      if (same_as < 0) same_as = static_cast<int>(j);
    } else if (shares_with < 0 && args[j].storage() == args[i].storage()) {
      shares_with = static_cast<int>(j);
    }
  }
  const InputInfo& want = p.inputs[i];
  if (same_as != want.same_as)
    return same_as >= 0 ? "it is an earlier input" : "it is no longer an earlier input";
  if (same_as < 0 && shares_with != want.shares_with) return "it shares memory with other inputs than before";
  if (shares_with >= 0 && !args[i].offset().same_as(want.spec.offset))
    return "its place in shared memory differs";
  return {};
}

/// Of the values that an input's size may have.
int64_t lower_bound(SymInt size) {
  if (!size.is_symbolic()) return 0;
  return size.expr().is_symbol() ? size.expr().lower() : 2;
}

std::string size_difference(const TracedProgram& p, const Tensors& args, const graph::SymbolValues& symbols) {
  for (size_t i = 0; i < args.size(); ++i) {
    const TensorSpec want = symbols.evaluate(p.inputs[i].spec);
    for (int d = 0; d < args[i].dim(); ++d) {
      const SymInt size = args[i].sizes()[d];
      if (!size.same_as(want.sizes[d]))
        return fmt::format("size {} of dimension {} of {}, captured for {}", size, d, name_of(p, i),
                           p.inputs[i].spec.sizes[d]);
      if (size.expect_int() < lower_bound(p.inputs[i].spec.sizes[d]))
        return fmt::format("size {} of dimension {} of {}: 0 and 1 are captured for themselves", size, d,
                           name_of(p, i));
      if (size.expect_int() > 1 && !args[i].strides()[d].same_as(want.strides[d]))
        return fmt::format("stride {} of dimension {} of {}, captured for {}", args[i].strides()[d], d,
                           name_of(p, i), p.inputs[i].spec.strides[d]);
    }
  }
  return {};
}

bool holds(const sym::ShapeEnv& env, const sym::Guard& g, const graph::SymbolValues& symbols) {
  // A symbol that was found equal to another is that one in the inputs' sizes, too.
  const int64_t a = symbols.evaluate(env.rename_symbols(g.lhs)),
                b = symbols.evaluate(env.rename_symbols(g.rhs));
  switch (g.relation) {
    case sym::Relation::Eq:
      return (a == b) == g.expected;
    case sym::Relation::Ne:
      return (a != b) == g.expected;
    case sym::Relation::Lt:
      return (a < b) == g.expected;
    default:
      return (a <= b) == g.expected;
  }
}

/// Whether tensors lie in storages of their own, and these args in none of them.
bool lie_apart(const Tensors& tensors, const Tensors& args) {
  std::vector<const Storage*> mine;
  for (const Tensor& t : tensors) mine.push_back(t.storage().get());
  std::ranges::sort(mine);
  return std::ranges::adjacent_find(mine) == mine.end() && std::ranges::none_of(args, [&](const Tensor& a) {
           return std::ranges::binary_search(mine, static_cast<const Storage*>(a.storage().get()));
         });
}

/// Whether a gradient that the graph reads lies where others lie now, and did not then, or the other way.
bool shares_otherwise(const TracedProgram& p, const Tensors& args, const std::vector<size_t>& captured,
                      const Tensors& grads) {
  Tensors then;
  bool shared = false;
  for (size_t k : captured) {
    then.push_back(p.captured[k].tensor);
    shared = shared || p.captured[k].shares_input >= 0;
  }
  if (!shared && lie_apart(then, {}) && lie_apart(grads, args)) return false;
  for (size_t k = 0; k < grads.size(); ++k) {
    const CapturedInfo& c = p.captured[captured[k]];
    for (size_t i = 0; i < args.size(); ++i) {
      const InputInfo& in = p.inputs[i];
      const bool was =
          c.shares_input >= 0 && (static_cast<int>(i) == c.shares_input || in.shares_with == c.shares_input ||
                                  in.same_as == c.shares_input);
      if ((args[i].storage() == grads[k].storage()) != was) return true;
    }
    for (size_t j = 0; j < k; ++j)
      if ((grads[j].storage() == grads[k].storage()) !=
          (p.captured[captured[j]].tensor.storage() == c.tensor.storage()))
        return true;
  }
  return false;
}

bool same_layout(const TensorSpec& a, const TensorSpec& b) {
  const auto same = [](SymInt x, SymInt y) { return x.same_as(y); };
  return a.offset.same_as(b.offset) && std::ranges::equal(a.sizes, b.sizes, same) &&
         std::ranges::equal(a.strides, b.strides, same);
}

}  // namespace

std::string gradient_difference(const TracedProgram& p, const Tensors& args) {
  for (const GradAssumption& a : p.grad_assumptions) {
    const Tensor grad = p.outer(args, a.target).grad();
    if (grad.defined() != a.defined) return fmt::format("a tensor has {}.grad", a.defined ? "no " : "a ");
    if (a.input >= 0 && !grad.is_same(args[a.input])) return "the .grad of a tensor is no input any more";
  }
  std::vector<size_t> captured;
  Tensors grads;
  for (size_t i = 0; i < p.captured.size(); ++i) {
    const CapturedInfo& c = p.captured[i];
    if (!c.grad_of || c.node < 0) continue;
    const Tensor grad = p.outer(args, c.grad_of).grad();
    if (!grad.defined()) return "a tensor has no .grad";
    if (grad.dtype() != c.tensor.dtype() || grad.device() != c.tensor.device() ||
        grad.requires_grad() != c.tensor.requires_grad() || !same_layout(grad.spec(), c.tensor.spec()))
      return "the .grad of a tensor has another dtype, device or layout";
    captured.push_back(i);
    grads.push_back(grad);
  }
  if (shares_otherwise(p, args, captured, grads))
    return "the .grad of a tensor shares memory with other tensors";
  return {};
}

std::string why_not(const TracedProgram& p, const Tensors& args) {
  if (args.size() != p.inputs.size())
    return fmt::format("{} arguments, captured for {}", args.size(), p.inputs.size());
  if (dispatch_state().grad_enabled != p.grad_enabled)
    return fmt::format("gradients are {}, captured for the opposite",
                       p.grad_enabled ? "disabled" : "enabled");
  if (autocast_state().mode() != p.autocast) return "autocast is in another mode";
  for (size_t i = 0; i < args.size(); ++i) {
    std::string text = metadata_difference(p, args, i);
    if (text.empty()) text = sharing_difference(p, args, i);
    if (!text.empty()) return fmt::format("{}: {}", name_of(p, i), text);
  }
  if (std::string text = gradient_difference(p, args); !text.empty()) return text;
  try {
    const graph::SymbolValues symbols(p.graph, InputPlan(p).tensors(p, args));
    if (std::string text = size_difference(p, args, symbols); !text.empty()) return text;
    for (const sym::Guard& g : p.guards())
      if (!sym::follows_from_elements(g) && !holds(*p.graph.shape_env, g, symbols))
        return fmt::format("the sizes do not satisfy {}", g.str());
  } catch (const RuntimeError& e) {
    return e.message();
  }
  return {};
}

}  // namespace fl::trace
