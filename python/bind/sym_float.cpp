#include "sym_float.h"

#include <cmath>

#include "flambeau/op/dispatch.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/number.h"
#include "flambeau/sym/shape_env.h"
#include "module.h"

namespace fl::python {

PyTypeObject* sym_float_type = nullptr;
thread_local std::set<int>* needed_numbers = nullptr;

namespace {

/// Not a subclass of float: C code reads a float's bits without asking.
struct SymFloatObject {
  PyObject_HEAD Tensor value;
  uint64_t env;  ///< the trace, by ShapeEnv::id()
  std::vector<int> inputs;
  std::optional<double> example;
};

SymFloatObject& cast(PyObject* o) { return *reinterpret_cast<SymFloatObject*>(o); }

bool in_its_trace(const SymFloatObject& o) {
  const sym::ShapeEnv* env = sym::ShapeEnv::active();
  return env && env->id() == o.env && dispatch_state().tracer;
}

/// What a slot returns to Python: f's object, or null with the error set.
template <class F>
PyObject* answer(F&& f) {
  try {
    return nb::object(f()).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

/// Python's own number in the place of a symbolic one; others as they are.
nb::object number(PyObject* o) {
  return is_sym_float(o) ? nb::steal(PyFloat_FromDouble(known_float(o))) : nb::borrow(o);
}

/// An operand of arithmetic that stays symbolic.
struct Operand {
  Tensor value;
  std::vector<int> inputs;
  std::optional<double> example;
};

/// Nothing: not a number that a float is computed with.
std::optional<Operand> operand(PyObject* o) {
  if (is_sym_float(o)) {
    const SymFloatObject& f = cast(o);
    if (!in_its_trace(f)) return std::nullopt;
    return Operand{f.value, f.inputs, f.example};
  }
  if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o) && !PyBool_Check(o)) return std::nullopt;
  const double d = PyFloat_Check(o) ? PyFloat_AS_DOUBLE(o) : PyLong_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) throw nb::python_error();
  return Operand{full(IntList(), d, DType::Float64), {}, d};
}

bool is_number(PyObject* o) { return is_sym_float(o) || (PyNumber_Check(o) && !as_tensor(o)); }

/// Runs f on the tensors as its trace has them, out of autograd's and autocast's sight.
template <class F>
Tensor traced(F&& f) {
  StateGuard<bool> below(&DispatchState::below_autograd, true);
  return f();
}

using Rule = Tensor (*)(const Tensor&, const Tensor&);
Tensor sum(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor difference(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor product(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor quotient(const Tensor& a, const Tensor& b) { return div(a, b); }

template <Rule R, PyObject* (*OnNumbers)(PyObject*, PyObject*)>
PyObject* binary(PyObject* a, PyObject* b) {
  if (!is_number(a) || !is_number(b)) return Py_NewRef(Py_NotImplemented);
  return answer([&]() -> nb::object {
    // Python raises where a divisor is 0, so that it has to be known.
    const bool divides = R == quotient;
    const nb::object right = divides ? number(b) : nb::borrow(b);
    const std::optional<Operand> x = operand(a), y = operand(right.ptr());
    if (!x || !y || (divides && y->example == 0.0))
      return nb::steal(OnNumbers(number(a).ptr(), number(b).ptr()));
    std::optional<double> example;
    if (x->example && y->example) {
      const nb::object result =
          nb::steal(OnNumbers(nb::float_(*x->example).ptr(), nb::float_(*y->example).ptr()));
      if (!result.is_valid()) throw nb::python_error();
      example = PyFloat_AS_DOUBLE(result.ptr());
    }
    std::vector<int> inputs = x->inputs;
    inputs.insert(inputs.end(), y->inputs.begin(), y->inputs.end());
    return symbolic_float(traced([&] { return R(x->value, y->value); }), std::move(inputs), example);
  });
}

template <PyObject* (*F)(PyObject*, PyObject*)>
PyObject* on_numbers(PyObject* a, PyObject* b) {
  if (!is_number(a) || !is_number(b)) return Py_NewRef(Py_NotImplemented);
  return answer([&] { return nb::steal(F(number(a).ptr(), number(b).ptr())); });
}

PyObject* raise_to(PyObject* a, PyObject* b, PyObject* modulus) {
  if (!is_number(a) || !is_number(b)) return Py_NewRef(Py_NotImplemented);
  return answer([&] { return nb::steal(PyNumber_Power(number(a).ptr(), number(b).ptr(), modulus)); });
}

PyObject* itself(PyObject* self) { return Py_NewRef(self); }
PyObject* itself_of(PyObject* self, PyObject*) { return Py_NewRef(self); }

template <Tensor (*F)(const Tensor&), double (*OnNumber)(double), PyObject* (*OnObject)(PyObject*)>
PyObject* unary(PyObject* self) {
  return answer([&] {
    SymFloatObject& f = cast(self);
    if (!in_its_trace(f)) return nb::steal(OnObject(number(self).ptr()));
    return symbolic_float(traced([&] { return F(f.value); }), f.inputs,
                          f.example ? std::optional(OnNumber(*f.example)) : std::nullopt);
  });
}
Tensor negated(const Tensor& t) { return neg(t); }
Tensor absolute(const Tensor& t) { return abs(t); }
double negated_number(double d) { return -d; }
double absolute_number(double d) { return std::fabs(d); }

PyObject* compare(PyObject* self, PyObject* other, int relation) {
  if (!is_number(other)) return Py_NewRef(Py_NotImplemented);
  return answer(
      [&] { return nb::steal(PyObject_RichCompare(number(self).ptr(), number(other).ptr(), relation)); });
}

int truth(PyObject* self) {
  try {
    return known_float(self) != 0;
  } catch (...) {
    raise_in_python(std::current_exception());
    return -1;
  }
}

Py_hash_t hash(PyObject* self) {
  const nb::object n = nb::steal(answer([&] { return number(self); }));
  return n.is_valid() ? PyObject_Hash(n.ptr()) : -1;
}

/// A function of Python's floats on the number.
template <PyObject* (*F)(PyObject*)>
PyObject* on_number(PyObject* self) {
  return answer([&] { return nb::steal(F(number(self).ptr())); });
}
PyObject* plain(PyObject* n) { return Py_NewRef(n); }

/// What float has and SymFloat has not (is_integer, hex, ...) is the number's.
PyObject* attribute(PyObject* self, PyObject* name) {
  if (_PyType_Lookup(sym_float_type, name) || !_PyType_Lookup(&PyFloat_Type, name))
    return PyObject_GenericGetAttr(self, name);
  return answer([&] { return nb::steal(PyObject_GetAttr(number(self).ptr(), name)); });
}

PyObject* formatted(PyObject* self, PyObject* spec) {
  return answer([&] { return nb::steal(PyObject_Format(number(self).ptr(), spec)); });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return answer([&] {
    return nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(&PyFloat_Type)),
                          nb::make_tuple(number(self)));
  });
}

PyObject* rounded(PyObject* self, PyObject* args) {
  return answer([&] { return number(self).attr("__round__")(*nb::borrow<nb::args>(args)); });
}

/// A method that C looks up in the type.
template <const char* name>
PyObject* method(PyObject* self, PyObject*) {
  return answer([&] { return number(self).attr(name)(); });
}
constexpr char kTrunc[] = "__trunc__", kFloor[] = "__floor__", kCeil[] = "__ceil__";

/// isinstance(x, float) is true, as it is of the number in eager mode.
PyObject* python_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyFloat_Type)); }

