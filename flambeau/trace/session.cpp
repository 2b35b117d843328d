#include "flambeau/trace/session.h"

#include "flambeau/tensor/element_reads.h"

#include <algorithm>

#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/meta.h"
#include "flambeau/base/error.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/trace/symbolic_spec.h"

namespace fl::trace {

using graph::InputKind;

namespace {

/// What autograd knew of a real tensor before the run.
struct Before {
  Tensor tensor;
  bool had_meta, requires_grad = false;
  Ref<Node> grad_fn;
  int output_nr = 0;
  int64_t version;

  explicit Before(const Tensor& t)
      : tensor(t), had_meta(meta(t) != nullptr), version(t.storage()->version()) {
    if (!had_meta) return;
    requires_grad = meta(t)->requires_grad;
    grad_fn = meta(t)->grad_fn;
    output_nr = meta(t)->output_nr;
  }
  void restore() const {
    tensor.storage()->restore_version(version);
    AutogradMeta* m = meta(tensor);
    if (!had_meta) {
      tensor.impl()->autograd = nullptr;
    } else if (m->grad_fn != grad_fn || m->requires_grad != requires_grad) {
      m->grad_fn = grad_fn;
      m->requires_grad = requires_grad;
      m->output_nr = output_nr;
    }
  }
};

struct GradChange {
  Outer target;
  Tensor tensor;  ///< whose .grad it is: real, or the stand-in of an input
  Tensor before;
  bool adds;
};

/// A real storage and the storage without data that stands for it.
struct StandingStorage {
  Ref<Storage> real, fake;
  SymInt origin;  ///< offsets in the trace count from here
  Outer first;
  bool written = false;
};

std::vector<bool> marked_dims(const Tensor& t, int input, const TraceOptions& options) {
  std::vector<bool> marked(static_cast<size_t>(t.dim()), options.dynamic);
  if (auto it = options.dynamic_dims.find(input); it != options.dynamic_dims.end())
    for (int d : it->second) marked[wrap_dim(d, t.dim())] = true;
  return marked;
}

}  // namespace

class Session::Recorder : public graph::GraphTracer, public RandomHook {
 public:
  explicit Recorder(std::unique_ptr<TracedProgram> p) : GraphTracer(p->graph), program_(std::move(p)) {
    program_->graph.shape_env = std::make_shared<sym::ShapeEnv>();
    program_->grad_enabled = dispatch_state().grad_enabled;
    program_->autocast = autocast_state().mode();
  }
  ~Recorder() override { undo(); }

  void add_inputs(const Tensors& inputs, const TraceOptions& options);
  TracedProgram finish(const Tensors& outputs);

  void before_grad_change(const Tensor& t, bool adds) override;
  PhiloxSlot reserve(Generator& generator, SymInt count) override;

  Tensors fakes;
  bool changed_grads() const { return !grad_changes_.empty(); }
  const std::vector<CapturedInfo>& captured() const { return program_->captured; }
  const StandingStorage* standing_for(const Storage* real_or_fake) const {
    for (const StandingStorage& s : storages_)
      if (s.fake.get() == real_or_fake || s.real.get() == real_or_fake) return &s;
    return nullptr;
  }

 protected:
  Tensor capture(const Tensor& real) override;
  void written(const Tensor& given, const Tensor& standing) override;

 private:
  Tensor add_input(const Tensor& real, int index, const Tensors& all, const TraceOptions& options);
  void add_input_grad(const Tensor& real, int index);
  StandingStorage& standing(const Tensor& real, Outer owner, SymInt origin);
  Tensor make_stand_in(const StandingStorage& s, TensorSpec spec, graph::Node& n);
  Outer outer_of(const Tensor& t) const;
  Outer outer_of(const Storage* fake) const;
  OutputInfo output_info(const Tensor& t, const Tensors& outputs, size_t index);
  void collect_grads(std::vector<Value>& values);
  void assume_grad(Outer target, const Tensor& grad);
  void find_grad_owners();
  void drop_unused();
  void undo();
  void remember(const Tensor& real);

