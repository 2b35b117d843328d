#include "recipe.h"

#if FLAMBEAU_CAPTURE
#include "builtins.h"
#include "world.h"

namespace fl::python::capture {
namespace {

using Kind = Make::Kind;

[[noreturn]] void raise_set() { throw nb::python_error(); }
void check(int r) {
  if (r < 0) raise_set();
}
nb::object owned(PyObject* o) {
  if (!o) raise_set();
  return nb::steal(o);
}

PyTypeObject* as_type(PyObject* o) { return reinterpret_cast<PyTypeObject*>(o); }

nb::object make_function(PyObject* model, const std::vector<nb::object>& made,
                         const std::vector<int>& parts) {
  auto* m = reinterpret_cast<PyFunctionObject*>(model);
  nb::object o = owned(PyFunction_NewWithQualName(m->func_code, m->func_globals, m->func_qualname));
  auto* f = reinterpret_cast<PyFunctionObject*>(o.ptr());
  const auto set = [&](PyObject*& field, int part) {
    if (part >= 0) Py_XSETREF(field, Py_NewRef(made[static_cast<size_t>(part)].ptr()));
  };
  Py_SETREF(f->func_name, Py_NewRef(m->func_name));
  set(f->func_closure, parts[0]);
  set(f->func_defaults, parts[1]);
  set(f->func_kwdefaults, parts[2]);
  if (m->func_annotations) Py_XSETREF(f->func_annotations, Py_NewRef(m->func_annotations));
  if (m->func_doc) Py_XSETREF(f->func_doc, Py_NewRef(m->func_doc));
  return o;
}

PyObject* dict_of(PyObject* o) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  if (!dict) {
    PyErr_SetString(PyExc_SystemError, "an object has lost its __dict__");
    raise_set();
  }
  if (!*dict) *dict = PyDict_New();
  return *dict;
}

void set_dict_item(PyObject* dict, PyObject* key, PyObject* value) {
  check(PyODict_Check(dict) ? PyODict_SetItem(dict, key, value) : PyDict_SetItem(dict, key, value));
}
void delete_dict_item(PyObject* dict, PyObject* key) {
  check(PyODict_Check(dict) ? PyODict_DelItem(dict, key) : PyDict_DelItem(dict, key));
}

/// Calls a method of deque, whatever a class derived from it has.
void call_deque(PyObject* deque, const char* method, PyObject* arg) {
  const nb::object f = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(builtins().deque), method));
  owned(PyObject_CallFunctionObjArgs(f.ptr(), deque, arg, nullptr));
}

/// Makes a set have the items, in their order where that does not depend on what the set had before.
void assign_set(PyObject* set, const std::vector<nb::object>& made, const std::vector<int>& parts) {
  const nb::object wanted = owned(PySet_New(nullptr));
  for (size_t p = 1; p < parts.size(); ++p)
    check(PySet_Add(wanted.ptr(), made[static_cast<size_t>(parts[p])].ptr()));
  const nb::object all = owned(PySet_Type.tp_iter(set)), old = owned(PySequence_List(all.ptr()));
  for (nb::handle item : old)
    if (!PySet_Contains(wanted.ptr(), item.ptr())) check(PySet_Discard(set, item.ptr()));
  for (size_t p = 1; p < parts.size(); ++p) check(PySet_Add(set, made[static_cast<size_t>(parts[p])].ptr()));
}

nb::list keys_of(PyObject* dict) {
  nb::list out;
  const nb::object iterator =
      owned(PyODict_Check(dict) ? PyODict_Type.tp_iter(dict) : PyDict_Type.tp_iter(dict));
  while (PyObject* key = PyIter_Next(iterator.ptr())) out.append(nb::steal(key));
  return out;
}

/// Makes a dict equal to keys and values, in their order, with as few changes as that takes.
void assign_dict(PyObject* dict, const std::vector<nb::object>& made, const std::vector<int>& parts) {
  std::vector<PyObject*> keys;
  for (size_t k = 1; k < parts.size(); k += 2) keys.push_back(made[static_cast<size_t>(parts[k])].ptr());
  const nb::list old = keys_of(dict);
  size_t at = 0;
  bool in_order = true;
  for (nb::handle key : old) {
    bool stays = false;
    for (size_t k = 0; k < keys.size() && !stays; ++k) {
      // Tensors are keys by identity; what == says of them is another thing.
      stays = keys[k] == key.ptr() || (!as_tensor(key) && !as_tensor(nb::handle(keys[k])) &&
                                       PyObject_RichCompareBool(keys[k], key.ptr(), Py_EQ) == 1);
      if (stays) in_order = in_order && k == at++;
    }
    if (!stays) delete_dict_item(dict, key.ptr());
  }
  if (!in_order)
    for (nb::handle key : keys_of(dict)) delete_dict_item(dict, key.ptr());
  for (size_t k = 0; k < keys.size(); ++k)
    set_dict_item(dict, keys[k], made[static_cast<size_t>(parts[2 * k + 2])].ptr());
}

}  // namespace

