// CapturedFunction: what compile() makes of a callable.
#include "module.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include "flambeau/op/dispatch.h"
#include "hook.h"
#include "self_test.h"

namespace fl::python {

#if FLAMBEAU_CAPTURE
namespace {

using capture::Unit;

/// The object of compile(f).
struct CapturedObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  std::shared_ptr<Unit>* unit;
  PyObject* dict;
  PyObject* weak_references;
};

PyTypeObject* captured_type = nullptr;
bool capture_enabled = true;  // set_stance()

CapturedObject* cast(PyObject* o) { return reinterpret_cast<CapturedObject*>(o); }

PyObject* call(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  CapturedObject* o = cast(self);
  if (!capture_enabled || (*o->unit)->options.backend == "eager")
    return PyObject_Vectorcall(o->function, args, count, keywords);
  const std::shared_ptr<Unit> unit = *o->unit;
  return capture::call_captured(*unit, o->function, args, count, keywords);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->function);
  Py_VISIT(cast(self)->dict);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->function);
  Py_CLEAR(cast(self)->dict);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  delete cast(self)->unit;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bind_to(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

nb::object explain(const Unit& unit) {
  nb::dict out;
  nb::list graphs, breaks, recompiles;
  std::string text = fmt::format("{} calls, {} graphs\n", unit.calls, unit.regions.size());
  for (size_t k = 0; k < unit.regions.size(); ++k) {
    const capture::Region& r = *unit.regions[k];
    nb::dict d;
    d["operators"] = r.report->operators;
    d["kernels"] = r.report->kernels;
    d["library_calls"] = r.report->library_calls;
    d["bytes_moved"] = r.report->bytes_moved;
    d["milliseconds"] = r.report->times.total();
    d["reason"] = nb::str(r.report->reason.c_str());
    d["graph"] = nb::str(r.report->graph.c_str());
    d["guards"] = r.guards.places().size();
    d["runs"] = r.runs;
    d["ends"] = nb::str(r.why_it_ends.c_str());
    graphs.append(d);
    text += fmt::format(
        "graph {}: {} operators, {} kernels, {} library calls, {} guards, {} runs; capture {:.1f} ms, "
        "lowering {:.1f} ms, "
        "code generation {:.1f} ms; because: {}{}{}\n",
        k, r.report->operators, r.report->kernels, r.report->library_calls, r.guards.places().size(), r.runs,
        r.report->times.trace, r.report->times.lower, r.report->times.codegen, r.report->reason,
        r.why_it_ends.empty() ? "" : "; ends because: ", r.why_it_ends);
  }
  for (const capture::Break& b : unit.breaks) {
    breaks.append(nb::str((b.reason + (b.where.empty() ? "" : "\n" + b.where)).c_str()));
    text += fmt::format("break: {}\n{}", b.reason, b.where);
  }
  for (const std::string& r : unit.recompiles) recompiles.append(nb::str(r.c_str()));
  out["graphs"] = graphs;
  out["breaks"] = breaks;
  out["fallbacks"] = breaks;
  out["recompiles"] = recompiles;
  out["calls"] = unit.calls;
  out["text"] = nb::str(text.c_str());
  return out;
}

PyObject* explain_method(PyObject* self, PyObject*) {
  try {
    return explain(**cast(self)->unit).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

/// Drops what was captured.
PyObject* reset_method(PyObject* self, PyObject*) {
  const std::shared_ptr<Unit> old = *cast(self)->unit;
  *cast(self)->unit = std::make_shared<Unit>(old->options, old->backend);
  Py_RETURN_NONE;
}

PyTypeObject* make_type() {
  static PyMemberDef members[] = {
      {"__dictoffset__", T_PYSSIZET, offsetof(CapturedObject, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(CapturedObject, weak_references), READONLY, nullptr},
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(CapturedObject, vectorcall), READONLY, nullptr},
      {}};
  static PyMethodDef methods[] = {
      {"explain", explain_method, METH_NOARGS,
       "Graphs, breaks and recompiles so far: a dict; its 'text' is for reading."},
      {"reset", reset_method, METH_NOARGS, "Drops what was captured."},
      {}};
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
                                {Py_tp_members, members},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, properties},
                                {}};
  static PyType_Spec spec{"flambeau.CapturedFunction", sizeof(CapturedObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw nb::python_error();
  return type;
}

nb::object make_captured(nb::object function, CompileOptions options, nb::object backend,
                         const capture::Trial& trial) {
  FL_CHECK(PyCallable_Check(function.ptr()), TypeError, "compile(): expected a function, got {}",
           python_type(function));
  check_options(options);
  capture::prepare();
  PyObject* self = captured_type->tp_alloc(captured_type, 0);
  if (!self) throw nb::python_error();
  cast(self)->vectorcall = call;
  cast(self)->function = function.release().ptr();
  cast(self)->unit =
      new std::shared_ptr<Unit>(std::make_shared<Unit>(std::move(options), std::move(backend)));
  (*cast(self)->unit)->trial = trial;
  return nb::steal(self);
}

PyObject* run_plainly(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "_run_plainly() needs a function");
    return nullptr;
  }
  return capture::call_plainly(args[0], args + 1, static_cast<size_t>(count - 1), keywords);
}

}  // namespace
#endif

