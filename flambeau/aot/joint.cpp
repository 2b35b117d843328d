#include "flambeau/aot/joint.h"

#include <algorithm>
#include <utility>

#include "flambeau/aot/shared_inputs.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/meta.h"
#include "flambeau/base/error.h"
#include "flambeau/trace/session.h"

namespace fl::aot {

using trace::Outer;

namespace {

constexpr const char* kOwnHistory =
    "output {} shares memory with an argument or another result but not its history (a detached tensor that "
    "was changed in place, say); return a clone of it";

/// Hands its gradient on: makes a copy of a leaf that is no leaf, so that it may be changed in place.
class IdentityNode : public SimpleNode {
 public:
  IdentityNode(const Tensor& leaf) : spec_(leaf.spec()) { set_edges({gradient_edge(leaf)}); }
  std::string name() const override { return "IdentityBackward"; }
  Tensors apply(Tensors&& grads) override { return std::move(grads); }
  const TensorSpec& input_spec(int) const override { return spec_; }
  int input_count() const override { return 1; }

 private:
  TensorSpec spec_;
};

/// A result of the forward part that gradients come in through.
struct Head {
  Tensor tensor;
  int output = -1;  ///< of the function's outputs and bases
  int input = -1;   ///< or: the changed input
  int32_t tangent = -1;
};

class JointTrace {
 public:
  JointTrace(const trace::Callable& f, const Tensors& inputs, const trace::TraceOptions& options)
      : function_(f), real_(inputs), session_(inputs, options) {}

  JointProgram run() {
    for (size_t i = 0; i < real_.size(); ++i) given_.push_back(interior(i));
    session_.run([&] { outputs_ = function_(given_); });
    result_.user_outputs = static_cast<int>(outputs_.size());
    // The histories of views whose base has been changed since are made here: still part of the trace.
    session_.run([&] {
      // What needs a gradient has been found with gradients enabled somewhere, be it not at the start.
      find_output_heads();
      if (dispatch_state().grad_enabled) find_input_heads();
    });
    if (!heads_.empty() && session_.changed_grads()) leave_out_freed();
    if (!heads_.empty()) differentiate();
    for (Tensor& t : outputs_) t = outside(t);
    result_.program = session_.finish(outputs_);
    separate_shared_inputs(result_.program);
    result_.info = functionalise(result_.program.graph, static_cast<size_t>(first_gradient()));
    for (const Head& h : heads_) result_.tangents.push_back({h.tangent, output_of(h)});
    check_heads();
    return std::move(result_);
  }

 private:
  int first_gradient() const { return result_.user_outputs + bases_; }

  // A tensor that has a history outside gets one here.
  Tensor interior(size_t i) {
    const Tensor leaf = session_.inputs()[i];
    for (size_t j = 0; j < i; ++j)
      if (session_.inputs()[j].is_same(leaf)) return given_[j];
    if (!leaf.requires_grad() || real_[i].is_leaf()) return leaf;
    Tensor t = shallow_copy(leaf);
    set_history(t, make_ref<IdentityNode>(leaf), 0);
    return t;
  }
  // The session knows inputs by the tensors that it made.
  Tensor outside(const Tensor& t) const {
    for (size_t i = 0; i < given_.size(); ++i)
      if (t.defined() && t.is_same(given_[i])) return session_.inputs()[i];
    return t;
  }

  bool from_outside(const Tensor& t) const {
    for (const Tensor& g : given_)
      if (t.storage() == g.storage()) return true;
    return t.has_data() || session_.is_outer(t);
  }

  // Whether the caller gets t's history with the tensor from outside whose memory it has.
  bool has_history_outside(const Tensor& t) const {
    const Tensor root = is_view(t) ? view_base(t) : t;
    if (root.has_data()) return true;
    const auto is_root = [&](const Tensor& other) { return other.is_same(root); };
    return std::ranges::any_of(given_, is_root) || std::ranges::any_of(session_.inputs(), is_root) ||
           std::ranges::any_of(session_.captured(), is_root, &trace::CapturedInfo::tensor);
  }

