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
  world_.break_at = options.trial.break_at;
  world_.set_varying(options.varying);
  if (options.records_calls) world_.recorder = &recorder_.emplace(world_);
  state_ = {&world_, &evaluator_};
  previous_ = std::exchange(capturing, &state_);
  needed_before_ = std::exchange(needed_numbers, &needed_);
}

Capture::~Capture() {
  capturing = previous_;
  needed_numbers = needed_before_;
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
  if (r.end == Evaluator::End::Return) drop_generators();
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
    if (!o || (!from_start && !live[static_cast<size_t>(k)] && !World::ends_with_code(o))) continue;
    taken_.insert(k);
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
    region.locals.push_back(Region::kNothing);
    if (!o || !live[static_cast<size_t>(k)]) continue;
    region.locals.back() = is_as_it_was(k) ? Region::kAsItIs : writer.of(o);
    if (region.locals.back() == -1) return false;
  }
  for (int k = 0; k < depth_of(f); ++k) {
    PyObject* o = stack_of(f)[k];
    region.stack.push_back(o ? writer.of(o) : Region::kNothing);
    if (o && region.stack.back() < 0) return false;
  }
  // What nothing reads any more still keeps objects that others know alive.
  for (int k = 0; k < code->co_nlocalsplus; ++k) {
    PyObject* o = locals_of(f)[k];
    int& number = region.locals[static_cast<size_t>(k)];
    if (live[static_cast<size_t>(k)]) continue;
    if (o ? is_as_it_was(k) : !taken_.count(k))
      number = Region::kAsItIs;
    else if (o && (writer.knows(o) || world_.place_of(o) >= 0 || World::ends_with_code(o)))
      number = writer.of(o);
    if (number == -1 && !writer.problem.empty()) return false;
  }
  return true;
}

// At the end of the call generators that wait in locals end, and run what they have in `finally`.
void Capture::drop_generators() {
  Frame* f = copy_.frame();
  for (int k = 0; k < code_of(f)->co_nlocalsplus; ++k) {
    PyObject*& o = locals_of(f)[k];
    if (o && PyGen_CheckExact(o) && world_.place_of(o) < 0) Py_CLEAR(o);
  }
}

bool Capture::is_as_it_was(int slot) {
  return taken_.count(slot) && world_.place_of(locals_of(copy_.frame())[slot]) == world_.local(slot);
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
  Attempt a = explore(thread, frame, options.trial.longest, options);
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
