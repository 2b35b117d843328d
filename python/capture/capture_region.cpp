// A region is explored, captured, compiled and checked.
#include <chrono>
#include <optional>

#include "capture.h"
#include "flambeau/base/option.h"
#include "hook.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {
namespace {

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

bool is_number(PyObject* input) { return PyLong_CheckExact(input) || PyFloat_CheckExact(input); }

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

/// Makes the region that a frame begins with.
class Maker {
 public:
  Maker(PyThreadState* thread, Frame* frame, Unit& unit, State& state)
      : thread_(thread),
        frame_(frame),
        unit_(unit),
        state_(state),
        options_{unit.trial, unit.options.dynamic == false ? nullptr : &state.varying,
                 unit.backend.is_valid()} {}

  std::shared_ptr<Region> make(const std::string& reason) {
    const auto start = std::chrono::steady_clock::now();
    if (!explore()) return nullptr;
    std::shared_ptr<Region> region = ones_may_vary() ? make_for_ones() : nullptr;
    if (!region) region = capture(false);
    if (fix_numbers(*region)) return make(reason);
    const nb::object recorder = region->python ? running_->recorder()->python() : nb::object();
    running_.reset();
    if (region->python) compile_in_python(*region, recorder, unit_.backend, found_.inputs);
    region->report->reason = reason;
    finish(*region, start);
    return region;
  }

 private:
  bool is_whole() const { return found_.end == Evaluator::End::Return; }

  /// How far the region goes. False if there is nothing to gain. Raises what fullgraph asks for.
  bool explore() {
    found_ = find_end(thread_, frame_, options_);
    const Break& why = found_.why;
    if (!is_whole() && !found_.raised && !why.reason.empty()) {
      unit_.note_break(why);
      if (unit_.options.fullgraph)
        FL_RAISE(UnsupportedError, "fullgraph=True, but the function can't be captured as one graph: {}\n{}",
                 why.reason, why.where);
    }
    const bool everything = unit_.trial.everything;
    if (found_.steps > 0 && (found_.operators > 0 || everything)) return true;
    state_.nothing_for = everything ? 1 : std::max<int64_t>(found_.farthest, 0) + 1;
    return false;
  }

  /// Sizes and numbers that are symbols.
  trace::TraceOptions trace_options() const {
    trace::TraceOptions out;
    for (size_t k = 0; k < found_.inputs.size(); ++k) {
      PyObject* real = found_.inputs[k].real;
      const int input = static_cast<int>(k);
      if (PyFloat_CheckExact(real)) continue;
      if (PyLong_CheckExact(real)) {
        out.dynamic_dims[input] = {0};
        out.numbers.insert(input);
        continue;
      }
      const std::optional<bool> dynamic = unit_.options.dynamic;
      const int dim = static_cast<int>(as_tensor(real)->dim());
      std::set<int> dims = marked(real, "_dynamo_dynamic_indices");
      if (auto it = state_.dynamic_dims.find(k); it != state_.dynamic_dims.end())
        dims.insert(it->second.begin(), it->second.end());
      if (dynamic == true && Py_TYPE(real) == tensor_type)
        for (int d = 0; d < dim; ++d) dims.insert(d);
      for (int d : marked(real, "_dynamo_static_indices")) dims.erase(d);
      dims.erase(dims.lower_bound(dim), dims.end());
      if (dynamic != false && !dims.empty()) out.dynamic_dims[input] = {dims.begin(), dims.end()};
    }
    return out;
  }

  Tensors inputs() const {
    Tensors out;
    for (const World::Input& i : found_.inputs)
      out.push_back(is_number(i.real) ? number_tensor(i.real) : *as_tensor(nb::handle(i.real)));
    return out;
  }

  /// With dynamic=True a size of 1 is a symbol, too, where that is right.
  bool ones_may_vary() const {
    bool any = false;
    for (const World::Input& i : found_.inputs) {
      const Tensor* t = is_number(i.real) ? nullptr : as_tensor(nb::handle(i.real));
      if (t && t->requires_grad()) return false;
      for (int d = 0; t && d < t->dim(); ++d) any = any || t->sizes()[d].same_as(1);
    }
    return any && unit_.options.dynamic == true;
  }

  std::shared_ptr<Region> make_for_ones() {
    try {
      std::shared_ptr<Region> region = capture(true);
      if (trace::is_right_for_ones(region->program()) && is_accepted(*region, nullptr)) return region;
    } catch (const Error&) {
      // Then sizes of 1 are numbers.
    } catch (const nb::python_error&) {
    }
    return nullptr;
  }

  /// Captures the region and compiles it, but for a backend that is a Python function.
  std::shared_ptr<Region> capture(bool one_varies) {
    auto region = std::make_shared<Region>();
    trace::TraceOptions trace = trace_options();
    trace.one_varies = one_varies;
    const auto callable = [&](const Tensors& fakes) { return run(*region, fakes); };
    if (unit_.backend.is_valid()) {
      region->python = std::make_unique<PythonProgram>();
      region->python->traced = trace::trace(callable, inputs(), trace);
    } else {
      aot::CompileOptions options;
      options.trace = std::move(trace);
      options.repeat_graph = true;
      GraphCompiler inner = graph_compiler(unit_.options, region->report);
      const auto compiler = [inner](const graph::Graph& g) {
        if (!PyGILState_Check()) return inner(g);
        nb::gil_scoped_release unlocked;
        return inner(g);
      };
      region->function = aot::CompiledFunction::make(callable, inputs(), compiler, options);
    }
    region->quick = std::make_unique<QuickGuard>(region->program());
    running_->guard(*region);
    return region;
  }