  std::unique_ptr<TracedProgram> program_;
  Tensors real_inputs_;
  std::vector<StandingStorage> storages_;
  std::vector<Before> before_;
  std::vector<GradChange> grad_changes_;
};

void Session::Recorder::add_inputs(const Tensors& inputs, const TraceOptions& options) {
  real_inputs_ = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    FL_CHECK(inputs[i].defined(), TypeError, "trace: input {} is undefined; inputs have to be tensors", i);
    fakes.push_back(add_input(inputs[i], static_cast<int>(i), inputs, options));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (program_->inputs[i].same_as < 0 && inputs[i].grad().defined())
      add_input_grad(inputs[i], static_cast<int>(i));
}

Tensor Session::Recorder::add_input(const Tensor& real, int index, const Tensors& all,
                                    const TraceOptions& options) {
  InputInfo info;
  bool shared = false;
  for (int j = 0; j < static_cast<int>(all.size()); ++j) {
    if (all[j].is_same(real)) {
      if (j >= index || info.same_as >= 0) continue;
      info = program_->inputs[j];
      info.same_as = j;
      continue;
    }
    if (!(all[j].storage() == real.storage())) continue;
    shared = true;
    if (j < index && info.shares_with < 0) info.shares_with = j;
  }
  if (info.same_as >= 0) {
    program_->inputs.push_back(info);
    return fakes[info.same_as];
  }
  // Memory that inputs share has constant sizes: how they overlap depends on them.
  const int64_t lower = options.numbers.count(index) ? 0 : options.one_varies && real.is_contiguous() ? 1 : 2;
  TensorSpec spec =
      shared ? real.spec()
             : symbolic_spec(*graph().shape_env, real.spec(), marked_dims(real, index, options), lower);
  const std::string name =
      index < static_cast<int>(options.names.size()) ? options.names[index] : fmt::format("arg{}", index);
  StandingStorage& s = standing(real, {Outer::Kind::Input, index}, shared ? SymInt(0) : real.offset());
  spec.offset = real.offset() - s.origin;
  graph::Node& n = graph().add_input(InputKind::Input, spec, name);
  info.node = n.id;
  info.spec = spec;
  info.requires_grad = real.requires_grad();
  info.is_leaf = real.is_leaf();
  program_->inputs.push_back(info);
  Tensor fake = make_stand_in(s, std::move(spec), n);
  if (info.requires_grad) fake.set_requires_grad(true);
  adopt(real, fake);
  remember(real);
  return fake;
}

// The input's .grad is there in the run as well.
void Session::Recorder::add_input_grad(const Tensor& real, int index) {
  const Tensor grad = real.grad();
  if (!knows(stand_in(grad))) return;
  make_meta(fakes[index]).grad = grad;
}

// A change of a view gives its base another history as well.
void Session::Recorder::remember(const Tensor& real) {
  before_.emplace_back(real);
  if (is_view(real)) before_.emplace_back(view_base(real));
}

StandingStorage& Session::Recorder::standing(const Tensor& real, Outer owner, SymInt origin) {
  for (StandingStorage& s : storages_)
    if (s.real == real.storage()) return s;
  storages_.push_back({real.storage(), Storage::without_data(real.device()), origin, owner, false});
  return storages_.back();
}

Tensor Session::Recorder::make_stand_in(const StandingStorage& s, TensorSpec spec, graph::Node& n) {
  Tensor fake(spec, s.fake);
  bind(fake, n.ref());
  return fake;
}

Tensor Session::Recorder::capture(const Tensor& real) {
  const int index = static_cast<int>(program_->captured.size());
  CapturedInfo info;
  info.tensor = real;
  StandingStorage& s = standing(real, {Outer::Kind::Captured, index}, 0);
  if (s.first.kind == Outer::Kind::Input) info.shares_input = s.first.index;
  TensorSpec spec = real.spec();
  spec.offset = real.offset() - s.origin;
  graph::Node& n = graph().add_input(InputKind::Captured, spec, fmt::format("captured{}", index));
  info.node = n.id;
  program_->captured.push_back(info);
  remember(real);
  return make_stand_in(s, std::move(spec), n);
}

// A change of memory that a real tensor has is seen by autograd's version checks on it.
void Session::Recorder::written(const Tensor&, const Tensor& standing) {
  for (StandingStorage& s : storages_) {
    if (!(s.fake == standing.storage())) continue;
    s.real->bump_version();
    s.written = true;
  }
}

Outer Session::Recorder::outer_of(const Tensor& t) const {
  for (size_t i = 0; i < real_inputs_.size(); ++i)
    if (t.is_same(real_inputs_[i]) || (i < fakes.size() && t.is_same(fakes[i])))
      return {Outer::Kind::Input, static_cast<int>(i)};
  for (size_t i = 0; i < program_->captured.size(); ++i)
    if (t.is_same(program_->captured[i].tensor)) return {Outer::Kind::Captured, static_cast<int>(i)};
  return {};
}

Outer Session::Recorder::outer_of(const Storage* fake) const {
  for (const StandingStorage& s : storages_)
    if (s.fake.get() == fake) return s.first;
  return {};
}

void Session::Recorder::before_grad_change(const Tensor& t, bool adds) {
  if (t.has_data()) stand_in(t);
  const Outer target = outer_of(t);
  FL_CHECK(target || t.is_leaf() || !standing_for(t.storage().get()), UnsupportedError,
           "the .grad of a tensor from outside that is no leaf is read");
  if (!target) return;  // a tensor of the trace: nobody outside sees its gradient
  for (const GradChange& c : grad_changes_)
    if (c.target == target) return;
  grad_changes_.push_back({target, t, t.grad(), adds});
}

void Session::Recorder::assume_grad(Outer target, const Tensor& grad) {
  for (const GradAssumption& a : program_->grad_assumptions)
    if (a.target == target) return;
  const auto input = std::ranges::find_if(real_inputs_, [&](const Tensor& t) { return t.is_same(grad); });
  const bool is_input = grad.defined() && input != real_inputs_.end();
  program_->grad_assumptions.push_back(
      {target, grad.defined(), is_input ? static_cast<int>(input - real_inputs_.begin()) : -1});
}

OutputInfo Session::Recorder::output_info(const Tensor& t, const Tensors& outputs, size_t index) {
  OutputInfo o;
  o.defined = t.defined();
  if (!o.defined) return o;
  const Tensor fake = stand_in(t);
  o.is = outer_of(t);
  o.requires_grad = t.requires_grad();
  o.spec = fake.spec();
  o.alias_of = outer_of(fake.storage().get());
  for (size_t j = 0; j < index; ++j) {
    if (!outputs[j].defined()) continue;
    if (outputs[j].is_same(t) && o.is_output < 0) o.is_output = static_cast<int>(j);
    if (!o.alias_of && o.alias_of_output < 0 && outputs[j].storage() == t.storage())
      o.alias_of_output = static_cast<int>(j);
  }
  return o;
}

PhiloxSlot Session::Recorder::reserve(Generator& generator, SymInt count) {
  auto& known = program_->generators;
  size_t i = 0;
  while (i < known.size() && known[i].get() != &generator) ++i;
  if (i == known.size()) {
    known.emplace_back(&generator);
    graph::RandomState r;
    r.device = generator.device();
    sym::ShapeEnv& env = *graph().shape_env;
    r.seed_low = env.create_opaque("seed_low");
    r.seed_high = env.create_opaque("seed_high");
    r.offset = env.create_opaque("offset");
    for (const sym::Expr& e : {r.seed_low, r.seed_high, r.offset}) graph().add_symbol(InputKind::Random, e);
    graph().random.push_back(std::move(r));
  }
  graph::RandomState& r = graph().random[i];
  const PhiloxSlot slot{SymInt(r.seed_low), SymInt(r.seed_high), SymInt(r.offset) + r.increment};
  r.increment += count;
  return slot;
}

// Gradients that the run left on tensors from outside become outputs.
void Session::Recorder::collect_grads(std::vector<Value>& values) {
  for (size_t i = 0; i < grad_changes_.size(); ++i) {
    const GradChange c = grad_changes_[i];
    const Tensor now = c.tensor.grad();
    if (c.adds) assume_grad(c.target, c.before);
    if (now.is_same(c.before)) continue;
    GradEffect e{c.target, -1};
    if (now.defined()) {
      e.output = static_cast<int>(values.size());
      values.push_back(Value(ref_of(now)));
    }
    program_->grad_effects.push_back(e);
  }
}

void Session::Recorder::find_grad_owners() {
  for (CapturedInfo& c : program_->captured) {
    auto check = [&](const Tensor& owner, Outer o) {
      Tensor grad = owner.grad();
      for (const GradChange& g : grad_changes_)
        if (g.target == o) grad = g.before;
      if (!c.grad_of && grad.is_same(c.tensor)) c.grad_of = o;
    };
    for (size_t i = 0; i < real_inputs_.size(); ++i)
      check(real_inputs_[i], {Outer::Kind::Input, static_cast<int>(i)});
    for (size_t i = 0; i < program_->captured.size(); ++i)
      check(program_->captured[i].tensor, {Outer::Kind::Captured, static_cast<int>(i)});
  }
}

void Session::Recorder::drop_unused() {
  for (CapturedInfo& c : program_->captured) {
    if (!graph().users(c.node).empty() || graph().is_output(c.node)) continue;
    graph().erase(c.node);
    c.node = -1;
  }
}

void Session::Recorder::undo() {
  for (const GradChange& c : grad_changes_)
    if (c.tensor.has_data()) make_meta(c.tensor).grad = c.before;
  grad_changes_.clear();
  // The first note of a tensor holds: it comes last.
  for (auto b = before_.rbegin(); b != before_.rend(); ++b) b->restore();
  before_.clear();
}

TracedProgram Session::Recorder::finish(const Tensors& outputs) {
  sym::ShapeEnv::Scope scope(program_->graph.shape_env.get());
  std::vector<Value> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    program_->outputs.push_back(output_info(outputs[i], outputs, i));
    values.push_back(outputs[i].defined() ? Value(ref_of(outputs[i])) : Value());
  }
  collect_grads(values);
  find_grad_owners();
  graph().set_outputs(std::move(values));
  for (size_t i = 0; i < fakes.size(); ++i) {
    const StandingStorage* s = standing_for(fakes[i].storage().get());
    FL_CHECK(s, UnsupportedError, "input {} got another storage while the function ran", i);
    program_->inputs[i].written = s->written;
  }
  for (CapturedInfo& c : program_->captured) {
    const StandingStorage& s = *standing_for(c.tensor.storage().get());
    c.written = s.written;
    // A gradient of the example is not kept.
    if (c.grad_of && !c.tensor.requires_grad()) c.tensor = Tensor(c.tensor.spec(), s.fake);
  }
  undo();
  drop_unused();
  graph::simplify_symbols(graph());
  for (InputInfo& i : program_->inputs) i.spec = graph::simplified(*graph().shape_env, i.spec);
  for (OutputInfo& o : program_->outputs) o.spec = graph::simplified(*graph().shape_env, o.spec);
  return std::move(*program_);
}

