// Every operator of the table as a function of the module and as a method of Tensor, by one loop. Python's
// operators (+, @, ==, ...) are names of the same table.
#include "operators.h"

#include <nanobind/stl/string.h>

#include "flambeau/op/op.h"
#include "module.h"
#include "overloads.h"
#include "torch_function.h"

#include <structmember.h>  // after Python.h

namespace fl::python {
namespace {

/// A callable over one name, or over a function of Python; either asks __torch_function__ first. In a class
/// it binds as a function does.
struct OperatorObject {
  PyObject_HEAD vectorcallfunc call;
  const Overloads* overloads;  ///< null: a function of Python
  PyObject* function;          ///< null: an operator
  PyObject* name;
  bool method;
  PyObject* dict;
};

OperatorObject& cast(PyObject* self) { return *reinterpret_cast<OperatorObject*>(self); }

PyObject* call_operator(PyObject* self, PyObject* const* values, size_t count, PyObject* keywords) {
  const OperatorObject& op = cast(self);
  const CallArguments call{values, static_cast<size_t>(PyVectorcall_NARGS(count)), keywords};
  try {
    if (has_torch_function(call)) return handle_torch_function(self, call).release().ptr();
    if (op.function) return PyObject_Vectorcall(op.function, values, count, keywords);
    return call_overloads(*op.overloads, call, op.method).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  return object ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* operator_repr(PyObject* self) {
  return PyUnicode_FromFormat(cast(self).method ? "<method '%U' of 'Tensor' objects>" : "<function %U>",
                              cast(self).name);
}
PyObject* operator_name(PyObject* self, void*) { return Py_NewRef(cast(self).name); }
PyObject* operator_qualified_name(PyObject* self, void*) {
  return PyUnicode_FromFormat(cast(self).method ? "Tensor.%U" : "%U", cast(self).name);
}
PyObject* operator_module(PyObject* self, void*) {
  if (cast(self).function) return PyObject_GetAttrString(cast(self).function, "__module__");
  return PyUnicode_FromString("flambeau");
}
PyObject* operator_wrapped(PyObject* self, void*) {
  if (cast(self).function) return Py_NewRef(cast(self).function);
  PyErr_SetString(PyExc_AttributeError, "__wrapped__");
  return nullptr;
}
/// Signatures and documentation, from the table.
PyObject* operator_doc(PyObject* self, void*) {
  if (cast(self).function) return PyObject_GetAttrString(cast(self).function, "__doc__");
  std::string text;
  for (const OpInfo* op : cast(self).overloads->ops)
    text += fmt::format("{}{}\n\n{}", text.empty() ? "" : "\n\n", op->schema.text, op->doc);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
/// Pickled by name.
PyObject* operator_reduce(PyObject* self, PyObject*) { return operator_qualified_name(self, nullptr); }

void free_operator(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(cast(self).function);
  Py_CLEAR(cast(self).name);
  Py_CLEAR(cast(self).dict);
  type->tp_free(self);
  Py_DECREF(type);
}
int traverse_operator(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self).function);
  Py_VISIT(cast(self).dict);
  return 0;
}
int clear_operator(PyObject* self) {
  Py_CLEAR(cast(self).dict);
  return 0;
}

PyTypeObject* operator_type() {
  static PyTypeObject* type = [] {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, call), READONLY, nullptr},
        {"__dictoffset__", T_PYSSIZET, offsetof(OperatorObject, dict), READONLY, nullptr},
        {}};
    static PyGetSetDef properties[] = {{"__name__", operator_name, nullptr, nullptr, nullptr},
                                       {"__qualname__", operator_qualified_name, nullptr, nullptr, nullptr},
                                       {"__module__", operator_module, nullptr, nullptr, nullptr},
                                       {"__wrapped__", operator_wrapped, nullptr, nullptr, nullptr},
                                       {"__doc__", operator_doc, nullptr, nullptr, nullptr},
                                       {"__dict__", PyObject_GenericGetDict, nullptr, nullptr, nullptr},
                                       {}};
    static PyMethodDef methods[] = {{"__reduce__", operator_reduce, METH_NOARGS, nullptr}, {}};
    static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                  {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
                                  {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(free_operator)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(traverse_operator)},
                                  {Py_tp_clear, reinterpret_cast<void*>(clear_operator)},
                                  {Py_tp_members, members},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, properties},
                                  {}};
    static PyType_Spec spec{
        "flambeau.Operator", sizeof(OperatorObject), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC,
        slots};
    PyObject* made = PyType_FromSpec(&spec);
    if (!made) throw nb::python_error();
    return reinterpret_cast<PyTypeObject*>(made);
  }();
  return type;
}