  /// The program once more, with stand-ins for its inputs.
  Tensors run(Region& region, const Tensors& fakes) {
    std::vector<nb::object> stand_ins;
    region.inference.clear();
    for (size_t k = 0; k < fakes.size(); ++k) {
      const Tensor* real = as_tensor(nb::handle(found_.inputs[k].real));
      region.inference.push_back(real && real->impl()->inference);
      if (region.inference.back()) fakes[k].impl()->inference = true;
      PyTypeObject* type = Py_TYPE(found_.inputs[k].real);
      if (type == &PyLong_Type)
        stand_ins.push_back(integer(fakes[k].sizes()[0]));
      else if (type == &PyFloat_Type)
        stand_ins.push_back(
            symbolic_float(fakes[k], {static_cast<int>(k)}, PyFloat_AS_DOUBLE(found_.inputs[k].real)));
      else
        stand_ins.push_back(type == tensor_type || fakes[k].impl()->python ? wrap(fakes[k])
                                                                           : wrap_as(type, fakes[k]));
    }
    running_.reset();
    Capture& capture = running_.emplace(thread_, frame_, std::move(stand_ins), options_);
    const Attempt a = capture.run(is_whole() ? -1 : found_.steps);
    capture.before().set();
    Tensors outputs;
    std::string problem;
    if (a.end == Evaluator::End::Error || !a.problem.empty() || !capture.write(region, outputs, problem))
      FL_RAISE(UnsupportedError, "{}",
               !a.why.reason.empty() ? a.why.reason
               : !a.problem.empty()  ? a.problem
                                     : problem);
    if (CallRecorder* recorder = capture.recorder()) recorder->output(values_of(outputs, region.recipe));
    region.modes_before = capture.before();
    region.modes_after = a.modes;
    return outputs;
  }

  /// Numbers that the graph needs as such are not symbols again. Whether there were any.
  bool fix_numbers(const Region& region) {
    const trace::TracedProgram& program = region.program();
    const World& world = running_->world();
    bool any = false;
    for (size_t k = 0; k < world.inputs().size(); ++k) {
      PyObject* real = found_.inputs[k].real;
      if (!is_number(real)) continue;
      if (PyFloat_CheckExact(real)) {
        if (!running_->needed().count(static_cast<int>(k))) continue;
      } else {
        const SymInt size = program.inputs[k].spec.sizes[0];
        if (size.is_symbolic() && !program.graph.shape_env->simplify(size.expr()).is_const()) continue;
      }
      const std::string name = place_name(world.places(), world.inputs()[k].place, code_of(frame_));
      any = state_.varying.erase(name) > 0 || any;
      state_.fixed.insert(name);
    }
    return any;
  }

  bool is_accepted(Region& region, std::string* why) {
    std::vector<PyObject*> places;
    Tensors inputs;
    return accepts(region, frame_, places, inputs, why);
  }

  void finish(Region& region, std::chrono::steady_clock::time_point start) {
    GraphReport& report = *region.report;
    if (!is_whole()) region.why_it_ends = found_.why.reason;
    if (!region.python) report.graph = graph::to_text(region.function->forward_graph());
    const double total =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    report.times.trace = total - report.times.lower - report.times.codegen;
    log(region);
    // What does not hold now would be wrong at once.
    std::string why;
    if (!is_accepted(region, &why))
      FL_RAISE(UnsupportedError, "the guards of the capture don't hold: {}", why);
  }

  void log(const Region& region) const {
    const GraphReport& report = *region.report;
    PyCodeObject* code = code_of(frame_);
    const auto where = [&] {
      return fmt::format("{} ({})", PyUnicode_AsUTF8(code->co_qualname), report.reason);
    };
    if (is_logged("graph_code")) fmt::print(stderr, "flambeau: graph of {}:\n{}", where(), report.graph);
    if (is_logged("guards")) {
      fmt::print(stderr, "flambeau: guards of {}:\n", where());
      for (size_t k = 0; k < region.guards.places().size(); ++k)
        fmt::print(stderr, "  {}\n", region.guards.text(static_cast<int>(k), code));
    }
    if (option("FLAMBEAU_TIMING") == "1")
      fmt::print(stderr,
                 "flambeau: {}: capture {:.1f} ms, lowering {:.1f} ms, code generation {:.1f} ms ({})\n",
                 PyUnicode_AsUTF8(code->co_qualname), report.times.trace, report.times.lower,
                 report.times.codegen, report.reason);
  }

  PyThreadState* thread_;
  Frame* frame_;
  Unit& unit_;
  State& state_;
  const CaptureOptions options_;
  Attempt found_;
  std::optional<Capture> running_;  // until the gradient has been captured: its functions may be Python, too
};

}  // namespace

std::shared_ptr<Region> capture_region(PyThreadState* thread, Frame* frame, Unit& unit, State& state,
                                       const std::string& reason) {
  return Maker(thread, frame, unit, state).make(reason);
}

}  // namespace fl::python::capture
#endif