  // Outputs that share memory take their gradients through what they are views of.
  void find_output_heads() {
    const size_t count = outputs_.size();
    for (size_t i = 0; i < count; ++i) {
      const Tensor t = outputs_[i];
      if (!t.defined() || !t.requires_grad()) continue;
      if (from_outside(t)) {
        FL_CHECK(has_history_outside(t), UnsupportedError, kOwnHistory, i);
        continue;
      }
      bool shared = false;
      for (size_t j = 0; j < count; ++j)
        shared = shared || (j != i && outputs_[j].defined() && outputs_[j].storage() == t.storage() &&
                            !outputs_[j].is_same(t));
      const Tensor head = shared && is_view(t) ? view_base(t) : t;
      int at = -1;
      for (size_t j = 0; j < outputs_.size() && at < 0; ++j)
        if (outputs_[j].defined() && outputs_[j].is_same(head)) at = static_cast<int>(j);
      if (at < 0) {
        at = static_cast<int>(outputs_.size());
        outputs_.push_back(head);
        ++bases_;
      }
      add_head({head, at, -1, -1});
    }
  }

  // Two arguments on one memory, one of which is changed, are two in the graph and one history outside.
  void check_shared_inputs() const {
    for (size_t i = 0; i < real_.size(); ++i) {
      if (!session_.was_written(given_[i])) continue;
      for (size_t j = 0; j < real_.size(); ++j) {
        if (real_[i].is_same(real_[j]) || !(real_[i].storage() == real_[j].storage())) continue;
        const bool tracked = (real_[i].requires_grad() && !real_[i].is_leaf()) ||
                             (real_[j].requires_grad() && !real_[j].is_leaf());
        FL_CHECK(
            !tracked, UnsupportedError,
            "the function changes in place memory that its arguments {} and {} share, and that takes part in "
            "differentiation",
            i, j);
      }
    }
  }

  void find_input_heads() {
    check_shared_inputs();
    for (size_t i = 0; i < given_.size(); ++i) {
      const Tensor& t = given_[i];
      if (!session_.was_written(t) || !t.requires_grad() || t.is_leaf()) continue;
      bool repeated = false;
      for (size_t j = 0; j < i; ++j) repeated = repeated || given_[j].is_same(t);
      if (!repeated) add_head({t, -1, static_cast<int>(i), -1});
    }
    for (const trace::CapturedInfo& c : session_.captured())
      FL_CHECK(
          !session_.was_written(c.tensor) || !c.tensor.requires_grad() || c.tensor.is_leaf(),
          UnsupportedError,
          "the function changes in place a tensor (shape {}) that it did not get as an argument and that "
          "takes part in differentiation; pass it as an argument",
          to_string(c.tensor.sizes()));
  }

  void add_head(Head h) {
    for (const Head& other : heads_)
      if (other.tensor.is_same(h.tensor)) return;
    heads_.push_back(std::move(h));
  }

  Tensors leaves() const {
    Tensors out;
    for (const Tensor& leaf : session_.inputs())
      if (leaf.requires_grad() &&
          std::none_of(out.begin(), out.end(), [&](const Tensor& t) { return t.is_same(leaf); }))
        out.push_back(leaf);
    for (const trace::CapturedInfo& c : session_.captured())
      if (c.tensor.requires_grad() && c.tensor.is_leaf()) out.push_back(c.tensor);
    return out;
  }

  // A loss whose backward() the function has called: nothing flows through it any more.
  void leave_out_freed() {
    const Tensors targets = leaves();
    std::vector<Head> alive;
    for (Head& h : heads_) {
      try {
        session_.run([&] { grad({h.tensor}, targets, {h.tensor}, {.retain_graph = true}, true); });
        alive.push_back(std::move(h));
      } catch (const UnsupportedError&) {
        throw;
      } catch (const RuntimeError& e) {
        if (h.output < 0 || h.output >= result_.user_outputs) throw;
        result_.freed.push_back(h.output);
        result_.freed_error = e.message();
      }
    }
    heads_ = std::move(alive);
  }

