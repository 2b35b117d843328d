#include "region.h"

#if FLAMBEAU_CAPTURE
#include <chrono>
#include <optional>

#include "evaluator.h"
#include "flambeau/base/option.h"
#include "flambeau/op/dispatch.h"
#include "flambeau/ops/functions.h"
#include "flambeau/trace/session.h"
#include "hook.h"
#include "module.h"
#include "torch_function.h"

namespace fl::python::capture {

thread_local Capturing* capturing = nullptr;

Modes Modes::now() {
  return {dispatch_state().grad_enabled, dispatch_state().inference, autocast_state(), fl::default_dtype(),
          python::default_device()};
}
void Modes::set() const {
  dispatch_state().grad_enabled = grad_enabled;
  dispatch_state().inference = inference;
  autocast_state() = autocast;
}
bool Modes::operator==(const Modes& o) const {
  return grad_enabled == o.grad_enabled && inference == o.inference && autocast.mode() == o.autocast.mode() &&
         autocast.depth == o.autocast.depth && autocast.caches == o.autocast.caches &&
         default_dtype == o.default_dtype && default_device == o.default_device;
}

bool is_logged(std::string_view what) {
  // "graph_breaks,recompiles": words that may have a + or - before them.
  static const std::string words = "," + option("FLAMBEAU_LOGS") + "," + option("TORCH_LOGS") + ",";
  const size_t at = words.find(what);
  return at != std::string::npos && (words[at - 1] == ',' || words[at - 1] == '+') &&
         (words[at + what.size()] == ',');
}

void Unit::note_break(const Break& b) {
  for (const Break& known : breaks)
    if (known.reason == b.reason && known.where == b.where) return;
  breaks.push_back(b);
  if (is_logged("graph_breaks")) fmt::print(stderr, "flambeau: graph break: {}\n{}", b.reason, b.where);
}

CodeCache& Unit::cache(PyCodeObject* code) {
  auto [it, is_new] = codes.try_emplace(code);
  if (is_new) Py_INCREF(code);
  return it->second;
}

namespace {

/// What one run of the evaluator over the frame came to.
struct Attempt {
  Evaluator::End end = Evaluator::End::Error;
  int64_t steps = 0;    ///< of the root frame that are a part of the region
  bool raised = false;  ///< the program raises an exception after them
  Break why;
  Modes modes;
  std::vector<World::Input> inputs;
  int64_t farthest = 0;  ///< steps that went well, whether or not their end can be handed on
  int operators = 0;
  std::string problem;  ///< the state at the end can't be made again
  int64_t began = -1;   ///< the step with which the problem began; -1: not known
};

/// The exception that is being handled, put back at the end.
class HandledException {
 public:
  explicit HandledException(PyThreadState* t) : info_(t->exc_info), before_(Py_XNewRef(info_->exc_value)) {}
  ~HandledException() { Py_XSETREF(info_->exc_value, before_); }
  bool unchanged() const { return info_->exc_value == before_; }

 private:
  _PyErr_StackItem* info_;
  PyObject* before_;
};

struct CaptureOptions {
  int break_at;
  const std::set<std::string>* varying;
  bool records_calls;  ///< for a backend that is a Python function
};

/// No collection of garbage for a scope: it would run Python code that is no part of the program.
class WithoutCollection {
 public:
  WithoutCollection() : was_on_(PyGC_Disable()) {}
  ~WithoutCollection() {
    if (was_on_) PyGC_Enable();
  }
  WithoutCollection(const WithoutCollection&) = delete;

