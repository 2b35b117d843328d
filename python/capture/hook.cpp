#include "hook.h"

#if FLAMBEAU_CAPTURE
#include <string_view>

#include "builtins.h"
#include "evaluator.h"
#include "flambeau/op/dispatch.h"
#include "hooks.h"
#include "module.h"
#include "self_test.h"
#include "torch_function.h"

namespace fl::python::capture {
namespace {

/// What a thread does.
struct Thread {
  Unit* unit = nullptr;
  int plain = 0;  ///< > 0: CPython runs everything
};
thread_local Thread thread_state;

int installed = 0;  // under Python's lock
_PyFrameEvalFunction previous_hook = nullptr;

/// A level of Python's recursion; not fine, with RecursionError set, at the limit.
struct Deeper {
  explicit Deeper(PyThreadState* t) : fine(recursion_left(t) > 0), thread(t) {
    --recursion_left(t);
    if (!fine) PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
  }
  ~Deeper() { ++recursion_left(thread); }
  const bool fine;
  PyThreadState* const thread;
};

/// How the hook is done with a frame.
struct Done {
  PyObject* value = nullptr;
  bool is_gone = false;  ///< CPython has cleared the frame, or it waits
};

PyObject* run_default(PyThreadState* thread, Frame* f, bool throwing) {
  return run_in_cpython(thread, f, throwing, previous_hook ? previous_hook : _PyEval_EvalFrameDefault);
}

/// The generator of a frame that begins, as the capture sees its cells.
PyObject* make_generator(World& world, PyThreadState* thread, Frame* f) {
  PyObject* generator = run_default(thread, f, false);
  if (!generator || !PyGen_CheckExact(generator)) return generator;
  world.note_generator(generator);
  bool fine = false;
  try {
    fine = world.take_cells(reinterpret_cast<Frame*>(reinterpret_cast<PyGenObject*>(generator)->gi_iframe));
  } catch (...) {
    raise_in_python(std::current_exception());
  }
  if (!fine) Py_CLEAR(generator);
  return generator;
}

/// A frame that the capture that goes on in this thread comes to.
Done evaluate(PyThreadState* thread, Frame* f, bool throwing) {
  World& world = *capturing->world;
  PyCodeObject* code = code_of(f);
  // A generator that goes with the capture is not told.
  if (world.stopped() && throwing && PyErr_ExceptionMatches(PyExc_GeneratorExit)) return {};
  if (world.stopped()) return {world.stop(world.why().reason)};
  if (!has_stack_left()) return {world.stop("recursion is too deep")};
  if (!is_generator(f)) {
    if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
      return {world.stop("an async function is not captured")};
    if (next_of(f) == 0 && !world.take_defaults(f)) return {};
    if (code->co_flags & CO_GENERATOR) return {make_generator(world, thread, f), true};
  }
  const Deeper deeper(thread);
  if (!deeper.fine) return {};
  const Evaluator::Result r = capturing->evaluator->run(thread, f, throwing);
  return {r.value, r.end == Evaluator::End::Yield};
}

const std::string& standard_library() {
  static const std::string path = text_of(nb::module_::import_("sysconfig").attr("get_path")("stdlib")) + "/";
  return path;
}

/// The folder of this package.
const std::string& package() {
  static const std::string path = [] {
    const std::string file = text_of(nb::module_::import_("flambeau").attr("__file__"));
    return file.substr(0, file.rfind('/') + 1);
  }();
  return path;
}

/// Whether frames of a code are never the first of a captured part. They still become a part of what calls
/// them. everything: only where that must be.
bool is_skipped(PyCodeObject* code, bool everything) {
  if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) return true;
  if (!(code->co_flags & CO_OPTIMIZED)) return true;  // of a class or module: its names are in a dict
  const std::string& library = standard_library();
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) {
    PyErr_Clear();
    return true;
  }
  const std::string_view name(file);
  // Optimizers and the like have compiled parts of their own.
  if (name.starts_with(package())) return !name.substr(package().size()).starts_with("nn/");
  return !everything && (name.starts_with("<frozen") ||
                         (name.starts_with(library) && name.find("site-packages") == std::string_view::npos));
}

