// SymInt: a size that stands for every size a traced function may be called with.
#include "flambeau/sym/shape_env.h"
#include "module.h"

namespace fl::python {

PyTypeObject* sym_int_type = nullptr;

namespace {

/// An integer of a trace. Not a subclass of int: C code reads an int's digits without asking, and the graph
/// would depend on them without a guard.
struct SymIntObject {
  PyObject_HEAD SymInt value;
  uint64_t env;  ///< the trace, by ShapeEnv::id()
  bool has_example;
  int64_t example;
};

/// The expression while its trace runs. What a traced function leaves behind (in an attribute, say) is later
/// the number that it was then, as every other value that it leaves behind.
SymInt value_of(const SymIntObject& o) {
  const sym::ShapeEnv* env = sym::ShapeEnv::active();
  if (env && env->id() == o.env) return o.value;
  FL_CHECK(!sym::ShapeEnv::is_entered(o.env), UnsupportedError,
           "the symbolic size {} of a trace is used in a trace inside of it", o.value);
  FL_CHECK(o.has_example, UnsupportedError,
           "the size {} is known only when the traced program runs, and is used outside of its trace",
           o.value);
  return o.example;
}

bool is_sym_int(PyObject* o) { return Py_TYPE(o) == sym_int_type; }
SymIntObject& cast(PyObject* o) { return *reinterpret_cast<SymIntObject*>(o); }

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

/// The operand without a guard; nothing where it is no integer of 64 bits.
std::optional<SymInt> operand(PyObject* o) {
  if (is_sym_int(o)) return value_of(cast(o));
  if (!PyLong_Check(o)) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return std::nullopt;
  return SymInt(static_cast<int64_t>(value));
}

/// Python's own number in the place of a symbolic one; others as they are.
nb::object number(PyObject* o) {
  if (!is_sym_int(o)) return nb::borrow(o);
  return nb::steal(PyLong_FromLongLong(value_of(cast(o)).guard_int()));
}

/// Whether arithmetic with it is arithmetic on numbers. Tensors and sequences have their own.
bool is_number(PyObject* o) { return is_sym_int(o) || (PyNumber_Check(o) && !as_tensor(o)); }

// The operations that have an expression. Nothing: only the numbers can answer.
using Rule = std::optional<SymInt> (*)(SymInt, SymInt);

std::optional<SymInt> sum(SymInt a, SymInt b) { return a + b; }
std::optional<SymInt> difference(SymInt a, SymInt b) { return a - b; }
std::optional<SymInt> product(SymInt a, SymInt b) { return a * b; }
std::optional<SymInt> larger(SymInt a, SymInt b) { return max(a, b); }
std::optional<SymInt> smaller(SymInt a, SymInt b) { return min(a, b); }
// Expressions divide by positive numbers only; which one this is has a guard.
std::optional<SymInt> quotient(SymInt a, SymInt b) {
  if (b == SymInt(0)) return std::nullopt;
  return b > SymInt(0) ? a / b : (-a) / (-b);
}
std::optional<SymInt> remainder(SymInt a, SymInt b) {
  if (b == SymInt(0)) return std::nullopt;
  return b > SymInt(0) ? a % b : -((-a) % (-b));
}
std::optional<SymInt> power_of_two(SymInt exponent) {
  if (exponent.is_symbolic() || exponent.raw() < 0 || exponent.raw() > 62) return std::nullopt;
  return SymInt(int64_t{1} << exponent.raw());
}
std::optional<SymInt> shifted_left(SymInt a, SymInt by) {
  const auto factor = power_of_two(by);
  return factor ? std::optional(a * *factor) : std::nullopt;
}
std::optional<SymInt> shifted_right(SymInt a, SymInt by) {
  const auto divisor = power_of_two(by);
  return divisor ? std::optional(a / *divisor) : std::nullopt;
}
std::optional<SymInt> power(SymInt a, SymInt exponent) {
  constexpr int64_t kMostFactors = 8;
  if (exponent.is_symbolic() || exponent.raw() < 0 || exponent.raw() > kMostFactors) return std::nullopt;
  SymInt out = 1;
  for (int64_t k = 0; k < exponent.raw(); ++k) out *= a;
  return out;
}
std::optional<SymInt> no_rule(SymInt, SymInt) { return std::nullopt; }

/// The result as an object, or null where Python's integers have to answer: no rule, or more than 64 bits.
nb::object symbolic_result(Rule rule, PyObject* a, PyObject* b) {
  const std::optional<SymInt> x = operand(a), y = operand(b);
  if (!x || !y) return {};
  try {
    const std::optional<SymInt> result = rule(*x, *y);
    return result ? integer(*result) : nb::object();
  } catch (const UnsupportedError&) {
    throw;
  } catch (const RuntimeError&) {  // overflow
    return {};
  }
}

template <Rule R, PyObject* (*OnNumbers)(PyObject*, PyObject*)>
PyObject* binary(PyObject* a, PyObject* b) {
  if (!is_number(a) || !is_number(b)) return Py_NewRef(Py_NotImplemented);
  return answer([&] {
    nb::object out = symbolic_result(R, a, b);
    return out.is_valid() ? out : nb::steal(OnNumbers(number(a).ptr(), number(b).ptr()));
  });
}

PyObject* raise_to(PyObject* a, PyObject* b, PyObject* modulus) {
  if (!is_number(a) || !is_number(b)) return Py_NewRef(Py_NotImplemented);
  return answer([&] {
    nb::object out = modulus == Py_None ? symbolic_result(power, a, b) : nb::object();
    return out.is_valid()
               ? out
               : nb::steal(PyNumber_Power(number(a).ptr(), number(b).ptr(), number(modulus).ptr()));
  });
}

PyObject* divide_with_remainder(PyObject* a, PyObject* b) {
  if (!is_number(a) || !is_number(b)) return Py_NewRef(Py_NotImplemented);
  return answer([&] {
    const nb::object q = nb::steal(PyNumber_FloorDivide(a, b));
    const nb::object r = q.is_valid() ? nb::steal(PyNumber_Remainder(a, b)) : nb::object();
    return r.is_valid() ? nb::object(nb::make_tuple(q, r)) : nb::object();
  });
}

template <SymInt (*F)(SymInt)>
PyObject* unary(PyObject* self) {
  return answer([&] { return integer(F(value_of(cast(self)))); });
}
SymInt same(SymInt i) { return i; }
SymInt negative(SymInt i) { return -i; }
SymInt absolute(SymInt i) { return i < SymInt(0) ? -i : i; }
SymInt inverted(SymInt i) { return SymInt(-1) - i; }

bool holds(SymInt a, SymInt b, int relation) {
  switch (relation) {
    case Py_LT:
      return a < b;
    case Py_LE:
      return a <= b;
    case Py_EQ:
      return a == b;
    case Py_NE:
      return a != b;
    case Py_GT:
      return a > b;
    default:
      return a >= b;
  }
}

PyObject* compare(PyObject* self, PyObject* other, int relation) {
  if (!is_number(other)) return Py_NewRef(Py_NotImplemented);
  return answer([&]() -> nb::object {
    if (const std::optional<SymInt> b = operand(other))
      return nb::bool_(holds(value_of(cast(self)), *b, relation));
    return nb::steal(PyObject_RichCompare(number(self).ptr(), other, relation));
  });
}

int truth(PyObject* self) {
  try {
    return value_of(cast(self)) != SymInt(0);
  } catch (...) {
    raise_in_python(std::current_exception());
    return -1;
  }
}

Py_hash_t hash(PyObject* self) {
  const nb::object n = nb::steal(answer([&] { return number(self); }));
  return n.is_valid() ? PyObject_Hash(n.ptr()) : -1;
}

/// A function of Python's integers on the number.
template <PyObject* (*F)(PyObject*)>
PyObject* on_number(PyObject* self) {
  return answer([&] { return nb::steal(F(number(self).ptr())); });
}
PyObject* plain(PyObject* n) { return Py_NewRef(n); }

/// What int has and SymInt has not (bit_length, numerator, ...) is the number's.
PyObject* attribute(PyObject* self, PyObject* name) {
  if (_PyType_Lookup(sym_int_type, name) || !_PyType_Lookup(&PyLong_Type, name))
    return PyObject_GenericGetAttr(self, name);
  return answer([&] { return nb::steal(PyObject_GetAttr(number(self).ptr(), name)); });
}

PyObject* itself(PyObject* self, PyObject*) { return unary<same>(self); }

PyObject* rounded(PyObject* self, PyObject* args) {
  if (PyTuple_GET_SIZE(args) == 0) return unary<same>(self);
  return answer([&] { return number(self).attr("__round__")(*nb::borrow<nb::args>(args)); });
}

PyObject* formatted(PyObject* self, PyObject* spec) {
  return answer([&] { return nb::steal(PyObject_Format(number(self).ptr(), spec)); });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return answer([&] {
    return nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)),
                          nb::make_tuple(number(self)));
  });
}