std::vector<nb::object> Recipe::make(const std::vector<PyObject*>& places, const Tensors& outputs) const {
  std::vector<nb::object> made(steps_.size());
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Make& m = steps_[k];
    const auto part = [&](size_t p) { return made[static_cast<size_t>(m.parts[p])].ptr(); };
    switch (m.kind) {
      case Kind::Place:
        made[k] = nb::borrow(places[static_cast<size_t>(m.index)]);
        break;
      case Kind::Output:
        made[k] = wrap(outputs[static_cast<size_t>(m.index)]);
        break;
      case Kind::Number:
        made[k] = owned(
            PyLong_FromLongLong(outputs[static_cast<size_t>(m.index)].sizes()[0].expect_int() - kNumberBias));
        break;
      case Kind::Float:
        made[k] = nb::float_(outputs[static_cast<size_t>(m.index)].item().to_double());
        break;
      case Kind::Constant:
        made[k] = nb::borrow(m.object);
        break;
      case Kind::Tuple: {
        PyTypeObject* type = as_type(m.object);
        made[k] = type == &PyTuple_Type
                      ? owned(PyTuple_New(static_cast<Py_ssize_t>(m.parts.size())))
                      : owned(type->tp_alloc(type, static_cast<Py_ssize_t>(m.parts.size())));
        for (size_t p = 0; p < m.parts.size(); ++p)
          PyTuple_SET_ITEM(made[k].ptr(), static_cast<Py_ssize_t>(p), Py_NewRef(part(p)));
        break;
      }
      case Kind::List:
        made[k] = owned(PyList_New(0));
        break;
      case Kind::Dict:
        made[k] = owned(PyDict_New());
        break;
      case Kind::Set:
        made[k] = owned(PySet_New(nullptr));
        break;
      case Kind::Empty: {
        PyTypeObject* base = as_type(m.object);
        while (is_python_class(base)) base = base->tp_base;
        const nb::tuple nothing;
        made[k] = owned(base->tp_new(as_type(m.object), nothing.ptr(), nullptr));
        break;
      }
      case Kind::Exception: {
        PyTypeObject* base = as_type(m.object);
        while (is_python_class(base)) base = base->tp_base;
        made[k] = owned(base->tp_new(as_type(m.object), part(0), nullptr));
        break;
      }
      case Kind::Method:
        made[k] = owned(PyMethod_New(part(0), part(1)));
        break;
      case Kind::MethodInC:
        made[k] = owned(bind_in_c(m.object, part(0)));
        break;
      case Kind::Cell:
        made[k] = owned(PyCell_New(nullptr));
        break;
      case Kind::Function:
        made[k] = make_function(m.object, made, m.parts);
        break;
      case Kind::Call: {
        std::vector<PyObject*> args{nullptr};
        for (size_t p = 1; p < m.parts.size(); ++p) args.push_back(part(p));
        made[k] = owned(PyObject_Vectorcall(part(0), args.data() + 1,
                                            (args.size() - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
        break;
      }
      default:
        fill(m, made);
    }
  }
  return made;
}

void Recipe::fill(const Make& m, const std::vector<nb::object>& made) const {
  const auto part = [&](size_t p) { return made[static_cast<size_t>(m.parts[p])].ptr(); };
  PyObject* o = part(0);
  const size_t n = m.parts.size();
  switch (m.kind) {
    case Kind::Extend:
      for (size_t p = 1; p < n; ++p) {
        if (PyList_Check(o))
          check(PyList_Append(o, part(p)));
        else if (PyAnySet_Check(o))
          check(PySet_Add(o, part(p)));
        else
          call_deque(o, "append", part(p));
      }
      break;
    case Kind::Bound:
      check(builtins().deque->tp_init(o, nb::make_tuple(nb::tuple(), nb::handle(part(1))).ptr(), nullptr));
      break;
    case Kind::Update:
      for (size_t p = 1; p < n; p += 2) set_dict_item(o, part(p), part(p + 1));
      break;
    case Kind::SetDict:
      for (size_t p = 1; p < n; p += 2) check(PyDict_SetItem(dict_of(o), part(p), part(p + 1)));
      break;
    case Kind::SetSlot:
      check(Py_TYPE(part(1))->tp_descr_set(part(1), o, part(2)));
      break;
    case Kind::SetCell:
      check(PyCell_Set(o, part(1)));
      break;
    case Kind::SetState:
      if (nb::hasattr(nb::handle(o), "__setstate__"))
        nb::handle(o).attr("__setstate__")(nb::handle(part(1)));
      else
        nb::handle(o).attr("__dict__").attr("update")(nb::handle(part(1)));
      break;
    case Kind::AssignList: {
      const nb::object items = owned(PyList_New(0));
      for (size_t p = 1; p < n; ++p) check(PyList_Append(items.ptr(), part(p)));
      if (PyList_Check(o)) {
        check(PyList_SetSlice(o, 0, PyList_GET_SIZE(o), items.ptr()));
      } else {
        call_deque(o, "clear", nullptr);
        call_deque(o, "extend", items.ptr());
      }
      break;
    }
    case Kind::AssignDict:
      assign_dict(o, made, m.parts);
      break;
    case Kind::AssignSet:
      assign_set(o, made, m.parts);
      break;
    case Kind::AssignCell:
      check(PyCell_Set(o, n > 1 ? part(1) : nullptr));
      break;
    case Kind::SetAttribute:
      check(PyObject_GenericSetAttr(o, part(1), part(2)));
      break;
    case Kind::DeleteAttribute:
      if (PyObject_GenericSetAttr(o, part(1), nullptr) < 0)
        PyErr_Clear();  // it may have been there for a while only
      break;
    case Kind::SetItem:
      check(PyDict_SetItem(o, part(1), part(2)));
      break;
    case Kind::DeleteItem:
      if (PyDict_DelItem(o, part(1)) < 0) PyErr_Clear();
      break;
    default:
      break;
  }
}

}  // namespace fl::python::capture
#endif