  void differentiate() {
    Tensors heads, tangents, targets;
    for (Head& h : heads_) {
      TensorSpec spec = h.tensor.spec();
      spec.strides = contiguous_strides(spec.sizes);
      spec.offset = 0;
      graph::Node& n = session_.graph().add_input(graph::InputKind::Tangent, spec,
                                                  fmt::format("tangent{}", tangents.size()));
      h.tangent = n.id;
      heads.push_back(h.tensor);
      tangents.push_back(session_.tracer().tensor_for(n.ref()));
    }
    for (size_t i = 0; i < real_.size(); ++i) {
      const Tensor& leaf = session_.inputs()[i];
      const bool repeated =
          std::any_of(targets.begin(), targets.end(), [&](const Tensor& t) { return t.is_same(leaf); });
      if (leaf.requires_grad() && !repeated)
        add_target(leaf, {Outer::Kind::Input, static_cast<int>(i)}, targets);
    }
    const auto& captured = session_.captured();
    for (size_t i = 0; i < captured.size(); ++i)
      if (captured[i].tensor.requires_grad())
        add_target(captured[i].tensor, {Outer::Kind::Captured, static_cast<int>(i)}, targets);
    // An argument that the function reached by itself as well.
    for (size_t i = 0; i < real_.size(); ++i)
      if (real_[i].requires_grad()) add_target(real_[i], {Outer::Kind::Input, static_cast<int>(i)}, targets);
    if (targets.empty()) return;
    Tensors grads;
    try {
      session_.run([&] { grads = grad(heads, targets, tangents, {}, true); });
    } catch (const UnsupportedError&) {
      throw;
    } catch (const RuntimeError& e) {
      // Whether eager mode comes to this depends on which gradients the caller asks for.
      FL_RAISE(UnsupportedError, "not all gradients of the function exist: {}", e.message());
    }
    const std::vector<Gradient> all = std::exchange(result_.gradients, {});
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) continue;
      result_.gradients.push_back({all[i].target, static_cast<int>(outputs_.size())});
      outputs_.push_back(grads[i]);
    }
  }
  void add_target(const Tensor& t, Outer o, Tensors& targets) {
    targets.push_back(t);
    result_.gradients.push_back({o, -1});
  }

  int output_of(const Head& h) const {
    if (h.input < 0) return h.output;
    const int32_t node = result_.program.inputs[h.input].node;
    for (const Mutation& m : result_.info.mutations)
      if (m.input == node) return m.output;
    FL_RAISE(InternalError, "input {} changed but the functional graph does not change it", h.input);
  }

  // A gradient has to come in through a tensor that the graph makes.
  void check_heads() const {
    for (const Tangent& t : result_.tangents)
      FL_CHECK(result_.program.graph.outputs()[t.output].tag() == Value::Tag::GraphRef, UnsupportedError,
               "output {} shares memory with another result but not its history (a detached tensor that was "
               "changed in place, say); return a clone of it",
               t.output);
  }

  const trace::Callable& function_;
  const Tensors& real_;
  trace::Session session_;
  Tensors given_;    // what the function gets
  Tensors outputs_;  // the function's, then bases, then gradients
  std::vector<Head> heads_;
  int bases_ = 0;
  JointProgram result_;
};

}  // namespace

std::vector<int> JointProgram::forward_outputs() const {
  std::vector<int> list;
  for (int i = 0; i < static_cast<int>(program.graph.outputs().size()); ++i)
    if (std::none_of(gradients.begin(), gradients.end(), [&](const Gradient& g) { return g.output == i; }))
      list.push_back(i);
  return list;
}

JointProgram joint(const trace::Callable& function, const Tensors& inputs,
                   const trace::TraceOptions& options) {
  return JointTrace(function, inputs, options).run();
}

}  // namespace fl::aot
