#include "flambeau/aot/compiled_function.h"

#include <algorithm>
#include <optional>

#include "flambeau/aot/backward_node.h"
#include "flambeau/aot/separate_outputs.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/base/error.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/graph/pipeline.h"
#include "flambeau/op/op.h"

namespace fl::aot {

using trace::Outer;

Runner interpreted(const graph::Graph& g) {
  return [graph = std::make_shared<graph::Graph>(g)](const std::vector<Value>& inputs) {
    return graph::interpret(*graph, inputs);
  };
}

std::shared_ptr<CompiledFunction> CompiledFunction::make(trace::Callable function, const Tensors& inputs,
                                                         Compiler compiler, CompileOptions options) {
  auto f = std::make_shared<CompiledFunction>();
  f->function_ = std::move(function);
  f->compiler_ = std::move(compiler);
  f->options_ = std::move(options);
  f->joint_ = aot::joint(f->function_, inputs, f->options_.trace);
  if (f->options_.repeat_graph) f->function_ = nullptr;
  f->prepare();
  return f;
}

void CompiledFunction::prepare() {
  graph::Graph& g = joint_.program.graph;
  graph::run_passes(g, graph::simplification_passes(), "joint");
  graph::simplify_symbols(g);
  // Sizes may have become known since the function ran.
  for (trace::InputInfo& i : joint_.program.inputs) i.spec = graph::simplified(*g.shape_env, i.spec);
  for (trace::OutputInfo& o : joint_.program.outputs) o.spec = graph::simplified(*g.shape_env, o.spec);
  partition_ = aot::partition(joint_, options_.partition);
  plan_ = trace::InputPlan(joint_.program);

  const std::vector<int> order = joint_.forward_outputs();
  position_.assign(g.outputs().size(), -1);
  for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = static_cast<int>(i);
  // What the caller gets has memory of its own, and the function's strides.
  std::vector<int> owned;
  std::vector<const TensorSpec*> wanted(order.size(), nullptr);
  auto changed = [&](int output) {
    return std::any_of(joint_.info.mutations.begin(), joint_.info.mutations.end(),
                       [&](const Mutation& m) { return m.output == output; });
  };
  for (int i : order) {
    if (changed(i)) continue;
    owned.push_back(position(i));
    if (i < static_cast<int>(joint_.program.outputs.size()))
      wanted[position(i)] = &joint_.program.outputs[i].spec;
  }
  separate_outputs(partition_.forward, owned, wanted);
  find_restrided(wanted);
  for (const OutputRecipe& r : joint_.info.outputs)
    for (const ViewStep& s : r.steps)
      for (const Value& a : s.args)
        symbolic_steps_ |=
            a.tag() == Value::Tag::IntList || (a.tag() == Value::Tag::Int && a.sym_int().is_symbolic());
  for (const Mutation& m : joint_.info.mutations) {
    // A change that autograd has to see is copied by an operator.
    const bool tracked = std::any_of(joint_.tangents.begin(), joint_.tangents.end(),
                                     [&](const Tangent& t) { return t.output == m.output; });
    if (!tracked) partition_.forward.takes_place_of.emplace_back(position(m.output), plan_.position(m.input));
  }
  forward_ = compiler_(partition_.forward);
}

// separate_outputs() gives every output the function's strides where they matter; the rest is metadata alone.
void CompiledFunction::find_restrided(const std::vector<const TensorSpec*>& wanted) {
  const graph::Graph& g = partition_.forward;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i] || g.outputs()[i].tag() != Value::Tag::GraphRef) continue;
    const Sizes &now = g.spec(g.outputs()[i].graph_ref()).strides, &want = wanted[i]->strides;
    bool differs = false, constant = true;
    for (size_t d = 0; d < want.size(); ++d) {
      differs = differs || !now[d].same_as(want[d]);
      constant = constant && !want[d].is_symbolic();
    }
    if (differs && constant) restrided_.emplace_back(static_cast<int>(i), want);
  }
}

const Runner& CompiledFunction::backward() {
  std::call_once(backward_once_, [&] { backward_ = compiler_(partition_.backward); });
  return backward_;
}

Tensors CompiledFunction::repeat(const Tensors& args) const {
  if (!options_.repeat_graph) return function_(args);
  const std::vector<Value> values =
      graph::interpret(partition_.forward, plan_.values(joint_.program, args), true);
  Tensors results(static_cast<size_t>(joint_.user_outputs));
  for (int i = 0; i < joint_.user_outputs; ++i)
    if (position(i) >= 0 && values[position(i)].is_tensor()) results[i] = values[position(i)].tensor();
  return results;
}

