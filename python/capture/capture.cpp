#include "capture.h"

#if FLAMBEAU_CAPTURE
#include "flambeau/trace/session.h"

namespace fl::python::capture {

Capture::Capture(PyThreadState* thread, Frame* frame, std::vector<nb::object> stand_ins,
                 const CaptureOptions& options)
    : thread_(thread),
      real_(frame),
      handled_(thread),
      copy_(frame),
      world_(copy_.frame()),
      evaluator_(&world_),
      before_(Modes::now()) {
  world_.set_stand_ins(std::move(stand_ins));
  world_.break_at = options.break_at;
  world_.set_varying(options.varying);
  if (options.records_calls) world_.recorder = &recorder_.emplace(world_);
  state_ = {&world_, &evaluator_};
  previous_ = std::exchange(capturing, &state_);
}

Capture::~Capture() {
  capturing = previous_;
  before_.set();
  Py_XDECREF(value_);
  PyErr_Clear();
}

Attempt Capture::run(int64_t limit) {
  Attempt a;
  if (!take_over()) {
    a.steps = 0;
    a.why = world_.why();
    PyErr_Clear();
    return a;
  }
  const Evaluator::Result r = evaluator_.run(thread_, copy_.frame(), false, limit);
  a.end = r.end;
  value_ = r.value;
  a.modes = Modes::now();
  a.inputs = world_.inputs();
  a.steps = r.end == Evaluator::End::Limit ? limit : world_.root_steps;
  if (world_.stopped()) {
    a.end = Evaluator::End::Error;
    a.why = world_.why();
  } else if (r.end == Evaluator::End::Error) {
    a.raised = true;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    a.why = {
        value ? fmt::format("{}: {}", Py_TYPE(value)->tp_name, text_of(nb::handle(value))) : "an exception",
        ""};
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  } else if (recorder_ && !recorder_->is_complete()) {
    a.end = Evaluator::End::Error;
    a.why = world_.why();
  } else if (!handled_.unchanged()) {
    a.problem = "the middle of an exception handler";
  }
  PyErr_Clear();
  return a;
}

bool Capture::write(Region& region, Tensors& outputs, std::string& problem, int64_t* began) {
  RecipeWriter writer(world_);
  const bool fine = write_values(region, writer) && writer.changes();
  problem = writer.problem;
  if (began) *began = writer.began;
  if (!fine) return false;
  world_.guard_changed();
  region.changes = world_.changed_attributes();
  outputs = writer.outputs();
  region.recipe = writer.take();
  return true;
}

void Capture::guard(Region& region) const {
  region.guards = GuardProgram(world_.places(), world_.differences, world_.equalities);
  region.inputs.clear();
  for (const World::Input& i : world_.inputs()) region.inputs.push_back(region.guards.need(i.place));
  region.recipe.renumber_places([&](int place) { return region.guards.need(place); });
}

// Values of the real frame, as the capture sees them.
bool Capture::take_over() {
  Frame* f = copy_.frame();
  PyCodeObject* code = code_of(f);
  const std::vector<bool>& live = code_info(code).live[static_cast<size_t>(next_of(real_))];
  const bool from_start = next_of(real_) == 0;
  for (int k = 0; k < code->co_nlocalsplus; ++k) {
    locals_of(f)[k] = nullptr;
    PyObject* o = locals_of(real_)[k];
    if (!o || (!from_start && !live[static_cast<size_t>(k)])) continue;
    PyObject* seen = world_.wrap(o, world_.local(k));
    if (!seen) return false;
    locals_of(f)[k] = seen;
  }
  const int depth = depth_of(real_);
  for (int k = 0; k < depth; ++k) {
    PyObject* o = stack_of(real_)[k];
    PyObject* seen = o ? world_.wrap(o, world_.stack(k)) : nullptr;
    if (o && !seen) return false;
    stack_of(f)[k] = seen;
    set_depth(f, k + 1);
  }
  return true;
}

bool Capture::write_values(Region& region, RecipeWriter& writer) {
  Frame* f = copy_.frame();
  region.returns = value_ != nullptr;
  if (region.returns) {
    region.stack = {writer.of(value_)};
    return region.stack[0] >= 0;
  }
  PyCodeObject* code = code_of(f);
  region.next_unit = next_of(f);
  const std::vector<bool>& live = code_info(code).live[static_cast<size_t>(region.next_unit)];
  for (int k = 0; k < code->co_nlocalsplus; ++k) {
    PyObject* o = locals_of(f)[k];
    region.locals.push_back(o && live[static_cast<size_t>(k)] ? writer.of(o) : -1);
    if (o && live[static_cast<size_t>(k)] && region.locals.back() < 0) return false;
  }
  for (int k = 0; k < depth_of(f); ++k) {
    PyObject* o = stack_of(f)[k];
    region.stack.push_back(o ? writer.of(o) : -1);
    if (o && region.stack.back() < 0) return false;
  }
  return true;
}

namespace {

/// Finds out how far the region goes, without compiling.
Attempt explore(PyThreadState* thread, Frame* frame, int64_t limit, const CaptureOptions& options) {
  Attempt a;
  trace::Session session({}, {});
  Capture capture(thread, frame, {}, options);
  session.run([&] {
    a = capture.run(limit);
    if (a.end == Evaluator::End::Error || !a.problem.empty()) return;
    Region draft;
    Tensors outputs;
    capture.write(draft, outputs, a.problem, &a.began);
  });
  a.operators = session.graph().call_count();
  return a;
}

}  // namespace

Attempt find_end(PyThreadState* thread, Frame* frame, const CaptureOptions& options) {
  constexpr int kTries = 24;
  Attempt a = explore(thread, frame, -1, options);
  Break why = a.why;
  const bool raised = a.raised;
  const int64_t farthest = a.operators ? 0 : a.steps;
  for (int k = 0; k < kTries; ++k) {
    if (a.end != Evaluator::End::Error && a.problem.empty()) break;
    if (a.end != Evaluator::End::Error && why.reason.empty()) why = {a.problem + " can't be handed on", ""};
    // Where the end can't be handed on, the region ends a step earlier.
    const bool at_step = a.end == Evaluator::End::Error || a.end == Evaluator::End::Return;
    const int64_t limit = a.began >= 0 ? std::min(a.began, a.steps) : at_step ? a.steps : a.steps - 1;
    if (limit <= 0) {
      a.steps = 0;
      break;
    }
    a = explore(thread, frame, limit, options);
    if (k + 1 == kTries && !a.problem.empty()) a.steps = 0;
  }
  a.why = why;
  a.raised = raised;
  a.farthest = farthest;
  return a;
}

}  // namespace fl::python::capture
#endif