 private:
  bool was_on_;
};

/// One capture: a copy of the frame, the world behind glass, the evaluator.
class Capture {
 public:
  Capture(PyThreadState* thread, Frame* frame, std::vector<nb::object> stand_ins,
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
  ~Capture() {
    capturing = previous_;
    before_.set();
    Py_XDECREF(value_);
    PyErr_Clear();
  }
  Capture(const Capture&) = delete;

  const Modes& before() const { return before_; }

  /// limit: steps of the frame; -1: as far as it goes.
  Attempt run(int64_t limit) {
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

  /// How the frame goes on, as a recipe. False with `problem` set.
  bool write(Region& region, Tensors& outputs, std::string& problem, int64_t* began = nullptr) {
    RecipeWriter writer(world_);
    const bool fine = write_values(region, writer) && writer.changes();
    problem = writer.problem;
    if (began) *began = writer.began;
    if (!fine) return false;
    world_.guard_changed();
    outputs = writer.outputs();
    region.recipe = writer.take();
    return true;
  }

  CallRecorder* recorder() { return recorder_ ? &*recorder_ : nullptr; }

  /// What the capture relied on so far.
  void guard(Region& region) const {
    region.guards = GuardProgram(world_.places(), world_.differences, world_.equalities);
    region.inputs.clear();
    for (const World::Input& i : world_.inputs()) region.inputs.push_back(region.guards.need(i.place));
    region.recipe.renumber_places([&](int place) { return region.guards.need(place); });
  }

 private:
  // Values of the real frame, as the capture sees them.
  bool take_over() {
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

  bool write_values(Region& region, RecipeWriter& writer) {
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

  WithoutCollection no_collection_;
  PyThreadState* thread_;
  Frame* real_;
  HandledException handled_;
  FrameCopy copy_;
  World world_;
  std::optional<CallRecorder> recorder_;
  Evaluator evaluator_;
  Modes before_;
  Capturing state_{}, *previous_ = nullptr;
  PyObject* value_ = nullptr;
};

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

/// The largest number of steps that can be captured, its end and reason.
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

/// An int that varies goes into a graph as the size of a tensor without elements.
Tensor size_tensor(PyObject* number) {
  TensorSpec spec;
  spec.sizes = {SymInt(static_cast<int64_t>(PyLong_AsLongLong(number))), SymInt(0)};
  spec.strides = contiguous_strides(spec.sizes);
  return Tensor(spec, make_ref<Storage>(0, spec.device));
}

/// Dimensions that the user marked: an attribute of the tensor with their numbers.
std::set<int> marked(PyObject* tensor, const char* attribute) {
  std::set<int> out;
  PyObject** dict = _PyObject_GetDictPtr(tensor);
  PyObject* list = dict && *dict ? PyDict_GetItemString(*dict, attribute) : nullptr;
  if (list && PyAnySet_Check(list))
    for (nb::handle d : nb::handle(list))
      if (PyLong_Check(d.ptr())) out.insert(static_cast<int>(PyLong_AsLong(d.ptr())));
  return out;
}

}  // namespace

bool accepts(Region& region, Frame* frame, std::vector<PyObject*>& places, Tensors& inputs,
             std::string* why) {
  if (!(Modes::now() == region.modes_before)) {
    if (why)
      *why =
          "gradients, autocast, inference mode, the default dtype or the default device are in another state";
    return false;
  }
  if (!region.guards.check(frame, places, why)) return false;
  inputs.clear();
  for (int p : region.inputs) {
    PyObject* o = places[static_cast<size_t>(p)];
    const Tensor* t = o ? as_tensor(o) : nullptr;
    if (!t && !(o && PyLong_CheckExact(o))) return false;
    inputs.push_back(t ? *t : size_tensor(o));
  }
  const trace::TracedProgram& program = region.program();
  if (region.quick->accepts(program, inputs, region.storages)) return true;
  std::string text = trace::why_not(program, inputs);
  if (text.empty()) return true;
  if (why) *why = text;
  return false;
}

namespace {

/// What the backend's function gives. Raises nb::python_error.
Tensors run_python(const Region& region, const std::vector<PyObject*>& places) {
  const PythonProgram& p = *region.python;
  std::vector<nb::object> owned;
  std::vector<PyObject*> args;
  for (const PythonProgram::Argument& a : p.arguments) {
    PyObject* o = places[static_cast<size_t>(region.inputs[static_cast<size_t>(a.input)])];
    if (a.kind != PythonProgram::Argument::Kind::Object) {
      const Tensor& t = *as_tensor(o);
      owned.push_back(
          integer(a.kind == PythonProgram::Argument::Kind::Size ? t.sizes()[a.dim] : t.strides()[a.dim]));
      o = owned.back().ptr();
    }
    args.push_back(o);
  }
  const nb::object result = nb::steal(call_uncompiled(p.function.ptr(), args.data(), args.size()));
  if (!result.is_valid()) throw nb::python_error();
  const size_t expected = p.traced.outputs.size();
  FL_CHECK(PyTuple_Check(result.ptr()) || PyList_Check(result.ptr()), TypeError,
           "what a backend made has to give a tuple or a list of {} values, got {}", expected,
           python_type(result));
  Tensors out;
  for (nb::handle item : result) {
    const Tensor* t = as_tensor(item);
    const std::optional<SymInt> number = t ? std::nullopt : as_sym_int(item);
    FL_CHECK(t || number, TypeError, "what a backend made has to give tensors and ints, got {}",
             python_type(item));
    if (number)
      out.push_back(fl::empty({*number + SymInt(kNumberBias), SymInt(0)}));
    else
      out.push_back(*t);
  }
  FL_CHECK(out.size() == expected, ValueError, "what a backend made has to give {} values, got {}", expected,
           out.size());
  return out;
}

}  // namespace

PyObject* run_region(Region& region, Frame* frame, const std::vector<PyObject*>& places,
                     const Tensors& inputs, bool* failed) {
  // What the changes of the end could drop is held until then.
  std::vector<nb::object> held;
  for (const Make& m : region.recipe.steps())
    if (m.kind == Make::Kind::Place) held.push_back(nb::borrow(places[static_cast<size_t>(m.index)]));
  Tensors outputs;
  try {
    if (region.python) {
      outputs = run_python(region, places);
    } else {
      nb::gil_scoped_release unlocked;
      outputs = (*region.function)(inputs);
    }
  } catch (...) {
    *failed = true;
    if (region.python) {
      raise_in_python(std::current_exception());
      region.modes_before.set();
    }
    return nullptr;
  }
  ++region.runs;
  if (dispatch_state().inference)
    for (const Tensor& t : outputs)
      if (t.defined() && std::none_of(inputs.begin(), inputs.end(),
                                      [&](const Tensor& i) { return i.storage() == t.storage(); }))
        t.impl()->inference = true;
  std::vector<nb::object> made = region.recipe.make(places, outputs);
  const auto take = [&](int number) {
    return number < 0 ? nullptr : nb::object(made[static_cast<size_t>(number)]).release().ptr();
  };
  region.modes_after.set();
  if (region.returns) return take(region.stack[0]);
  for (size_t k = 0; k < region.locals.size(); ++k) Py_XSETREF(locals_of(frame)[k], take(region.locals[k]));
  const int depth = depth_of(frame);
  for (int k = 0; k < depth; ++k) Py_CLEAR(stack_of(frame)[k]);
  for (size_t k = 0; k < region.stack.size(); ++k) stack_of(frame)[k] = take(region.stack[k]);
  set_depth(frame, static_cast<int>(region.stack.size()));
  set_next(frame, region.next_unit);
  return nullptr;
}

namespace {

/// What a program gives, as Python objects: numbers as what they are.
nb::list values_of(const Tensors& outputs, const Recipe& recipe) {
  std::vector<bool> is_number(outputs.size());
  for (const Make& m : recipe.steps())
    if (m.kind == Make::Kind::Number) is_number[static_cast<size_t>(m.index)] = true;
  nb::list out;
  for (size_t k = 0; k < outputs.size(); ++k)
    out.append(is_number[k] ? integer(outputs[k].sizes()[0] - SymInt(kNumberBias)) : wrap(outputs[k]));
  return out;
}

/// Gives the graph that a capture recorded to the backend.
void compile_in_python(Region& region, const nb::object& recorder, const nb::object& backend,
                       const std::vector<World::Input>& inputs) {
  const nb::object make = recorder.attr("module"),
                   module = nb::steal(call_uncompiled(make.ptr(), nullptr, 0));
  if (!module.is_valid()) throw nb::python_error();
  const nb::object text = recorder.attr("text");
  region.report->graph = text_of(text);
  region.report->operators = nb::cast<int>(recorder.attr("calls"));
  nb::list examples;
  for (nb::handle item : recorder.attr("arguments")) {
    const auto argument = nb::cast<nb::tuple>(item);
    const int input = nb::cast<int>(argument[0]), dim = nb::cast<int>(argument[2]);
    const nb::handle real = inputs[static_cast<size_t>(input)].real;
    using Kind = PythonProgram::Argument::Kind;
    const Kind kind = nb::handle(argument[1]).is_none() ? Kind::Object
                      : text_of(argument[1]) == "size"  ? Kind::Size
                                                        : Kind::Stride;
    region.python->arguments.push_back({kind, input, dim});
    if (kind == Kind::Object)
      examples.append(real);
    else
      examples.append(
          integer(kind == Kind::Size ? as_tensor(real)->sizes()[dim] : as_tensor(real)->strides()[dim]));
  }
  static PyObject* compile =
      nb::object(nb::module_::import_("flambeau._dynamo.recorder").attr("compiled")).release().ptr();
  PyObject* args[] = {backend.ptr(), module.ptr(), examples.ptr()};
  region.python->function = nb::steal(call_uncompiled(compile, args, 3));
  if (!region.python->function.is_valid()) throw nb::python_error();
}

}  // namespace

PyObject* backend_error() {
  static PyObject* type = [] {
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    PyObject* found = nb::object(nb::module_::import_("flambeau._dynamo.exc").attr("BackendCompilerFailed"))
                          .release()
                          .ptr();
    PyErr_Restore(kind, value, traceback);
    return found;
  }();
  return type;
}

std::shared_ptr<Region> capture_region(PyThreadState* thread, Frame* frame, Unit& unit, State& state,
                                       std::string reason) {
  const auto start = std::chrono::steady_clock::now();
  const CaptureOptions capture_options{
      unit.break_at, unit.options.dynamic == false ? nullptr : &state.varying, unit.backend.is_valid()};
  const Attempt found = find_end(thread, frame, capture_options);
  const bool whole = found.end == Evaluator::End::Return;
  if (!whole && !found.raised && !found.why.reason.empty()) {
    unit.note_break(found.why);
    if (unit.options.fullgraph)
      FL_RAISE(UnsupportedError, "fullgraph=True, but the function can't be captured as one graph: {}\n{}",
               found.why.reason, found.why.where);
  }
  if (found.steps <= 0 || found.operators == 0) {
    state.nothing_for = std::max<int64_t>(found.farthest, 0) + 1;
    return nullptr;
  }

  auto region = std::make_shared<Region>();
  region->report->reason = std::move(reason);
  Tensors inputs;
  trace::TraceOptions trace_options;
  PyCodeObject* code = code_of(frame);
  for (size_t k = 0; k < found.inputs.size(); ++k) {
    PyObject* real = found.inputs[k].real;
    if (PyLong_CheckExact(real)) {
      inputs.push_back(size_tensor(real));
      trace_options.dynamic_dims[static_cast<int>(k)] = {0};
      continue;
    }
    inputs.push_back(*as_tensor(nb::handle(real)));
    std::set<int> dims = marked(real, "_dynamo_dynamic_indices");
    if (auto it = state.dynamic_dims.find(k); it != state.dynamic_dims.end())
      dims.insert(it->second.begin(), it->second.end());
    if (unit.options.dynamic == true && Py_TYPE(real) == tensor_type)
      for (int d = 0; d < inputs.back().dim(); ++d) dims.insert(d);
    for (int d : marked(real, "_dynamo_static_indices")) dims.erase(d);
    dims.erase(dims.lower_bound(static_cast<int>(inputs.back().dim())), dims.end());
    if (unit.options.dynamic != false && !dims.empty())
      trace_options.dynamic_dims[static_cast<int>(k)] = {dims.begin(), dims.end()};
  }
  std::string problem;
  const int64_t limit = whole ? -1 : found.steps;
  std::optional<Capture> running;  // until the gradient has been captured, too: its functions may be Python
  const auto callable = [&](const Tensors& fakes) {
    std::vector<nb::object> stand_ins;
    for (size_t k = 0; k < fakes.size(); ++k) {
      PyTypeObject* type = Py_TYPE(found.inputs[k].real);
      if (type == &PyLong_Type) {
        stand_ins.push_back(integer(fakes[k].sizes()[0]));
        continue;
      }
      stand_ins.push_back(type == tensor_type || fakes[k].impl()->python ? wrap(fakes[k])
                                                                         : wrap_as(type, fakes[k]));
    }
    running.reset();
    Capture& capture = running.emplace(thread, frame, std::move(stand_ins), capture_options);
    const Attempt a = capture.run(limit);
    capture.before().set();
    Tensors outputs;
    if (a.end == Evaluator::End::Error || !a.problem.empty() || !capture.write(*region, outputs, problem))
      FL_RAISE(UnsupportedError, "{}",
               !a.why.reason.empty() ? a.why.reason
               : !a.problem.empty()  ? a.problem
                                     : problem);
    if (CallRecorder* recorder = capture.recorder()) recorder->output(values_of(outputs, region->recipe));
    region->modes_before = capture.before();
    region->modes_after = a.modes;
    return outputs;
  };
  if (unit.backend.is_valid()) {
    region->python = std::make_unique<PythonProgram>();
    region->python->traced = trace::trace(callable, inputs, trace_options);
    running->guard(*region);
    const nb::object recorder = running->recorder()->python();
    running.reset();
    compile_in_python(*region, recorder, unit.backend, found.inputs);
  } else {
    aot::CompileOptions options;
    options.trace = trace_options;
    options.repeat_graph = true;
    GraphCompiler inner = graph_compiler(unit.options, region->report);
    const auto compiler = [inner](const graph::Graph& g) {
      if (!PyGILState_Check()) return inner(g);
      nb::gil_scoped_release unlocked;
      return inner(g);
    };
    region->function = aot::CompiledFunction::make(callable, inputs, compiler, options);
    running->guard(*region);
    running.reset();
    region->report->graph = graph::to_text(region->function->forward_graph());
  }
  region->quick = std::make_unique<QuickGuard>(region->program());
  if (!whole) region->why_it_ends = found.why.reason;
  const double total =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  region->report->times.trace = total - region->report->times.lower - region->report->times.codegen;
  const auto where = [&] {
    return fmt::format("{} ({})", PyUnicode_AsUTF8(code->co_qualname), region->report->reason);
  };
  if (is_logged("graph_code"))
    fmt::print(stderr, "flambeau: graph of {}:\n{}", where(), region->report->graph);
  if (is_logged("guards")) {
    fmt::print(stderr, "flambeau: guards of {}:\n", where());
    for (size_t k = 0; k < region->guards.places().size(); ++k)
      fmt::print(stderr, "  {}\n", region->guards.text(static_cast<int>(k), code));
  }
  if (option("FLAMBEAU_TIMING") == "1")
    fmt::print(stderr,
               "flambeau: {}: capture {:.1f} ms, lowering {:.1f} ms, code generation {:.1f} ms ({})\n",
               PyUnicode_AsUTF8(code->co_qualname), region->report->times.trace, region->report->times.lower,
               region->report->times.codegen, region->report->reason);
  // What does not hold now would be wrong at once.
  std::vector<PyObject*> places;
  Tensors again;
  std::string why;
  if (!accepts(*region, frame, places, again, &why))
    FL_RAISE(UnsupportedError, "the guards of the capture don't hold: {}", why);
  return region;
}

}  // namespace fl::python::capture
#endif