namespace {

/// The end of a history that the function has freed by its own backward().
class FreedNode : public SimpleNode {
 public:
  FreedNode(const Tensor& t, std::string error) : spec_(t.spec()), error_(std::move(error)) {}
  std::string name() const override { return "CompiledFunctionBackward"; }
  Tensors apply(Tensors&&) override { FL_RAISE(RuntimeError, "{}", error_); }
  const TensorSpec& input_spec(int) const override { return spec_; }
  int input_count() const override { return 1; }

 private:
  TensorSpec spec_;
  std::string error_;
};

}  // namespace

/// One run.
class CompiledFunction::Call {
 public:
  Call(CompiledFunction& f, const Tensors& args)
      : f_(f),
        joint_(f.joint_),
        program_(f.joint_.program),
        args_(args),
        inputs_(f.plan_.values(program_, args)) {}

  Tensors run() {
    forward();
    record();
    copy_changes();
    set_grads();
    Tensors results;
    for (int i = 0; i < joint_.user_outputs; ++i) results.push_back(result(i, results));
    return results;
  }

 private:
  // The forward graph takes the inputs that no tangent is.
  void forward() {
    if (f_.symbolic_steps_) symbols_.emplace(f_.partition_.forward, inputs_);
    StateGuard<bool> below(&DispatchState::below_autograd, true);
    outputs_ = f_.forward_(inputs_);
    for (const auto& [position, strides] : f_.restrided_)
      outputs_[position].tensor().impl()->spec.strides = strides;
  }

  Tensor output(int joint_output) const { return outputs_[f_.position(joint_output)].tensor(); }

  void record() {
    for (int i : joint_.freed) set_history(output(i), make_ref<FreedNode>(output(i), joint_.freed_error), 0);
    if (!joint_.differentiable()) return;
    bool needed = false;
    for (const Gradient& g : joint_.gradients)
      needed = needed || program_.outer(args_, g.target).requires_grad();
    if (!needed) return;
    node_ = make_ref<BackwardNode>(f_.shared_from_this(), args_, inputs_, outputs_);
    for (size_t i = 0; i < joint_.tangents.size(); ++i)
      set_history(output(joint_.tangents[i].output), node_, static_cast<int>(i));
  }

  // The tensor from outside that an input of the graph is.
  Tensor input_tensor(int32_t node) const { return inputs_[f_.plan_.position(node)].tensor(); }

  void copy_changes() {
    static const OpInfo& copy = in_place_form(find_op("copy"));
    for (const Mutation& m : joint_.info.mutations) {
      const Tensor target = input_tensor(m.input), value = output(m.output);
      if (value.is_same(target)) {
        target.storage()->bump_version();
        continue;
      }
      const bool tracked = node_ && std::any_of(joint_.tangents.begin(), joint_.tangents.end(),
                                                [&](const Tangent& t) { return t.output == m.output; });
      StateGuard<bool> mode(&DispatchState::grad_enabled, tracked);
      call(copy, {Value(target), Value(value)});
    }
  }

  void set_grads() {
    for (const trace::GradEffect& e : program_.grad_effects)
      program_.outer(args_, e.target).set_grad(e.output < 0 ? Tensor() : output(e.output));
  }

  Tensor result(int i, const Tensors& earlier) {
    const trace::OutputInfo& o = program_.outputs[i];
    if (!o.defined) return {};
    if (o.is) return program_.outer(args_, o.is);
    if (o.is_output >= 0) return earlier[o.is_output];
    const OutputRecipe& r = joint_.info.outputs[i];
    if (r.kind == OutputRecipe::Kind::Value) return output(i);
    Tensor t = r.kind == OutputRecipe::Kind::Input ? input_tensor(r.input) : output(r.output);
    StateGuard<bool> mode(&DispatchState::grad_enabled, o.requires_grad);
    for (const ViewStep& s : r.steps) t = view(t, s);
    return t;
  }

  Tensor view(const Tensor& base, const ViewStep& s) {
    std::vector<Value> args = s.args;
    if (symbols_)
      for (Value& a : args) a = symbols_->evaluate(a);
    args[0] = Value(base);
    const Value v = call(*s.op, std::move(args))[0];
    return v.tag() == Value::Tag::TensorList ? v.tensors()[s.output] : v.tensor();
  }

  CompiledFunction& f_;
  const JointProgram& joint_;
  const trace::TracedProgram& program_;
  const Tensors& args_;
  std::vector<Value> inputs_, outputs_;
  std::optional<graph::SymbolValues> symbols_;
  Ref<BackwardNode> node_;
};

Tensors CompiledFunction::operator()(const Tensors& args) {
  std::vector<int64_t> offsets;
  for (const Ref<Generator>& g : joint_.program.generators) offsets.push_back(g->offset());
  try {
    return Call(*this, args).run();
  } catch (...) {
    // Who runs the function in its place draws the same numbers.
    for (size_t k = 0; k < offsets.size(); ++k) joint_.program.generators[k]->set_offset(offsets[k]);
    throw;
  }
}

}  // namespace fl::aot