void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self).value.~Tensor();
  std::destroy_at(&cast(self).inputs);
  PyObject_Free(self);
  Py_DECREF(type);
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyTypeObject* make_type() {
  static PyMethodDef methods[] = {{"__copy__", itself_of, METH_NOARGS, nullptr},
                                  {"__deepcopy__", itself_of, METH_O, nullptr},
                                  {"__round__", rounded, METH_VARARGS, nullptr},
                                  {"__trunc__", method<kTrunc>, METH_NOARGS, nullptr},
                                  {"__floor__", method<kFloor>, METH_NOARGS, nullptr},
                                  {"__ceil__", method<kCeil>, METH_NOARGS, nullptr},
                                  {"__format__", formatted, METH_O, nullptr},
                                  {"__reduce__", reduce, METH_NOARGS, nullptr},
                                  {}};
  static PyGetSetDef properties[] = {{"__class__", python_class, nullptr, nullptr, nullptr}, {}};
  static PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>("A float inside of a traced function that differs from call to call, or follows "
                         "from a tensor. Arithmetic with it, and with tensors, is a part of the graph; "
                         "what needs the number makes the compiled function one for this number.")},
      {Py_tp_dealloc, slot(free_object)},
      {Py_tp_getattro, slot(attribute)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_tp_repr, slot(on_number<PyObject_Repr>)},
      {Py_tp_hash, slot(hash)},
      {Py_tp_richcompare, slot(compare)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_int, slot(on_number<PyNumber_Long>)},
      {Py_nb_float, slot(on_number<plain>)},
      {Py_nb_positive, slot(itself)},
      {Py_nb_negative, slot(unary<negated, negated_number, PyNumber_Negative>)},
      {Py_nb_absolute, slot(unary<absolute, absolute_number, PyNumber_Absolute>)},
      {Py_nb_add, slot(binary<sum, PyNumber_Add>)},
      {Py_nb_subtract, slot(binary<difference, PyNumber_Subtract>)},
      {Py_nb_multiply, slot(binary<product, PyNumber_Multiply>)},
      {Py_nb_true_divide, slot(binary<quotient, PyNumber_TrueDivide>)},
      {Py_nb_floor_divide, slot(on_numbers<PyNumber_FloorDivide>)},
      {Py_nb_remainder, slot(on_numbers<PyNumber_Remainder>)},
      {Py_nb_divmod, slot(on_numbers<PyNumber_Divmod>)},
      {Py_nb_power, slot(raise_to)},
      {}};
  static PyType_Spec spec{"flambeau.SymFloat", sizeof(SymFloatObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

nb::object symbolic_float(const Tensor& value, std::vector<int> inputs, std::optional<double> example) {
  const sym::ShapeEnv* env = sym::ShapeEnv::active();
  FL_CHECK(env, UnsupportedError, "a symbolic float is made outside of a trace");
  auto* o = PyObject_New(SymFloatObject, sym_float_type);
  if (!o) throw nb::python_error();
  new (&o->value) Tensor(value);
  o->env = env->id();
  new (&o->inputs) std::vector<int>(std::move(inputs));
  new (&o->example) std::optional<double>(example);
  return nb::steal(reinterpret_cast<PyObject*>(o));
}

const Tensor& tensor_of_float(PyObject* o) {
  FL_CHECK(in_its_trace(cast(o)), UnsupportedError, "a symbolic float is used outside of its trace");
  return cast(o).value;
}

Tensor number_argument(PyObject* o) {
  return traced([&] { return _as_number(tensor_of_float(o)); });
}

double known_float(PyObject* o) {
  const SymFloatObject& f = cast(o);
  FL_CHECK(
      f.example, UnsupportedError,
      "a number that follows from the elements of a tensor is needed while the function is captured (for a "
      "branch or a comparison, say)");
  if (needed_numbers && in_its_trace(f)) needed_numbers->insert(f.inputs.begin(), f.inputs.end());
  return *f.example;
}

void bind_sym_float(nb::module_& m) {
  sym_float_type = make_type();
  m.attr("SymFloat") = nb::handle(reinterpret_cast<PyObject*>(sym_float_type));
  // A number as a 0-dim tensor of float64, of the graph where it is symbolic.
  m.def("_number_tensor", [](nb::handle h) {
    if (is_sym_float(h.ptr()) && in_its_trace(cast(h.ptr()))) return tensor_of_float(h.ptr());
    const double d = PyFloat_AsDouble(h.ptr());
    if (d == -1 && PyErr_Occurred()) throw nb::python_error();
    return full(IntList(), d, DType::Float64);
  });
}

}  // namespace fl::python
