// Operators, attributes, names, containers.
#include "run.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {

Status Run::operators(const Instruction& i) {
  switch (i.op) {
    case Op::UnaryPositive:
    case Op::UnaryNegative:
    case Op::UnaryInvert: {
      PyObject* o = peek(1);
      if (world && !world->may_use(o)) return Status::Error;
      const auto run = [&] {
        return checked(i.op == Op::UnaryPositive   ? PyNumber_Positive(o)
                       : i.op == Op::UnaryNegative ? PyNumber_Negative(o)
                                                   : PyNumber_Invert(o));
      };
      const char* as = i.op == Op::UnaryPositive ? "pos" : i.op == Op::UnaryNegative ? "neg" : "invert";
      return replace(1, world ? world->operation(as, {o}, run) : run());
    }
    case Op::UnaryNot: {
      const int t = truth(pop());
      return t < 0 ? Status::Error : push_new(t ? Py_False : Py_True);
    }
    case Op::BinaryOp:
      return binary(i);
    case Op::CompareOp:
      return compare(i);
    case Op::IsOp: {
      PyObject *a = peek(2), *b = peek(1);
      PyObject* r = world ? world->compare_identity(a, b, i.arg) : PyBool_FromLong((a == b) != (i.arg != 0));
      return replace(2, r);
    }
    case Op::ContainsOp: {
      PyObject *item = peek(2), *container = peek(1);
      if (world && !world->may_use(item, container)) return Status::Error;
      const int r = checked(PySequence_Contains(container, item));
      return replace(2, r < 0 ? nullptr : PyBool_FromLong((r != 0) != (i.arg != 0)));
    }
    case Op::ToBool: {
      const int t = truth(pop());
      return t < 0 ? Status::Error : push_new(t ? Py_True : Py_False);
    }
    case Op::BinarySubscr:
      return replace(2, subscript(peek(2), peek(1)));
    case Op::StoreSubscr: {
      const int r = store_subscript(peek(2), peek(1), peek(3));
      for (int k = 0; k < 3; ++k) Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::BinarySlice:
    case Op::StoreSlice:
      return slice(i);
    case Op::DeleteSubscr: {
      PyObject *o = peek(2), *key = peek(1);
      if (world && !world->may_use(o, key)) return Status::Error;
      const int r = checked(PyObject_DelItem(o, key));
      for (int k = 0; k < 2; ++k) Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    default:
      return Status::Other;
  }
}

namespace {

PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* power_in_place(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

struct BinaryOperator {
  binaryfunc run;
  const char* name;  ///< in the module operator
};

// In the order of the argument of BINARY_OP.
constexpr BinaryOperator kBinary[] = {
    {PyNumber_Add, "add"},
    {PyNumber_And, "and_"},
    {PyNumber_FloorDivide, "floordiv"},
    {PyNumber_Lshift, "lshift"},
    {PyNumber_MatrixMultiply, "matmul"},
    {PyNumber_Multiply, "mul"},
    {PyNumber_Remainder, "mod"},
    {PyNumber_Or, "or_"},
    {power, "pow"},
    {PyNumber_Rshift, "rshift"},
    {PyNumber_Subtract, "sub"},
    {PyNumber_TrueDivide, "truediv"},
    {PyNumber_Xor, "xor"},
    {PyNumber_InPlaceAdd, "iadd"},
    {PyNumber_InPlaceAnd, "iand"},
    {PyNumber_InPlaceFloorDivide, "ifloordiv"},
    {PyNumber_InPlaceLshift, "ilshift"},
    {PyNumber_InPlaceMatrixMultiply, "imatmul"},
    {PyNumber_InPlaceMultiply, "imul"},
    {PyNumber_InPlaceRemainder, "imod"},
    {PyNumber_InPlaceOr, "ior"},
    {power_in_place, "ipow"},
    {PyNumber_InPlaceRshift, "irshift"},
    {PyNumber_InPlaceSubtract, "isub"},
    {PyNumber_InPlaceTrueDivide, "itruediv"},
    {PyNumber_InPlaceXor, "ixor"},
};

}  // namespace

Status Run::binary(const Instruction& i) {
  PyObject *a = peek(2), *b = peek(1);
  if (world && !world->may_use(a, b)) return Status::Error;
  if (world && PyUnicode_Check(a) && kBinary[i.arg].run == PyNumber_Remainder && !world->may_show(b))
    return Status::Error;
  const auto run = [&] { return checked(kBinary[i.arg].run(a, b)); };
  return replace(2, world ? world->operation(kBinary[i.arg].name, {a, b}, run) : run());
}

Status Run::compare(const Instruction& i) {
  PyObject *a = peek(2), *b = peek(1);
  if (world && !world->may_use(a, b)) return Status::Error;
  static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  const int which = i.arg & 7;
  const auto run = [&] { return checked(PyObject_RichCompare(a, b, which)); };
  const Status s = replace(2, world ? world->operation(kNames[which], {a, b}, run) : run());
  if (s != Status::Next || !(i.arg & 8)) return s;
  const int t = truth(pop());
  return t < 0 ? Status::Error : push_new(t ? Py_True : Py_False);
}

PyObject* Run::subscript(PyObject* o, PyObject* key) {
  return world ? world->subscript(o, key) : PyObject_GetItem(o, key);
}

int Run::store_subscript(PyObject* o, PyObject* key, PyObject* value) {
  if (!world) return PyObject_SetItem(o, key, value);
  if (!world->may_use(o, key)) return -1;
  const nb::object done = nb::steal(world->operation("setitem", {o, key, value}, [&]() -> PyObject* {
    return checked(PyObject_SetItem(o, key, value)) < 0 ? nullptr : Py_NewRef(Py_None);
  }));
  return done.is_valid() ? 0 : -1;
}

// o[start:stop], or value, o, start, stop: o[start:stop] = value
Status Run::slice(const Instruction& i) {
  PyObject* key = PySlice_New(peek(2), peek(1), nullptr);
  if (!key) return Status::Error;
  if (i.op == Op::BinarySlice) {
    PyObject* r = subscript(peek(3), key);
    Py_DECREF(key);
    return replace(3, r);
  }
  const int r = store_subscript(peek(3), key, peek(4));
  Py_DECREF(key);
  for (int k = 0; k < 4; ++k) Py_DECREF(pop());
  return r < 0 ? Status::Error : Status::Next;
}

PyObject* Run::get_attribute(PyObject* o, PyObject* attribute) {
  return world ? world->getattr(o, attribute) : PyObject_GetAttr(o, attribute);
}

Status Run::attributes(const Instruction& i) {
  switch (i.op) {
    case Op::LoadAttr:
      return replace(1, get_attribute(peek(1), name(i.arg)));
    case Op::LoadMethod:
      return load_method(i);
    case Op::LoadSuperAttr:
      return load_super(i);
    case Op::StoreAttr: {
      PyObject *o = peek(1), *value = peek(2);
      const int r = world ? world->setattr(o, name(i.arg), value) : PyObject_SetAttr(o, name(i.arg), value);
      for (int k = 0; k < 2; ++k) Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::DeleteAttr: {
      PyObject* o = peek(1);
      const int r = world ? world->setattr(o, name(i.arg), nullptr) : PyObject_DelAttr(o, name(i.arg));
      Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    default:
      return names(i);
  }
}

Status Run::load_method(const Instruction& i) {
  PyObject* o = pop();
  bool unbound = false;
  PyObject* method = nullptr;
  if (world)
    method = world->get_method(o, name(i.arg), &unbound);
  else
    unbound = _PyObject_GetMethod(o, name(i.arg), &method) == 1;
  if (!method) {
    Py_DECREF(o);
    return Status::Error;
  }
  if (unbound) {
    push(method);
    push(o);
  } else {
    Py_DECREF(o);
    push_callable(method);
  }
  return Status::Next;
}

// super, type, self -> an attribute
Status Run::load_super(const Instruction& i) {
  PyObject* operands[] = {nullptr, peek(2), peek(1)};
  PyObject* f = peek(3);
  // super() finds type and self in the frame, where a capture may have others.
  const bool given = i.arg & 2 || (world && f == reinterpret_cast<PyObject*>(&PySuper_Type));
  PyObject* super = call_object(f, operands + 1, given ? 2 : 0, nullptr);
  PyObject* found = super ? get_attribute(super, name(i.arg >> 2)) : nullptr;
  Py_XDECREF(super);
  for (int k = 0; k < 3; ++k) Py_DECREF(pop());
  if (!found || !(i.arg & 1)) return push_result(found);
  push_callable(found);
  return Status::Next;
}

namespace {

PyObject* global_of(Frame* f, PyObject* name) {
  PyObject* o = PyDict_GetItemWithError(f->f_globals, name);
  if (!o && !PyErr_Occurred())
    o = PyObject_GetItem(f->f_builtins, name);
  else
    Py_XINCREF(o);
  if (!o && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_KeyError)))
    PyErr_Format(PyExc_NameError, "name '%U' is not defined", name);
  return o;
}

PyObject* import_from(PyObject* module, PyObject* name) {
  PyObject* o = PyObject_GetAttr(module, name);
  if (o || !PyErr_ExceptionMatches(PyExc_AttributeError)) return o;
  PyErr_Clear();
  PyObject* package = PyObject_GetAttrString(module, "__name__");
  PyObject* full = package ? PyUnicode_FromFormat("%U.%U", package, name) : nullptr;
  o = full ? PyImport_GetModule(full) : nullptr;
  if (!o && !PyErr_Occurred())
    PyErr_Format(PyExc_ImportError, "cannot import name '%U' from '%U'", name, package);
  Py_XDECREF(package);
  Py_XDECREF(full);
  return o;
}

}  // namespace

Status Run::names(const Instruction& i) {
  switch (i.op) {
    case Op::LoadGlobal: {
      PyObject* n = name(i.arg >> 1);
      PyObject* o = world ? world->global(frame, n) : global_of(frame, n);
      if (!o || !(i.arg & 1)) return push_result(o);
      push_callable(o);
      return Status::Next;
    }
    case Op::StoreGlobal: {
      PyObject* value = pop();
      const int r = world ? world->set_global(frame, name(i.arg), value)
                          : PyDict_SetItem(frame->f_globals, name(i.arg), value);
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::DeleteGlobal:
      if ((world ? world->set_global(frame, name(i.arg), nullptr)
                 : PyDict_DelItem(frame->f_globals, name(i.arg))) < 0) {
        if (!world) PyErr_Format(PyExc_NameError, "name '%U' is not defined", name(i.arg));
        return Status::Error;
      }
      return Status::Next;
    case Op::LoadName:  // the body of a class
    case Op::LoadFromDictOrGlobals: {
      PyObject* mapping = i.op == Op::LoadName ? Py_XNewRef(frame->f_locals) : pop();
      PyObject* o = item_of(mapping, name(i.arg));
      Py_XDECREF(mapping);
      if (o || PyErr_Occurred()) return push_result(o);
      return push_result(world ? world->global(frame, name(i.arg)) : global_of(frame, name(i.arg)));
    }
    case Op::LoadLocals:
      return frame->f_locals ? push_new(frame->f_locals) : Status::Other;
    case Op::StoreName: {
      PyObject* value = pop();
      const int r = frame->f_locals ? PyObject_SetItem(frame->f_locals, name(i.arg), value) : -1;
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::ImportName: {
      PyObject *from = peek(1), *level = peek(2);
      PyObject* module =
          world ? world->import_name(frame, name(i.arg), from, level)
                : PyImport_ImportModuleLevelObject(name(i.arg), frame->f_globals, frame->f_locals, from,
                                                   static_cast<int>(PyLong_AsLong(level)));
      return replace(2, module);
    }
    case Op::ImportFrom:
      return push_result(world ? world->getattr(peek(1), name(i.arg)) : import_from(peek(1), name(i.arg)));
    default:
      return Status::Other;
  }
}

Status Run::containers(const Instruction& i) {
  switch (i.op) {
    case Op::ListAppend: {
      PyObject* value = pop();
      const int r = PyList_Append(peek(i.arg), value);
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::SetAdd: {
      PyObject* value = pop();
      const int r = checked(PySet_Add(peek(i.arg), value));
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::MapAdd: {
      PyObject *value = pop(), *key = pop();
      const int r = checked(PyDict_SetItem(peek(i.arg), key, value));
      Py_DECREF(value);
      Py_DECREF(key);
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::ListExtend:
    case Op::SetUpdate:
    case Op::DictUpdate:
    case Op::DictMerge: {
      PyObject* more = peek(1);
      PyObject* target = peek(i.arg + 1);
      if (world && !world->may_use(more)) return Status::Error;
      int r = -1;
      if (i.op == Op::ListExtend) {
        PyObject* done = PySequence_InPlaceConcat(target, more);  // a list's: it extends
        r = done ? 0 : -1;
        Py_XDECREF(done);
        if (!done && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(more)->tp_iter &&
            !PySequence_Check(more))
          PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                       Py_TYPE(more)->tp_name);
      } else if (i.op == Op::SetUpdate) {
        r = _PySet_Update(target, more);
      } else if (i.op == Op::DictUpdate) {
        r = PyDict_Update(target, more);
        if (r < 0 && PyErr_ExceptionMatches(PyExc_AttributeError))
          PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(more)->tp_name);
      } else {
        r = _PyDict_MergeEx(target, more, 2);
        // Below the dict: the positional arguments, then the function.
        if (r < 0) merge_error(peek(i.arg + (kNullBelow ? 3 : 4)), more);
      }
      checked(r);
      Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    case Op::ListToTuple:
      return replace(1, PyList_AsTuple(peek(1)));
    case Op::UnpackSequence:
      return unpack(i);
    case Op::UnpackEx:
      return unpack_ex(i);
    case Op::FormatValue:
    case Op::ConvertValue:
    case Op::FormatSimple:
    case Op::FormatWithSpec:
      return formats(i);
    default:
      return build(i);
  }
}

// f(**more): the message that calls give.
void Run::merge_error(PyObject* function, PyObject* more) {
  PyObject* text = _PyObject_FunctionStr(function);
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%V argument after ** must be a mapping, not %.200s", text, "function",
                 Py_TYPE(more)->tp_name);
  } else if (PyErr_ExceptionMatches(PyExc_KeyError)) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject* key = value ? PyObject_GetAttrString(value, "args") : nullptr;
    if (key && PyTuple_GET_SIZE(key) == 1) {
      PyErr_Format(PyExc_TypeError, "%V got multiple values for keyword argument '%S'", text, "function",
                   PyTuple_GET_ITEM(key, 0));
    } else {
      PyErr_Restore(type, value, traceback);
      type = value = traceback = nullptr;
    }
    Py_XDECREF(key);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
  Py_XDECREF(text);
}

Status Run::build(const Instruction& i) {
  PyObject** items = sp - i.arg;
  switch (i.op) {
    case Op::BuildTuple:
    case Op::BuildList: {
      PyObject* o = i.op == Op::BuildTuple ? PyTuple_New(i.arg) : PyList_New(i.arg);
      if (!o) return Status::Error;
      for (int k = 0; k < i.arg; ++k) {
        if (i.op == Op::BuildTuple)
          PyTuple_SET_ITEM(o, k, items[k]);
        else
          PyList_SET_ITEM(o, k, items[k]);
      }
      sp -= i.arg;
      return push_result(o);
    }
    case Op::BuildSet: {
      PyObject* o = PySet_New(nullptr);
      for (int k = 0; o && k < i.arg; ++k)
        if (checked(PySet_Add(o, items[k])) < 0) Py_CLEAR(o);
      return replace(i.arg, o);
    }
    case Op::BuildMap: {
      items = sp - 2 * i.arg;
      PyObject* o = PyDict_New();
      for (int k = 0; o && k < i.arg; ++k)
        if (checked(PyDict_SetItem(o, items[2 * k], items[2 * k + 1])) < 0) Py_CLEAR(o);
      return replace(2 * i.arg, o);
    }
    case Op::BuildConstKeyMap: {
      PyObject* keys = peek(1);
      items = sp - 1 - i.arg;
      PyObject* o = PyDict_New();
      for (int k = 0; o && k < i.arg; ++k)
        if (PyDict_SetItem(o, PyTuple_GET_ITEM(keys, k), items[k]) < 0) Py_CLEAR(o);
      return replace(i.arg + 1, o);
    }
    case Op::BuildSlice: {
      PyObject* step = i.arg == 3 ? peek(1) : nullptr;
      return replace(i.arg, PySlice_New(peek(i.arg), peek(i.arg - 1), step));
    }
    case Op::BuildString: {
      PyObject *nothing = PyUnicode_New(0, 0), *parts = PyTuple_New(i.arg);
      for (int k = 0; parts && k < i.arg; ++k) PyTuple_SET_ITEM(parts, k, Py_NewRef(items[k]));
      PyObject* o = parts ? PyUnicode_Join(nothing, parts) : nullptr;
      Py_XDECREF(parts);
      Py_DECREF(nothing);
      return replace(i.arg, o);
    }
    default:
      return Status::Other;
  }
}

Status Run::unpack(const Instruction& i) {
  PyObject* o = pop();
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    PyObject** items = PySequence_Fast_ITEMS(o);
    if (PySequence_Fast_GET_SIZE(o) == i.arg) {
      for (int k = i.arg; k-- > 0;) push_new(items[k]);
      Py_DECREF(o);
      return Status::Next;
    }
  }
  PyObject* iterator = world ? world->iterate(o) : PyObject_GetIter(o);
  if (!iterator) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(o)->tp_iter && !PySequence_Check(o))
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(o)->tp_name);
    Py_DECREF(o);
    return Status::Error;
  }
  Py_DECREF(o);
  std::vector<PyObject*> got;
  bool failed = false;
  for (int k = 0; k < i.arg && !failed; ++k) {
    PyObject* item = checked(PyIter_Next(iterator));
    if (item) {
      got.push_back(item);
      continue;
    }
    failed = true;
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", i.arg, k);
  }
  if (!failed) {
    PyObject* extra = checked(PyIter_Next(iterator));
    if (extra) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", i.arg);
    Py_XDECREF(extra);
    failed = PyErr_Occurred() != nullptr;
  }
  Py_DECREF(iterator);
  for (size_t k = got.size(); k-- > 0;) {
    if (failed)
      Py_DECREF(got[k]);
    else
      push(got[k]);
  }
  return failed ? Status::Error : Status::Next;
}

// before, *middle, after = o
Status Run::unpack_ex(const Instruction& i) {
  const Py_ssize_t before = i.arg & 255, after = i.arg >> 8;
  PyObject* o = pop();
  PyObject* iterator = world ? world->iterate(o) : PyObject_GetIter(o);
  if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(o)->tp_iter && !PySequence_Check(o))
    PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(o)->tp_name);
  Py_DECREF(o);
  PyObject* all = iterator ? checked(PySequence_List(iterator)) : nullptr;
  Py_XDECREF(iterator);
  if (!all) return Status::Error;
  const Py_ssize_t count = PyList_GET_SIZE(all);
  if (count < before + after) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %zd, got %zd)",
                 before + after, count);
    Py_DECREF(all);
    return Status::Error;
  }
  PyObject* middle = PyList_GetSlice(all, before, count - after);
  for (Py_ssize_t k = 0; k < after; ++k) push_new(PyList_GET_ITEM(all, count - 1 - k));
  push(middle);
  for (Py_ssize_t k = before; k-- > 0;) push_new(PyList_GET_ITEM(all, k));
  Py_DECREF(all);
  return Status::Next;
}