void bind_capture(nb::module_& m) {
  m.attr("_has_capture") = nb::bool_(FLAMBEAU_CAPTURE);
  static PyMethodDef functions[] = {
    {"_is_capturing", [](PyObject*, PyObject*) { return Py_NewRef(Py_False); }, METH_NOARGS,
     "True in code that is being captured."},
    {"_break", [](PyObject*, PyObject*) { return Py_NewRef(Py_None); }, METH_NOARGS,
     "Ends a captured graph."},
#if FLAMBEAU_CAPTURE
    {"_run_plainly", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run_plainly)),
     METH_FASTCALL | METH_KEYWORDS, "Calls a function without capturing it or what it calls."},
#endif
    {}
  };
  if (PyModule_AddFunctions(m.ptr(), functions) < 0) throw nb::python_error();
#if FLAMBEAU_CAPTURE
  captured_type = make_type();
  m.def("_set_capture_enabled", [](bool on) { return std::exchange(capture_enabled, on); });
  m.def("_has_elements", [](const Tensor& t) { return t.has_data(); });
  m.def(
      "_sym_text",
      [](nb::handle number) {
        const std::optional<SymInt> i = as_symbolic_integer(number);
        return i ? fmt::format("{}", *i) : text_of(number);
      },
      "The expression that a SymInt stands for, without a guard.");
  m.def(
      "_without_elements",
      [](const Tensor& t, const std::function<int64_t(std::string)>& value_of) {
        TensorSpec spec = t.spec();
        const auto number = [&](SymInt& s) { s = s.is_symbolic() ? SymInt(value_of(s.expr().str())) : s; };
        for (SymInt& s : spec.sizes) number(s);
        for (SymInt& s : spec.strides) number(s);
        number(spec.offset);
        Tensor out = fake_tensor(spec);
        if (t.requires_grad()) out.set_requires_grad(true);
        return wrap(out);
      },
      "A tensor like another one, without elements, and with numbers in the place of symbols.");
  m.attr("CapturedFunction") = nb::borrow(reinterpret_cast<PyObject*>(captured_type));
  m.def(
      "_frames_problem", [] { return capture::frames_problem(); },
      "What is wrong with capture on this Python; empty if nothing is. Then compiled functions run eagerly.");
  m.def(
      "_capture",
      [](nb::object function, nb::object backend, std::optional<bool> dynamic, bool fullgraph,
         std::string mode, int recompile_limit, std::string name, int break_at, int64_t longest,
         bool everything) {
        const bool named = nb::isinstance<nb::str>(backend);
        CompileOptions options{named ? nb::cast<std::string>(backend) : "aot_eager",
                               dynamic,
                               fullgraph,
                               std::move(mode),
                               recompile_limit,
                               std::move(name)};
        return make_captured(std::move(function), std::move(options),
                             named ? nb::object() : std::move(backend), {break_at, longest, everything});
      },
      nb::arg("function"), nb::kw_only(), nb::arg("backend") = "native", nb::arg("dynamic") = nb::none(),
      nb::arg("fullgraph") = false, nb::arg("mode") = "default", nb::arg("recompile_limit") = 8,
      nb::arg("name") = "function", nb::arg("break_at") = -1, nb::arg("longest") = -1,
      nb::arg("everything") = false,
      "compile() of a function. For tests: break_at, longest and everything, as capture::Trial has them.");
#endif
}

}  // namespace fl::python