/// A number that is another one now becomes a symbol in the next capture.
void note_changed_number(const Region& region, PyCodeObject* code, State& state) {
  const GuardProgram& guards = region.guards;
  const int k = guards.failed();
  if (k < 0) return;
  const Place& p = guards.places()[static_cast<size_t>(k)];
  PyObject* now = guards.value(k);
  if (p.check != Check::Equal || !now || !may_vary(now) || !may_vary(p.expected)) return;
  if (Py_TYPE(now) != Py_TYPE(p.expected)) return;
  // Numbers of modules say what the module is, but for those that the program itself changes.
  int owner = p.parent;
  if (owner >= 0 && guards.places()[static_cast<size_t>(owner)].step == Step::Dictionary)
    owner = guards.places()[static_cast<size_t>(owner)].parent;
  PyObject* parent = owner >= 0 ? guards.value(owner) : nullptr;
  const std::string name = guards.name(k, code);
  if (state.fixed.count(name) || (parent && builtins().is_module(parent) && !region.changes.count(name)))
    return;
  state.varying.insert(name);
}

/// Sizes that differ from those of an earlier capture of the same inputs are symbols in the next.
void note_changed_sizes(Frame* f, State& state) {
  std::vector<PyObject*> places;
  for (const auto& region : state.regions) {
    if (!region->guards.check(f, places, nullptr)) {
      note_changed_number(*region, code_of(f), state);
      continue;
    }
    const auto& known = region->program().inputs;
    for (size_t k = 0; k < region->inputs.size(); ++k) {
      PyObject* o = places[static_cast<size_t>(region->inputs[k])];
      const Tensor* t = o ? as_tensor(o) : nullptr;
      if (!t || known[k].spec.dim() != t->dim()) continue;
      for (int d = 0; d < t->dim(); ++d) {
        const SymInt was = known[k].spec.sizes[d];
        if (!was.is_symbolic() && !was.same_as(t->sizes()[d])) state.dynamic_dims[k].insert(d);
      }
    }
  }
}

/// A frame of the program on its way through regions and single steps.
class Drive {
 public:
  Drive(PyThreadState* thread, Frame* f, Unit& unit, CodeCache& cache)
      : thread_(thread), frame_(f), unit_(unit), cache_(cache) {}

  Done run() {
    constexpr int kStepsWithoutRegion = 2000;
    for (int idle = 0;;) {
      State& state = cache_.states[{next_of(frame_), depth_of(frame_)}];
      PyObject* value = nullptr;
      switch (enter(state, &value)) {
        case Entered::Returned:
          return {value};
        case Entered::Raised:
          return {};
        case Entered::Ran:
          idle = 0;
          break;
        case Entered::Threw:
          return go_on(true);
        case Entered::Nothing:
          if (++idle > kStepsWithoutRegion) return go_on(false);
      }
      if (PyErr_CheckSignals() < 0) return go_on(true);
      const Instruction& next = code_info(code_of(frame_)).at[static_cast<size_t>(next_of(frame_))];
      if (is_left_to_cpython(next.op) || !has_stack_left()) return go_on(false);
      const int64_t steps = std::max<int64_t>(idle ? state.nothing_for : 1, 1);
      const Evaluator::Result r = Evaluator(nullptr).run(thread_, frame_, false, steps);
      if (r.end == Evaluator::End::Return) return {r.value};
      if (r.end == Evaluator::End::Error) return {};
      if (r.end == Evaluator::End::Handled) return go_on(false);
    }
  }

 private:
  enum class Entered : uint8_t { Nothing, Ran, Returned, Raised, Threw };

  /// Leaves the rest of the frame to CPython, which counts its level itself.
  Done go_on(bool throwing) {
    ++recursion_left(thread_);
    PyObject* value = run_default(thread_, frame_, throwing);
    --recursion_left(thread_);
    return {value, true};
  }

