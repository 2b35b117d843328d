#include "region.h"

#if FLAMBEAU_CAPTURE
#include <optional>

#include "flambeau/base/option.h"
#include "flambeau/op/dispatch.h"
#include "flambeau/ops/functions.h"
#include "hook.h"
#include "module.h"
#include "torch_function.h"

namespace fl::python::capture {

thread_local Capturing* capturing = nullptr;

Modes Modes::now() {
  return {dispatch_state().grad_enabled, dispatch_state().inference, autocast_state(),
          fl::default_dtype(),           python::default_device(),   current_cuda_device()};
}
void Modes::set() const {
  dispatch_state().grad_enabled = grad_enabled;
  dispatch_state().inference = inference;
  autocast_state() = autocast;
}
bool Modes::operator==(const Modes& o) const {
  return grad_enabled == o.grad_enabled && inference == o.inference && autocast.mode() == o.autocast.mode() &&
         autocast.depth == o.autocast.depth && autocast.caches == o.autocast.caches &&
         default_dtype == o.default_dtype && default_device == o.default_device &&
         cuda_device == o.cuda_device;
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

Unit::~Unit() {
  for (const auto& [code, cache] : codes) Py_DECREF(code);
}

CodeCache& Unit::cache(PyCodeObject* code) {
  auto [it, is_new] = codes.try_emplace(code);
  if (is_new) Py_INCREF(code);
  return it->second;
}

Tensor number_tensor(PyObject* number) {
  if (PyFloat_CheckExact(number)) {
    const Tensor t = empty_tensor({}, DType::Float64);
    *t.data_as<double>() = PyFloat_AS_DOUBLE(number);
    return t;
  }
  TensorSpec spec;
  spec.sizes = {SymInt(static_cast<int64_t>(PyLong_AsLongLong(number))), SymInt(0)};
  spec.strides = contiguous_strides(spec.sizes);
  return Tensor(spec, make_ref<Storage>(0, spec.device));
}

bool accepts(Region& region, Frame* frame, std::vector<PyObject*>& places, Tensors& inputs,
             std::string* why) {
  if (!(Modes::now() == region.modes_before)) {
    if (why)
      *why =
          "gradients, autocast, inference mode, the default dtype, the default device or the current CUDA "
          "device are in another state";
    return false;
  }
  if (!region.guards.check(frame, places, why)) return false;
  inputs.clear();
  for (int p : region.inputs) {
    PyObject* o = places[static_cast<size_t>(p)];
    const Tensor* t = o ? as_tensor(o) : nullptr;
    if (!t && !(o && (PyLong_CheckExact(o) || PyFloat_CheckExact(o)))) return false;
    if (t && is_late_view(*t)) {
      if (why) *why = "a view's base came to require gradients";
      return false;
    }
    if (t && t->impl()->inference != region.inference[inputs.size()]) {
      if (why) *why = "a tensor is now, or no longer is, an inference tensor";
      return false;
    }
    inputs.push_back(t ? *t : number_tensor(o));
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
    return number == Region::kNothing ? nullptr
                                      : nb::object(made[static_cast<size_t>(number)]).release().ptr();
  };
  region.modes_after.set();
  if (region.returns) return take(region.stack[0]);
  for (size_t k = 0; k < region.locals.size(); ++k)
    if (region.locals[k] != Region::kAsItIs) Py_XSETREF(locals_of(frame)[k], take(region.locals[k]));
  const int depth = depth_of(frame);
  for (int k = 0; k < depth; ++k) Py_CLEAR(stack_of(frame)[k]);
  for (size_t k = 0; k < region.stack.size(); ++k) stack_of(frame)[k] = take(region.stack[k]);
  set_depth(frame, static_cast<int>(region.stack.size()));
  set_next(frame, region.next_unit);
  return nullptr;
}

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

}  // namespace fl::python::capture
#endif
