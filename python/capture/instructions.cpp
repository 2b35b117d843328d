// Operators, attributes, names, containers.
#include "run.h"

#if FLAMBEAU_CAPTURE
#include <opcode.h>

namespace fl::python::capture {

Status Run::operators(const Instruction& i) {
  switch (i.op) {
    case UNARY_POSITIVE:
    case UNARY_NEGATIVE:
    case UNARY_INVERT: {
      PyObject* o = peek(1);
      if (world && !world->may_use(o)) return Status::Error;
      PyObject* r = i.op == UNARY_POSITIVE   ? PyNumber_Positive(o)
                    : i.op == UNARY_NEGATIVE ? PyNumber_Negative(o)
                                             : PyNumber_Invert(o);
      return replace(1, checked(r));
    }
    case UNARY_NOT: {
      const int t = truth(pop());
      return t < 0 ? Status::Error : push_new(t ? Py_False : Py_True);
    }
    case BINARY_OP:
      return binary(i);
    case COMPARE_OP:
      return compare(i);
    case IS_OP: {
      PyObject *a = peek(2), *b = peek(1);
      PyObject* r = world ? world->compare_identity(a, b, i.arg) : PyBool_FromLong((a == b) != (i.arg != 0));
      return replace(2, r);
    }
    case CONTAINS_OP: {
      PyObject *item = peek(2), *container = peek(1);
      if (world && !world->may_use(item, container)) return Status::Error;
      const int r = checked(PySequence_Contains(container, item));
      return replace(2, r < 0 ? nullptr : PyBool_FromLong((r != 0) != (i.arg != 0)));
    }
    case BINARY_SUBSCR: {
      PyObject *o = peek(2), *key = peek(1);
      return replace(2, world ? world->subscript(o, key) : PyObject_GetItem(o, key));
    }
    case STORE_SUBSCR: {
      PyObject *value = peek(3), *o = peek(2), *key = peek(1);
      if (world && !world->may_use(o, key)) return Status::Error;
      const int r = checked(PyObject_SetItem(o, key, value));
      for (int k = 0; k < 3; ++k) Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    case DELETE_SUBSCR: {
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

// In the order of the argument of BINARY_OP.
constexpr binaryfunc kBinary[] = {
    PyNumber_Add,
    PyNumber_And,
    PyNumber_FloorDivide,
    PyNumber_Lshift,
    PyNumber_MatrixMultiply,
    PyNumber_Multiply,
    PyNumber_Remainder,
    PyNumber_Or,
    power,
    PyNumber_Rshift,
    PyNumber_Subtract,
    PyNumber_TrueDivide,
    PyNumber_Xor,
    PyNumber_InPlaceAdd,
    PyNumber_InPlaceAnd,
    PyNumber_InPlaceFloorDivide,
    PyNumber_InPlaceLshift,
    PyNumber_InPlaceMatrixMultiply,
    PyNumber_InPlaceMultiply,
    PyNumber_InPlaceRemainder,
    PyNumber_InPlaceOr,
    power_in_place,
    PyNumber_InPlaceRshift,
    PyNumber_InPlaceSubtract,
    PyNumber_InPlaceTrueDivide,
    PyNumber_InPlaceXor,
};

}  // namespace

Status Run::binary(const Instruction& i) {
  PyObject *a = peek(2), *b = peek(1);
  if (world && !world->may_use(a, b)) return Status::Error;
  return replace(2, checked(kBinary[i.arg](a, b)));
}

Status Run::compare(const Instruction& i) {
  PyObject *a = peek(2), *b = peek(1);
  if (world && !world->may_use(a, b)) return Status::Error;
  return replace(2, checked(PyObject_RichCompare(a, b, i.arg)));
}

PyObject* Run::get_attribute(PyObject* o, PyObject* attribute) {
  return world ? world->getattr(o, attribute) : PyObject_GetAttr(o, attribute);
}

Status Run::attributes(const Instruction& i) {
  switch (i.op) {
    case LOAD_ATTR:
      return replace(1, get_attribute(peek(1), name(i.arg)));
    case LOAD_METHOD:
      return load_method(i);
    case STORE_ATTR: {
      PyObject *o = peek(1), *value = peek(2);
      const int r = world ? world->setattr(o, name(i.arg), value) : PyObject_SetAttr(o, name(i.arg), value);
      for (int k = 0; k < 2; ++k) Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    case DELETE_ATTR: {
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
    push(nullptr);
    push(method);
  }
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
    case LOAD_GLOBAL: {
      if (i.arg & 1) push(nullptr);
      PyObject* n = name(i.arg >> 1);
      return push_result(world ? world->global(frame, n) : global_of(frame, n));
    }
    case STORE_GLOBAL: {
      PyObject* value = pop();
      const int r = world ? world->set_global(frame, name(i.arg), value)
                          : PyDict_SetItem(frame->f_globals, name(i.arg), value);
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case DELETE_GLOBAL:
      if ((world ? world->set_global(frame, name(i.arg), nullptr)
                 : PyDict_DelItem(frame->f_globals, name(i.arg))) < 0) {
        if (!world) PyErr_Format(PyExc_NameError, "name '%U' is not defined", name(i.arg));
        return Status::Error;
      }
      return Status::Next;
    case LOAD_NAME: {  // the body of a class
      if (PyObject* o = frame->f_locals ? PyObject_GetItem(frame->f_locals, name(i.arg)) : nullptr)
        return push_result(o);
      if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_KeyError)) return Status::Error;
      PyErr_Clear();
      return push_result(world ? world->global(frame, name(i.arg)) : global_of(frame, name(i.arg)));
    }
    case STORE_NAME: {
      PyObject* value = pop();
      const int r = frame->f_locals ? PyObject_SetItem(frame->f_locals, name(i.arg), value) : -1;
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case IMPORT_NAME: {
      PyObject *from = peek(1), *level = peek(2);
      PyObject* module =
          world ? world->import_name(frame, name(i.arg), from, level)
                : PyImport_ImportModuleLevelObject(name(i.arg), frame->f_globals, frame->f_locals, from,
                                                   static_cast<int>(PyLong_AsLong(level)));
      return replace(2, module);
    }
    case IMPORT_FROM:
      return push_result(world ? world->getattr(peek(1), name(i.arg)) : import_from(peek(1), name(i.arg)));
    default:
      return Status::Other;
  }
}

Status Run::containers(const Instruction& i) {
  switch (i.op) {
    case LIST_APPEND: {
      PyObject* value = pop();
      const int r = PyList_Append(peek(i.arg), value);
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case SET_ADD: {
      PyObject* value = pop();
      const int r = checked(PySet_Add(peek(i.arg), value));
      Py_DECREF(value);
      return r < 0 ? Status::Error : Status::Next;
    }
    case MAP_ADD: {
      PyObject *value = pop(), *key = pop();
      const int r = checked(PyDict_SetItem(peek(i.arg), key, value));
      Py_DECREF(value);
      Py_DECREF(key);
      return r < 0 ? Status::Error : Status::Next;
    }
    case LIST_EXTEND:
    case SET_UPDATE:
    case DICT_UPDATE:
    case DICT_MERGE: {
      PyObject* more = peek(1);
      PyObject* target = peek(i.arg + 1);
      if (world && !world->may_use(more)) return Status::Error;
      int r = -1;
      if (i.op == LIST_EXTEND) {
        PyObject* done = _PyList_Extend(reinterpret_cast<PyListObject*>(target), more);
        r = done ? 0 : -1;
        Py_XDECREF(done);
        if (!done && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(more)->tp_iter &&
            !PySequence_Check(more))
          PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                       Py_TYPE(more)->tp_name);
      } else if (i.op == SET_UPDATE) {
        r = _PySet_Update(target, more);
      } else if (i.op == DICT_UPDATE) {
        r = PyDict_Update(target, more);
        if (r < 0 && PyErr_ExceptionMatches(PyExc_AttributeError))
          PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(more)->tp_name);
      } else {
        r = _PyDict_MergeEx(target, more, 2);
        if (r < 0) merge_error(peek(2 + i.arg), more);
      }
      checked(r);
      Py_DECREF(pop());
      return r < 0 ? Status::Error : Status::Next;
    }
    case LIST_TO_TUPLE:
      return replace(1, PyList_AsTuple(peek(1)));
    case UNPACK_SEQUENCE:
      return unpack(i);
    case UNPACK_EX:
      return unpack_ex(i);
    case FORMAT_VALUE:
      return format(i);
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
    case BUILD_TUPLE:
    case BUILD_LIST: {
      PyObject* o = i.op == BUILD_TUPLE ? PyTuple_New(i.arg) : PyList_New(i.arg);
      if (!o) return Status::Error;
      for (int k = 0; k < i.arg; ++k) {
        if (i.op == BUILD_TUPLE)
          PyTuple_SET_ITEM(o, k, items[k]);
        else
          PyList_SET_ITEM(o, k, items[k]);
      }
      sp -= i.arg;
      return push_result(o);
    }
    case BUILD_SET: {
      PyObject* o = PySet_New(nullptr);
      for (int k = 0; o && k < i.arg; ++k)
        if (checked(PySet_Add(o, items[k])) < 0) Py_CLEAR(o);
      return replace(i.arg, o);
    }
    case BUILD_MAP: {
      items = sp - 2 * i.arg;
      PyObject* o = PyDict_New();
      for (int k = 0; o && k < i.arg; ++k)
        if (checked(PyDict_SetItem(o, items[2 * k], items[2 * k + 1])) < 0) Py_CLEAR(o);
      return replace(2 * i.arg, o);
    }
    case BUILD_CONST_KEY_MAP: {
      PyObject* keys = peek(1);
      items = sp - 1 - i.arg;
      PyObject* o = PyDict_New();
      for (int k = 0; o && k < i.arg; ++k)
        if (PyDict_SetItem(o, PyTuple_GET_ITEM(keys, k), items[k]) < 0) Py_CLEAR(o);
      return replace(i.arg + 1, o);
    }
    case BUILD_SLICE: {
      PyObject* step = i.arg == 3 ? peek(1) : nullptr;
      return replace(i.arg, PySlice_New(peek(i.arg), peek(i.arg - 1), step));
    }
    case BUILD_STRING: {
      PyObject* nothing = PyUnicode_New(0, 0);
      PyObject* o = _PyUnicode_JoinArray(nothing, items, i.arg);
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

Status Run::format(const Instruction& i) {
  PyObject* spec = i.arg & 4 ? pop() : nullptr;
  PyObject* o = pop();
  PyObject* text = nullptr;
  if (!world || world->may_use(o)) {
    switch (i.arg & 3) {
      case 1:
        text = PyObject_Str(o);
        break;
      case 2:
        text = PyObject_Repr(o);
        break;
      case 3:
        text = PyObject_ASCII(o);
        break;
      default:
        text = Py_NewRef(o);
    }
    if (text && (!PyUnicode_CheckExact(text) || spec)) {
      PyObject* formatted = PyObject_Format(text, spec);
      Py_DECREF(text);
      text = formatted;
    }
    text = checked(text);
  }
  Py_DECREF(o);
  Py_XDECREF(spec);
  return push_result(text);
}

}  // namespace fl::python::capture
#endif