  Entered enter(State& state, PyObject** value) {
    if (state.hopeless || is_shown(frame_)) return Entered::Nothing;
    if (saved_tensors_are_hooked() || functions_are_overridden()) {
      unit_.note_break({"hooks for saved tensors or a torch function mode are on", ""});
      return Entered::Nothing;
    }
    std::shared_ptr<Region> region = find(state);
    if (!region) region = capture(state);
    if (!region) return PyErr_Occurred() ? Entered::Raised : Entered::Nothing;
    bool failed = false;
    *value = run_region(*region, frame_, places_, inputs_, &failed);
    if (failed && PyErr_Occurred()) return Entered::Threw;
    if (failed) {  // the program itself shows what is wrong
      if (++state.failures > 3) state.hopeless = true;
      return Entered::Nothing;
    }
    return region->returns ? Entered::Returned : Entered::Ran;
  }

  std::shared_ptr<Region> find(State& state) {
    for (size_t k = 0; k < state.regions.size(); ++k) {
      std::shared_ptr<Region> r = state.regions[k];
      if (!accepts(*r, frame_, places_, inputs_, nullptr)) continue;
      if (k > 0)
        std::rotate(state.regions.begin(), state.regions.begin() + static_cast<long>(k),
                    state.regions.begin() + static_cast<long>(k) + 1);
      return r;
    }
    return nullptr;
  }

  std::shared_ptr<Region> capture(State& state) {
    std::string reason = state.regions.empty() ? "first call" : "";
    for (const auto& r : state.regions) {
      if (!reason.empty()) break;
      accepts(*r, frame_, places_, inputs_, &reason);
    }
    if (static_cast<int>(state.regions.size()) >= unit_.options.recompile_limit) {
      const std::string text =
          fmt::format("{} was compiled {} times, the limit; the last reason: {}",
                      PyUnicode_AsUTF8(code_of(frame_)->co_qualname), state.regions.size(), reason);
      if (unit_.options.fullgraph) {
        PyErr_SetString(PyExc_RuntimeError, text.c_str());
        return nullptr;
      }
      unit_.note_break({text, ""});
      return nullptr;
    }
    try {
      note_changed_sizes(frame_, state);
      std::shared_ptr<Region> made = capture_region(thread_, frame_, unit_, state, reason);
      if (!made) {
        state.hopeless = state.regions.empty() && ++state.failures > 1;
        return nullptr;
      }
      if (!state.regions.empty()) {
        unit_.recompiles.push_back(reason);
        if (is_logged("recompiles"))
          fmt::print(stderr, "flambeau: {} was captured again: {}\n",
                     PyUnicode_AsUTF8(code_of(frame_)->co_qualname), reason);
      }
      state.regions.insert(state.regions.begin(), made);
      unit_.regions.push_back(made);
      return accepts(*made, frame_, places_, inputs_, nullptr) ? made : nullptr;
    } catch (const Error& e) {
      // What the compiler can't do, or does wrong, must not become the program's.
      if (unit_.options.fullgraph) {
        raise_in_python(std::current_exception());
        return nullptr;
      }
      unit_.note_break({e.message(), ""});
    } catch (...) {
      raise_in_python(std::current_exception());
      if (unit_.options.fullgraph || PyErr_ExceptionMatches(backend_error())) return nullptr;
      PyObject *type, *value, *traceback;
      PyErr_Fetch(&type, &value, &traceback);
      PyErr_NormalizeException(&type, &value, &traceback);
      unit_.note_break(
          {fmt::format("an error in the capture: {}", value ? text_of(nb::handle(value)) : "?"), ""});
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
    }
    if (++state.failures > 1) state.hopeless = true;
    return nullptr;
  }

  PyThreadState* thread_;
  Frame* frame_;
  Unit& unit_;
  CodeCache& cache_;
  std::vector<PyObject*> places_;
  Tensors inputs_;
};