Status Run::formats(const Instruction& i) {
  switch (i.op) {
    case Op::FormatValue: {
      PyObject* spec = i.arg & 4 ? pop() : nullptr;
      return format(pop(), i.arg & 3, true, spec);
    }
    case Op::ConvertValue:
      return format(pop(), i.arg, false, nullptr);
    case Op::FormatSimple:
      return format(pop(), 0, true, nullptr);
    default: {
      PyObject* spec = pop();
      return format(pop(), 0, true, spec);
    }
  }
}

// conversion: 1, 2, 3 for str, repr, ascii; takes value and spec over.
Status Run::format(PyObject* value, int conversion, bool formats, PyObject* spec) {
  PyObject* text = nullptr;
  if (!world || (world->may_use(value) && world->may_show(value))) {
    switch (conversion) {
      case 1:
        text = PyObject_Str(value);
        break;
      case 2:
        text = PyObject_Repr(value);
        break;
      case 3:
        text = PyObject_ASCII(value);
        break;
      default:
        text = Py_NewRef(value);
    }
    if (formats && text && (!PyUnicode_CheckExact(text) || spec))
      Py_SETREF(text, PyObject_Format(text, spec));
    text = checked(text);
  }
  Py_DECREF(value);
  Py_XDECREF(spec);
  return push_result(text);
}

}  // namespace fl::python::capture
#endif