Session::Session(const Tensors& inputs, const TraceOptions& options)
    : recorder_(std::make_unique<Recorder>(std::make_unique<TracedProgram>())) {
  recorder_->add_inputs(inputs, options);
}
Session::~Session() = default;

const Tensors& Session::inputs() const { return recorder_->fakes; }
graph::GraphTracer& Session::tracer() { return *recorder_; }
graph::Graph& Session::graph() { return recorder_->graph(); }
sym::ShapeEnv& Session::shape_env() { return *recorder_->graph().shape_env; }
const std::vector<CapturedInfo>& Session::captured() const { return recorder_->captured(); }

bool Session::was_written(const Tensor& t) const {
  const StandingStorage* s = recorder_->standing_for(t.storage().get());
  return s && s->written;
}
bool Session::changed_grads() const { return recorder_->changed_grads(); }
bool Session::is_outer(const Tensor& t) const { return recorder_->standing_for(t.storage().get()); }

void Session::run(const std::function<void()>& f) {
  const ForbidElementReads no_reads;
  sym::ShapeEnv::Scope scope(&shape_env());
  StateGuard<Tracer*> tracing(&DispatchState::tracer, recorder_.get());
  RandomHook::Scope random(recorder_.get());
  f();
}

TracedProgram Session::finish(const Tensors& outputs) { return recorder_->finish(outputs); }

}  // namespace fl::trace