/// Runs a frame by `run` and ends it.
template <class Run>
PyObject* finish(PyThreadState* thread, Frame* f, const Run& run) {
  Done done;
  try {
    done = run();
  } catch (...) {
    raise_in_python(std::current_exception());
  }
  return done.is_gone ? done.value : leave(thread, f, done.value);
}

PyObject* hook(PyThreadState* thread, Frame* f, int throwing) {
  if (capturing && is_collecting(thread)) {
    Capturing* here = std::exchange(capturing, nullptr);
    ++thread_state.plain;
    PyObject* value = run_default(thread, f, throwing);
    --thread_state.plain;
    capturing = here;
    return value;
  }
  if (capturing) return finish(thread, f, [&] { return evaluate(thread, f, throwing); });
  Unit* unit = thread_state.unit;
  if (!unit || thread_state.plain || dispatch_state().tracer || !has_stack_left() || throwing ||
      is_generator(f) || is_watched(thread, code_of(f)) || f->frame_obj)
    return run_default(thread, f, throwing);
  PyCodeObject* code = code_of(f);
  CodeCache& cache = unit->cache(code);
  if (cache.skip) return run_default(thread, f, throwing);
  if (cache.states.empty() && is_skipped(code, unit->trial.everything)) {
    cache.skip = true;
    return run_default(thread, f, throwing);
  }
  return finish(thread, f, [&]() -> Done {
    const Deeper deeper(thread);
    return deeper.fine ? Drive(thread, f, *unit, cache).run() : Done{};
  });
}

class Installed {
 public:
  Installed() : interpreter_(PyInterpreterState_Get()) {
    if (installed++ == 0) {
      _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter_);
      previous_hook = now == hook || now == _PyEval_EvalFrameDefault ? nullptr : now;
      _PyInterpreterState_SetEvalFrameFunc(interpreter_, hook);
    }
  }
  ~Installed() {
    if (--installed == 0)
      _PyInterpreterState_SetEvalFrameFunc(interpreter_,
                                           previous_hook ? previous_hook : _PyEval_EvalFrameDefault);
  }

 private:
  PyInterpreterState* interpreter_;
};

}  // namespace

void prepare() {
  static const bool warned = [] {
    if (frames_problem().empty()) return false;
    const std::string text = fmt::format(
        "compile() runs functions eagerly: this Python's frames are not as expected ({})", frames_problem());
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) < 0) throw nb::python_error();
    return true;
  }();
  if (warned) return;
  ++thread_state.plain;
  builtins().module_getattr();
  standard_library();
  package();
  is_python_class(&PyBaseObject_Type);
  --thread_state.plain;
}

PyObject* call_captured(Unit& unit, PyObject* f, PyObject* const* args, size_t count, PyObject* keywords) {
  ++unit.calls;
  if (capturing || thread_state.plain || !frames_problem().empty())
    return PyObject_Vectorcall(f, args, count, keywords);
  const Installed there;
  Unit* outer = std::exchange(thread_state.unit, &unit);
  PyObject* r = PyObject_Vectorcall(f, args, count, keywords);
  thread_state.unit = outer;
  return r;
}

PyObject* call_plainly(PyObject* f, PyObject* const* args, size_t count, PyObject* keywords) {
  ++thread_state.plain;
  PyObject* r = PyObject_Vectorcall(f, args, count, keywords);
  --thread_state.plain;
  return r;
}

PyObject* call_uncompiled(PyObject* f, PyObject* const* args, size_t count) {
  Unit* outer = std::exchange(thread_state.unit, nullptr);
  PyObject* r = PyObject_Vectorcall(f, args, count, nullptr);
  thread_state.unit = outer;
  return r;
}

PyObject* call_outside(PyObject* f, PyObject* const* args, size_t count, PyObject* keywords) {
  Capturing* here = std::exchange(capturing, nullptr);
  PyObject* r = call_plainly(f, args, count, keywords);
  capturing = here;
  return r;
}

}  // namespace fl::python::capture
#endif
