#include "call_recorder.h"

#if FLAMBEAU_CAPTURE
#include "builtins.h"
#include "flambeau/graph/tracer.h"
#include "hook.h"
#include "world.h"

namespace fl::python::capture {
namespace {

/// Operators that the trace of this thread has recorded.
int32_t traced_calls() {
  auto* tracer = dynamic_cast<graph::GraphTracer*>(dispatch_state().tracer);
  return tracer ? tracer->graph().call_count() : -1;
}

/// Calls that matter though they compute nothing: they change a mode, or what autograd knows of a tensor.
bool changes_state(PyObject* f) {
  return Builtins::changes_tensor(f) ||
         Builtins::is_named(f, {"setattr", "_set_grad_enabled", "_set_autocast", "_set_autocast_caches",
                                "_set_autocast_caches", "_autocast_depth", "_set_inference"});
}

/// Calls a method of the recorder, which is no part of the program. Null with an error set.
PyObject* call_method(const nb::object& o, const char* name, std::initializer_list<PyObject*> args) {
  const nb::object method = o.attr(name);
  return call_outside(method.ptr(), args.begin(), args.size(), nullptr);
}

}  // namespace

CallRecorder::CallRecorder(World& world) : world_(world) {
  static PyObject* type =
      nb::object(nb::module_::import_("flambeau._dynamo.recorder").attr("Recorder")).release().ptr();
  python_ = nb::steal(call_outside(type, nullptr, 0, nullptr));
  if (!python_.is_valid()) throw nb::python_error();
  known_ = python_.attr("nodes");
}

bool CallRecorder::holds(PyObject* o, int depth) {
  if (depth > 8) return false;
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      if (!holds(PySequence_Fast_GET_ITEM(o, k), depth + 1)) return false;
    return true;
  }
  if (PyDict_CheckExact(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!PyUnicode_Check(key) || !holds(value, depth + 1)) return false;
    return true;
  }
  if (PySlice_Check(o)) {
    const auto* s = reinterpret_cast<PySliceObject*>(o);
    return holds(s->start, depth + 1) && holds(s->stop, depth + 1) && holds(s->step, depth + 1);
  }
  return o == Py_None || o == Py_Ellipsis || PyLong_CheckExact(o) || PyBool_Check(o) ||
         PyFloat_CheckExact(o) || PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) ||
         PyBytes_CheckExact(o) || PyRange_Check(o) || PyType_Check(o) || is_sym_int(o) || as_tensor(o) ||
         (builtins().is_constant(o) && !PyCallable_Check(o) && !PyWeakref_Check(o));
}

bool CallRecorder::is_new(PyObject* o) const {
  if (as_tensor(o)) {
    const nb::object id = nb::steal(PyLong_FromVoidPtr(o));
    return !PyDict_GetItemWithError(known_.ptr(), id.ptr());
  }
  if (PyTuple_Check(o) || PyList_CheckExact(o))
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      if (is_new(PySequence_Fast_GET_ITEM(o, k))) return true;
  return false;
}

bool CallRecorder::is_complete() {
  if (traced_calls() == calls_) return true;
  world_.stop("an operator that a function in C called is not captured for a backend that is a function");
  return false;
}

CallRecorder::Begin CallRecorder::begin(const Call& call, bool whole) {
  if (inside_) return Begin::Inside;
  if (!is_complete()) return Begin::Stopped;
  const size_t total =
      call.positional + (call.keywords ? static_cast<size_t>(PyTuple_GET_SIZE(call.keywords)) : 0);
  for (size_t k = 0; k < total; ++k) {
    if (holds(call.args[k])) continue;
    if (!whole) return Begin::Inside;
    world_.stop(fmt::format("an operation on a {} is not captured for a backend that is a function",
                            Py_TYPE(call.args[k])->tp_name));
    return Begin::Stopped;
  }
  inside_ = true;
  return Begin::Records;
}

PyObject* CallRecorder::end(const Call& call, PyObject* result) {
  inside_ = false;
  const int32_t before = std::exchange(calls_, traced_calls());
  if (!result) {
    if (before != calls_ && !world_.stopped())
      world_.stop("an error in the middle of an operation is not captured for a backend that is a function");
    return nullptr;
  }
  if (before == calls_ && !is_new(result) && !changes_state(call.target)) return result;
  const nb::object owned = nb::steal(result);
  const nb::object args = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(call.positional)));
  for (size_t k = 0; k < call.positional; ++k)
    PyTuple_SET_ITEM(args.ptr(), static_cast<Py_ssize_t>(k), Py_NewRef(call.args[k]));
  const nb::dict kwargs;
  for (Py_ssize_t k = 0; call.keywords && k < PyTuple_GET_SIZE(call.keywords); ++k)
    PyDict_SetItem(kwargs.ptr(), PyTuple_GET_ITEM(call.keywords, k),
                   call.args[call.positional + static_cast<size_t>(k)]);
  const nb::str stack(world_.user_stack().c_str());
  const nb::object done = nb::steal(
      call_method(python_, "call", {call.target, args.ptr(), kwargs.ptr(), owned.ptr(), stack.ptr()}));
  return done.is_valid() ? Py_NewRef(owned.ptr()) : world_.checked(nullptr);
}

bool CallRecorder::input(PyObject* value, PyObject* real, const std::string& name) {
  const nb::str text(name.c_str());
  const nb::object done = nb::steal(call_method(python_, "input", {value, real, text.ptr()}));
  if (!done.is_valid()) world_.checked(nullptr);
  return done.is_valid();
}

void CallRecorder::output(const nb::list& values) {
  const nb::object done = nb::steal(call_method(python_, "output", {values.ptr()}));
  if (!done.is_valid()) throw nb::python_error();
}

void CallRecorder::name(PyObject* value, PyObject* variable) {
  if (inside_ || !as_tensor(value)) return;
  const nb::object done = nb::steal(call_method(python_, "name", {value, variable}));
  if (!done.is_valid()) PyErr_Clear();
}

}  // namespace fl::python::capture
#endif
