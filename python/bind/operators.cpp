// Every operator of the table as a function of the module and as a method of Tensor, by one loop. Python's
// operators (+, @, ==, ...) are names of the same table.
#include "flambeau/op/op.h"
#include "module.h"
#include "overloads.h"

#include <structmember.h>  // after Python.h

namespace fl::python {
namespace {

/// How a call's arguments reach the operator.
enum class Role : uint8_t {
  Function,
  Method,
  Infix,      ///< x + y: NotImplemented where the types don't fit
  Reflected,  ///< y + x where y does not know +
};

/// A callable over one name. In a class it binds as a function does.
struct OperatorObject {
  PyObject_HEAD vectorcallfunc call;
  const Overloads* overloads;
  Role role;
  PyObject* doc;
};

PyObject* call_operator(PyObject* self, PyObject* const* values, size_t count, PyObject* keywords) {
  const auto& op = *reinterpret_cast<OperatorObject*>(self);
  CallArguments call{values, static_cast<size_t>(PyVectorcall_NARGS(count)), keywords};
  PyObject* swapped[2];
  try {
    if (op.role >= Role::Infix) {
      if (op.role == Role::Reflected && call.positional == 2) {
        swapped[0] = values[1];
        swapped[1] = values[0];
        call.values = swapped;
      }
      if (!fits(*op.overloads, call, false)) return Py_NewRef(Py_NotImplemented);
    }
    return call_overloads(*op.overloads, call, op.role == Role::Method).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  return object ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* operator_repr(PyObject* self) {
  return PyUnicode_FromFormat("<operator %s>",
                              reinterpret_cast<OperatorObject*>(self)->overloads->name.c_str());
}
PyObject* operator_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<OperatorObject*>(self)->overloads->name.c_str());
}
/// Signatures and documentation, from the table.
PyObject* operator_doc(PyObject* self, void*) {
  std::string text;
  for (const OpInfo* op : reinterpret_cast<OperatorObject*>(self)->overloads->ops)
    text += fmt::format("{}{}\n\n{}", text.empty() ? "" : "\n\n", op->schema.text, op->doc);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

void free_operator(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* operator_type() {
  static PyTypeObject* type = [] {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, call), READONLY, nullptr}, {}};
    static PyGetSetDef properties[] = {{"__name__", operator_name, nullptr, nullptr, nullptr},
                                       {"__qualname__", operator_name, nullptr, nullptr, nullptr},
                                       {"__doc__", operator_doc, nullptr, nullptr, nullptr},
                                       {}};
    static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                  {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
                                  {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(free_operator)},
                                  {Py_tp_members, members},
                                  {Py_tp_getset, properties},
                                  {}};
    static PyType_Spec spec{"flambeau.Operator", sizeof(OperatorObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                            slots};
    PyObject* made = PyType_FromSpec(&spec);
    if (!made) throw nb::python_error();
    return reinterpret_cast<PyTypeObject*>(made);
  }();
  return type;
}

nb::object make_operator(const Overloads& overloads, Role role) {
  auto* o = PyObject_New(OperatorObject, operator_type());
  o->call = call_operator;
  o->overloads = &overloads;
  o->role = role;
  return nb::steal(reinterpret_cast<PyObject*>(o));
}

struct PythonOperator {
  const char* python;
  const char* name;
  Role role = Role::Infix;
};
constexpr PythonOperator kPythonOperators[] = {
    {"__add__", "add"},
    {"__radd__", "add", Role::Reflected},
    {"__sub__", "sub"},
    {"__rsub__", "sub", Role::Reflected},
    {"__mul__", "mul"},
    {"__rmul__", "mul", Role::Reflected},
    {"__truediv__", "div"},
    {"__rtruediv__", "div", Role::Reflected},
    {"__floordiv__", "floor_divide"},
    {"__rfloordiv__", "floor_divide", Role::Reflected},
    {"__mod__", "remainder"},
    {"__rmod__", "remainder", Role::Reflected},
    {"__pow__", "pow"},
    {"__rpow__", "pow", Role::Reflected},
    {"__matmul__", "matmul"},
    {"__rmatmul__", "matmul", Role::Reflected},
    {"__and__", "bitwise_and"},
    {"__rand__", "bitwise_and", Role::Reflected},
    {"__or__", "bitwise_or"},
    {"__ror__", "bitwise_or", Role::Reflected},
    {"__xor__", "bitwise_xor"},
    {"__rxor__", "bitwise_xor", Role::Reflected},
    {"__lshift__", "bitwise_left_shift"},
    {"__rshift__", "bitwise_right_shift"},
    {"__eq__", "eq"},
    {"__ne__", "ne"},
    {"__lt__", "lt"},
    {"__le__", "le"},
    {"__gt__", "gt"},
    {"__ge__", "ge"},
    {"__neg__", "neg"},
    {"__pos__", "positive"},
    {"__abs__", "abs"},
    {"__invert__", "bitwise_not"},
    {"__iadd__", "add_"},
    {"__isub__", "sub_"},
    {"__imul__", "mul_"},
    {"__itruediv__", "div_"},
    {"__ifloordiv__", "floor_divide_"},
    {"__imod__", "remainder_"},
    {"__ipow__", "pow_"},
    {"__iand__", "bitwise_and_"},
    {"__ior__", "bitwise_or_"},
    {"__ixor__", "bitwise_xor_"},
};

bool takes_tensor_first(const Overloads& o) {
  const std::vector<Argument>& args = o.ops[0]->schema.args;
  return !args.empty() && args[0].type == ArgType::Tensor;
}

}  // namespace

void bind_operators(nb::module_& m) {
  const nb::object tensor = m.attr("Tensor");
  const nb::object own = tensor.attr("__dict__");
  for (const Overloads& o : all_overloads()) {
    const char* name = o.name.c_str();
    if (!nb::hasattr(m, name)) m.attr(name) = make_operator(o, Role::Function);
    if (takes_tensor_first(o) && !nb::cast<bool>(own.attr("__contains__")(name)))
      tensor.attr(name) = make_operator(o, Role::Method);
  }
  for (const PythonOperator& p : kPythonOperators)
    tensor.attr(p.python) = make_operator(find_overloads(p.name), p.role);
}

}  // namespace fl::python