/// isinstance(n, int) is true, as it is of the size in eager mode.
PyObject* python_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyLong_Type)); }

void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyTypeObject* make_type() {
  static PyMethodDef methods[] = {{"__round__", rounded, METH_VARARGS, nullptr},
                                  {"__floor__", itself, METH_NOARGS, nullptr},
                                  {"__ceil__", itself, METH_NOARGS, nullptr},
                                  {"__trunc__", itself, METH_NOARGS, nullptr},
                                  {"__copy__", itself, METH_NOARGS, nullptr},
                                  {"__deepcopy__", itself, METH_O, nullptr},
                                  {"__format__", formatted, METH_O, nullptr},
                                  {"__reduce__", reduce, METH_NOARGS, nullptr},
                                  {}};
  static PyGetSetDef properties[] = {{"__class__", python_class, nullptr, nullptr, nullptr}, {}};
  static PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>("A size inside of a traced function: an expression over the sizes of its "
                         "inputs. Arithmetic makes expressions; what needs the number (a comparison, "
                         "int(), a hash) makes the compiled function one for sizes that give the same.")},
      {Py_tp_dealloc, slot(free_object)},
      {Py_tp_getattro, slot(attribute)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_tp_repr, slot(on_number<PyObject_Repr>)},
      {Py_tp_hash, slot(hash)},
      {Py_tp_richcompare, slot(compare)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_int, slot(on_number<plain>)},
      {Py_nb_index, slot(on_number<plain>)},
      {Py_nb_float, slot(on_number<PyNumber_Float>)},
      {Py_nb_positive, slot(unary<same>)},
      {Py_nb_negative, slot(unary<negative>)},
      {Py_nb_absolute, slot(unary<absolute>)},
      {Py_nb_invert, slot(unary<inverted>)},
      {Py_nb_add, slot(binary<sum, PyNumber_Add>)},
      {Py_nb_subtract, slot(binary<difference, PyNumber_Subtract>)},
      {Py_nb_multiply, slot(binary<product, PyNumber_Multiply>)},
      {Py_nb_floor_divide, slot(binary<quotient, PyNumber_FloorDivide>)},
      {Py_nb_remainder, slot(binary<remainder, PyNumber_Remainder>)},
      {Py_nb_divmod, slot(divide_with_remainder)},
      {Py_nb_true_divide, slot(binary<no_rule, PyNumber_TrueDivide>)},
      {Py_nb_power, slot(raise_to)},
      {Py_nb_lshift, slot(binary<shifted_left, PyNumber_Lshift>)},
      {Py_nb_rshift, slot(binary<shifted_right, PyNumber_Rshift>)},
      {Py_nb_and, slot(binary<no_rule, PyNumber_And>)},
      {Py_nb_or, slot(binary<no_rule, PyNumber_Or>)},
      {Py_nb_xor, slot(binary<no_rule, PyNumber_Xor>)},
      {}};
  static PyType_Spec spec{"flambeau.SymInt", sizeof(SymIntObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

/// max or min of two numbers, without a guard where both are integers.
template <Rule R, int Relation>
nb::object choose(nb::handle a, nb::handle b) {
  nb::object out = symbolic_result(R, a.ptr(), b.ptr());
  if (out.is_valid()) return out;
  const nb::object first = number(a.ptr()), second = number(b.ptr());
  const int other = PyObject_RichCompareBool(second.ptr(), first.ptr(), Relation);
  if (other < 0) throw nb::python_error();
  return other ? second : first;
}

}  // namespace

nb::object symbolic_integer(SymInt i) {
  const sym::ShapeEnv* env = sym::ShapeEnv::active();
  const sym::Expr e = env ? env->simplify(i.expr()) : i.expr();
  if (e.is_const()) return nb::steal(PyLong_FromLongLong(e.value()));
  FL_CHECK(env, UnsupportedError, "the symbolic size {} is read outside of its trace", i);
  const std::optional<int64_t> example = env->hint(e);
  auto* o = PyObject_New(SymIntObject, sym_int_type);
  if (!o) throw nb::python_error();
  o->value = e;
  o->env = env->id();
  o->has_example = example.has_value();
  o->example = example.value_or(0);
  return nb::steal(reinterpret_cast<PyObject*>(o));
}

std::optional<SymInt> as_symbolic_integer(nb::handle h) {
  return is_sym_int(h.ptr()) ? std::optional(value_of(cast(h.ptr()))) : std::nullopt;
}

void bind_sym_int(nb::module_& m) {
  sym_int_type = make_type();
  m.attr("SymInt") = nb::handle(reinterpret_cast<PyObject*>(sym_int_type));
  m.def("_sym_max", choose<larger, Py_GT>);
  m.def("_sym_min", choose<smaller, Py_LT>);
}

}  // namespace fl::python