nb::object make_operator(const Overloads* overloads, nb::handle function, const char* name, bool method) {
  auto* o = PyObject_GC_New(OperatorObject, operator_type());
  if (!o) throw nb::python_error();
  o->call = call_operator;
  o->overloads = overloads;
  o->function = function.is_valid() ? Py_NewRef(function.ptr()) : nullptr;
  o->name = PyUnicode_InternFromString(name);
  o->method = method;
  o->dict = nullptr;
  PyObject_GC_Track(o);
  return nb::steal(reinterpret_cast<PyObject*>(o));
}

/// A name of the table that stands behind an operator of Python.
struct InfixOperator {
  int slot;
  const char* python;
  const char* reflected;
  const char* name;
};
constexpr InfixOperator kInfix[] = {
    {Py_nb_add, "__add__", "__radd__", "add"},
    {Py_nb_subtract, "__sub__", "__rsub__", "sub"},
    {Py_nb_multiply, "__mul__", "__rmul__", "mul"},
    {Py_nb_true_divide, "__truediv__", "__rtruediv__", "div"},
    {Py_nb_floor_divide, "__floordiv__", "__rfloordiv__", "floor_divide"},
    {Py_nb_remainder, "__mod__", "__rmod__", "remainder"},
    {Py_nb_matrix_multiply, "__matmul__", "__rmatmul__", "matmul"},
    {Py_nb_and, "__and__", "__rand__", "bitwise_and"},
    {Py_nb_or, "__or__", "__ror__", "bitwise_or"},
    {Py_nb_xor, "__xor__", "__rxor__", "bitwise_xor"},
    {Py_nb_lshift, "__lshift__", "__rlshift__", "bitwise_left_shift"},
    {Py_nb_rshift, "__rshift__", "__rrshift__", "bitwise_right_shift"},
    {Py_nb_inplace_add, "__iadd__", nullptr, "add_"},
    {Py_nb_inplace_subtract, "__isub__", nullptr, "sub_"},
    {Py_nb_inplace_multiply, "__imul__", nullptr, "mul_"},
    {Py_nb_inplace_true_divide, "__itruediv__", nullptr, "div_"},
    {Py_nb_inplace_floor_divide, "__ifloordiv__", nullptr, "floor_divide_"},
    {Py_nb_inplace_remainder, "__imod__", nullptr, "remainder_"},
    {Py_nb_inplace_and, "__iand__", nullptr, "bitwise_and_"},
    {Py_nb_inplace_or, "__ior__", nullptr, "bitwise_or_"},
    {Py_nb_inplace_xor, "__ixor__", nullptr, "bitwise_xor_"},
    {Py_nb_inplace_lshift, "__ilshift__", nullptr, "bitwise_left_shift_"},
    {Py_nb_inplace_rshift, "__irshift__", nullptr, "bitwise_right_shift_"},
};
constexpr int kInfixCount = std::size(kInfix);
constexpr InfixOperator kPower{Py_nb_power, "__pow__", "__rpow__", "pow"};
constexpr InfixOperator kPowerInPlace{Py_nb_inplace_power, "__ipow__", nullptr, "pow_"};
constexpr InfixOperator kPrefix[] = {{Py_nb_negative, "__neg__", nullptr, "neg"},
                                     {Py_nb_positive, "__pos__", nullptr, "positive"},
                                     {Py_nb_absolute, "__abs__", nullptr, "abs"},
                                     {Py_nb_invert, "__invert__", nullptr, "bitwise_not"}};
constexpr const char* kComparisons[] = {"lt", "le", "eq", "ne", "gt", "ge"};  ///< as Py_LT, ... are numbered

/// What __torch_function__ gets for x + y: the descriptor of the class, self first.
nb::object handle_infix(const InfixOperator& op, PyObject* const* values, size_t count) {
  const nb::handle type = reinterpret_cast<PyObject*>(tensor_type);
  if (count == 2 && op.reflected && !as_tensor(values[0])) {
    PyObject* swapped[] = {values[1], values[0]};
    return handle_torch_function(type.attr(op.reflected), {swapped, 2, nullptr});
  }
  return handle_torch_function(type.attr(op.python), {values, count, nullptr});
}

PyObject* apply(const InfixOperator& op, const Overloads& overloads, PyObject* const* values, size_t count) {
  const CallArguments call{values, count, nullptr};
  try {
    if (has_torch_function(call)) return handle_infix(op, values, count).release().ptr();
    return call_infix(overloads, call).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

template <const InfixOperator& Op>
struct InfixFunction {
  static PyObject* call(PyObject* a, PyObject* b) {
    PyObject* values[] = {a, b};
    return apply(Op, overloads(), values, 2);
  }
  static PyObject* call_ternary(PyObject* a, PyObject* b, PyObject* modulus) {
    return modulus == Py_None ? call(a, b) : Py_NewRef(Py_NotImplemented);
  }
  static PyObject* call_unary(PyObject* a) { return apply(Op, overloads(), &a, 1); }

 private:
  static const Overloads& overloads() {
    static const Overloads& found = find_overloads(Op.name);
    return found;
  }
};

PyObject* compare(PyObject* a, PyObject* b, int how) {
  PyObject* values[] = {a, b};
  const CallArguments call{values, 2, nullptr};
  const char* name = kComparisons[how];
  try {
    if (has_torch_function(call)) {
      const std::string python = std::string("__") + name + "__";
      const nb::handle type = reinterpret_cast<PyObject*>(tensor_type);
      return handle_torch_function(type.attr(python.c_str()), call).release().ptr();
    }
    return call_infix(find_overloads(name), call).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(as_tensor(self)->impl()) >> 4);
}

/// Whether x.name(...) means the operator with x as `self`.
bool is_method(const Overloads& o) {
  return std::any_of(o.ops.begin(), o.ops.end(), [](const OpInfo* op) { return self_position(*op) >= 0; });
}

/// A second name for an operator, or a function of Python with the checks of an operator.
nb::object alias_of(nb::handle op, const std::string& name) {
  FL_CHECK(Py_TYPE(op.ptr()) == operator_type(), TypeError, "_alias(): expected an operator, got {}",
           python_type(op));
  const OperatorObject& o = cast(op.ptr());
  return make_operator(o.overloads, o.function, name.c_str(), o.method);
}

}  // namespace

void add_number_slots(std::vector<PyType_Slot>& slots) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    (slots.push_back({kInfix[K].slot, reinterpret_cast<void*>(InfixFunction<kInfix[K]>::call)}), ...);
  }
  (std::make_index_sequence<kInfixCount>{});
  slots.push_back({Py_nb_power, reinterpret_cast<void*>(InfixFunction<kPower>::call_ternary)});
  slots.push_back({Py_nb_inplace_power, reinterpret_cast<void*>(InfixFunction<kPowerInPlace>::call_ternary)});
  [&]<size_t... K>(std::index_sequence<K...>) {
    (slots.push_back({kPrefix[K].slot, reinterpret_cast<void*>(InfixFunction<kPrefix[K]>::call_unary)}), ...);
  }
  (std::make_index_sequence<std::size(kPrefix)>{});
  slots.push_back({Py_tp_richcompare, reinterpret_cast<void*>(compare)});
  slots.push_back({Py_tp_hash, reinterpret_cast<void*>(hash)});
}

void bind_operators(nb::module_& m) {
  m.def("_result_type", named_result_type, nb::arg("name"));
  const nb::object tensor = m.attr("Tensor");
  const nb::object own = tensor.attr("__dict__");
  for (const Overloads& o : all_overloads()) {
    const char* name = o.name.c_str();
    if (!nb::hasattr(m, name)) m.attr(name) = make_operator(&o, {}, name, false);
    if (is_method(o) && !nb::cast<bool>(own.attr("__contains__")(name)))
      tensor.attr(name) = make_operator(&o, {}, name, true);
  }
  m.attr("_Operator") = nb::handle(reinterpret_cast<PyObject*>(operator_type()));
  m.def("_alias", alias_of);
  m.def("_dispatched", [](nb::handle function, const std::string& name, bool method) {
    return make_operator(nullptr, function, name.c_str(), method);
  });
}

}  // namespace fl::python
