#include "recipe.h"

#if FLAMBEAU_CAPTURE
#include <structmember.h>

#include "builtins.h"
#include "flambeau/ops/functions.h"
#include "world.h"

namespace fl::python::capture {
namespace {

using Kind = Make::Kind;

PyObject* type_object(PyObject* o) { return reinterpret_cast<PyObject*>(Py_TYPE(o)); }

bool is_immutable(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || o == Py_Ellipsis || o == Py_NotImplemented ||
         PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) ||
         PyComplex_CheckExact(o) || PyModule_Check(o);
}

}  // namespace

int RecipeWriter::add(Kind kind, std::vector<int> parts, PyObject* object, int index) {
  if (object) recipe_.kept_.push_back(nb::borrow(object));
  recipe_.steps_.push_back({kind, index, object, std::move(parts)});
  return static_cast<int>(recipe_.steps_.size()) - 1;
}

int RecipeWriter::fail(const std::string& why) {
  if (problem.empty()) problem = why;
  return -1;
}

int RecipeWriter::of(PyObject* o) {
  if (auto it = known_.find(o); it != known_.end()) return it->second;
  kept_.push_back(nb::borrow(o));  // no other object gets its address
  const auto note = [&](int made) {
    if (made >= 0) known_[o] = made;
    return made;
  };
  if (PyExceptionInstance_Check(o) && (began = world_.handled_at(o)) >= 0)
    return fail("an exception that was raised in the captured part");
  if (const int at = world_.place_of(o); at >= 0) return note(add(Kind::Place, {}, nullptr, at));
  if (as_tensor(o)) return note(tensor(o));
  if (is_sym_int(o)) return note(number(o));
  if (is_sym_float(o)) return note(float_number(o));
  if (PyLong_CheckExact(o) && _PyLong_NumBits(o) > 32 && world_.is_address(o)) return fail("an address");
  if (is_immutable(o) || world_.is_cached(o)) return note(constant(o));
  if (world_.was_made(o)) {
    if (PyFunction_Check(o)) return function(o);
    began = world_.made_at(o);
    return fail(fmt::format("a {} that was made in the captured part can't be handed out of it",
                            Py_TYPE(o)->tp_name));
  }
  if (PyFunction_Check(o) || PyType_Check(o) || builtins().is_enumeration(o) ||
      (builtins().is_constant(o) && !PySlice_Check(o)))
    return note(constant(o));
  if (PyTuple_Check(o)) return note(sequence(o));
  if (PyList_CheckExact(o)) return list(o);
  if (PyDict_CheckExact(o)) return dict(o);
  if (PyAnySet_CheckExact(o)) return set(o);
  if (PyMethod_Check(o)) return note(method(o));
  if (PyCell_Check(o)) return cell(o);
  if (is_python_class(Py_TYPE(o)) || PyExceptionInstance_Check(o) || PyODict_CheckExact(o) ||
      Py_TYPE(o) == builtins().deque || Py_TYPE(o) == builtins().default_dict)
    return instance(o);
  return note(reduced(o));
}

int RecipeWriter::tensor(PyObject* o) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  if (!is_exact_tensor(o) || (dict && *dict && PyDict_GET_SIZE(*dict) > 0))
    return fail("a tensor of a class of its own, or with attributes, that was made in the captured part");
  outputs_.push_back(*as_tensor(o));
  return add(Kind::Output, {}, nullptr, static_cast<int>(outputs_.size()) - 1);
}

int RecipeWriter::number(PyObject* o) {
  const std::optional<SymInt> value = as_symbolic_integer(o);
  if (!value) return fail("a number of another trace");
  outputs_.push_back(fl::empty({*value + SymInt(kNumberBias), SymInt(0)}));
  return add(Kind::Number, {}, nullptr, static_cast<int>(outputs_.size()) - 1);
}

int RecipeWriter::float_number(PyObject* o) {
  // What is given must not share memory with a tensor of the program that changes.
  outputs_.push_back(fl::clone(tensor_of_float(o)));
  return add(Kind::Float, {}, nullptr, static_cast<int>(outputs_.size()) - 1);
}

bool RecipeWriter::sequence_items(PyObject* o, std::vector<int>& parts) {
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
    parts.push_back(of(PySequence_Fast_GET_ITEM(o, k)));
    if (parts.back() < 0) return false;
  }
  return true;
}

bool RecipeWriter::items(PyObject* dict, std::vector<int>& parts) {
  const nb::object iterator =
      nb::steal(PyODict_Check(dict) ? PyODict_Type.tp_iter(dict) : PyDict_Type.tp_iter(dict));
  while (PyObject* key = PyIter_Next(iterator.ptr())) {
    const nb::object owned = nb::steal(key);
    PyObject* value = PyDict_GetItemWithError(dict, key);
    if (!value) return fail("a dict that can't be read") >= 0;
    parts.push_back(of(key));
    if (parts.back() < 0) return false;
    parts.push_back(of(value));
    if (parts.back() < 0) return false;
  }
  return true;
}

int RecipeWriter::sequence(PyObject* o) {
  std::vector<int> parts;
  if (!sequence_items(o, parts)) return -1;
  const int made = add(Kind::Tuple, std::move(parts), type_object(o));
  return attributes(o, made) ? made : -1;
}

int RecipeWriter::list(PyObject* o) {
  const int made = known_[o] = add(Kind::List);
  std::vector<int> parts{made};
  if (!sequence_items(o, parts)) return -1;
  if (parts.size() > 1) add(Kind::Extend, std::move(parts));
  return made;
}

int RecipeWriter::dict(PyObject* o) {
  const int made = known_[o] = add(Kind::Dict);
  std::vector<int> parts{made};
  if (!items(o, parts)) return -1;
  if (parts.size() > 1) add(Kind::Update, std::move(parts));
  return made;
}

int RecipeWriter::set(PyObject* o) {
  const nb::object all = nb::steal(PySequence_List(o));
  std::vector<int> parts;
  if (!sequence_items(all.ptr(), parts)) return -1;
  if (PyFrozenSet_Check(o)) {
    parts = {add(Kind::Tuple, std::move(parts), reinterpret_cast<PyObject*>(&PyTuple_Type))};
    return known_[o] = add(Kind::Call, {constant(reinterpret_cast<PyObject*>(&PyFrozenSet_Type)), parts[0]});
  }
  const int made = known_[o] = add(Kind::Set);
  parts.insert(parts.begin(), made);
  add(Kind::Extend, std::move(parts));
  return made;
}

int RecipeWriter::method(PyObject* o) {
  const int function = of(PyMethod_GET_FUNCTION(o)), self = function < 0 ? -1 : of(PyMethod_GET_SELF(o));
  return self < 0 ? -1 : add(Kind::Method, {function, self});
}

int RecipeWriter::cell(PyObject* o) {
  const int made = known_[o] = add(Kind::Cell);
  if (!PyCell_GET(o)) return made;
  const int inner = of(PyCell_GET(o));
  if (inner < 0) return -1;
  add(Kind::SetCell, {made, inner});
  return made;
}

int RecipeWriter::function(PyObject* o) {
  const auto* f = reinterpret_cast<PyFunctionObject*>(o);
  const auto part = [&](PyObject* p) { return p ? of(p) : -2; };
  const std::vector<int> parts{part(f->func_closure), part(f->func_defaults), part(f->func_kwdefaults)};
  for (int p : parts)
    if (p == -1) return -1;
  // A model without what the function of the capture holds: that would live as long as the region.
  const nb::object model =
      nb::steal(PyFunction_NewWithQualName(f->func_code, f->func_globals, f->func_qualname));
  auto* m = reinterpret_cast<PyFunctionObject*>(model.ptr());
  Py_SETREF(m->func_name, Py_NewRef(f->func_name));
  Py_XSETREF(m->func_annotations, Py_XNewRef(f->func_annotations));
  Py_XSETREF(m->func_doc, Py_XNewRef(f->func_doc));
  const int made = known_[o] = add(Kind::Function, parts, model.ptr());
  return attributes(o, made) ? made : -1;
}

bool RecipeWriter::attributes(PyObject* o, int made) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  if (dict && *dict && PyDict_GET_SIZE(*dict) > 0) {
    std::vector<int> parts{made};
    if (!items(*dict, parts)) return false;
    add(Kind::SetDict, std::move(parts));
  }
  return true;
}

// What the C type of an exception keeps beside its arguments: StopIteration.value, SystemExit.code, ...
bool RecipeWriter::members(PyObject* o, PyTypeObject* type, int made) {
  const auto* e = reinterpret_cast<PyBaseExceptionObject*>(o);
  if (e->cause || e->context || PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_UnicodeError)))
    return fail("an exception with a cause, or of text, that was made in the captured part") >= 0;
  known_[o] = made;
  for (PyTypeObject* t = type; t; t = t->tp_base)
    for (const PyMemberDef* m = t->tp_members; m && m->name; ++m) {
      if (m->type != T_OBJECT && m->type != T_OBJECT_EX) continue;
      PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + m->offset);
      PyObject* descriptor = PyDict_GetItemString(dict_of_type(t), m->name);
      if (!value || value == Py_None || !descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type) continue;
      const int inner = of(value);
      if (inner < 0) return false;
      add(Kind::SetSlot, {made, constant(descriptor), inner});
    }
  return true;
}

int RecipeWriter::instance(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyTypeObject* base = builtin_base(type);
  if (world_.was_made(type_object(o))) {
    began = world_.made_at(type_object(o));
    return fail("an object of a class that was made in the captured part");
  }
  int made = -1;
  if (PyExceptionInstance_Check(o)) {
    const nb::object args = nb::handle(o).attr("args");
    const int given = of(args.ptr());
    if (given < 0) return -1;
    made = add(Kind::Exception, {given}, type_object(o));
    if (!members(o, base, made)) return -1;
  } else if (base == &PyLong_Type || base == &PyFloat_Type || base == &PyUnicode_Type) {
    return known_[o] = constant(o);
  } else if (base == &PyBaseObject_Type || base == &PyList_Type || base == &PyDict_Type ||
             base == &PySet_Type || base == &PyODict_Type || base == builtins().deque ||
             base == builtins().default_dict) {
    made = add(Kind::Empty, {}, type_object(o));
    if (base == builtins().deque) {
      PyObject* maximum = builtins().deque_bound.ptr();
      const nb::object bound = nb::steal(Py_TYPE(maximum)->tp_descr_get(maximum, o, type_object(o)));
      if (!bound.is_none()) add(Kind::Bound, {made, constant(bound.ptr())});
    }
  } else {
    return fail(fmt::format("a {} that was made in the captured part", type->tp_name));
  }
  known_[o] = made;
  if (base == builtins().default_dict) {
    const int factory = of(nb::handle(o).attr("default_factory").ptr());
    if (factory < 0) return -1;
    add(Kind::SetSlot, {made, constant(builtins().default_factory.ptr()), factory});
  }
  std::vector<int> parts{made};
  if (PyDict_Check(o)) {
    if (!items(o, parts)) return -1;
    if (parts.size() > 1) add(Kind::Update, std::move(parts));
  } else if (base == &PyList_Type || base == &PySet_Type || base == builtins().deque) {
    const nb::object all = nb::steal(base->tp_iter(o));
    const nb::object copy = nb::steal(PySequence_List(all.ptr()));
    if (!sequence_items(copy.ptr(), parts)) return -1;
    if (parts.size() > 1) add(Kind::Extend, std::move(parts));
  }
  for (PyTypeObject* t = type; is_python_class(t); t = t->tp_base) {
    PyObject *key, *value;
    for (Py_ssize_t k = 0; PyDict_Next(dict_of_type(t), &k, &key, &value);) {
      if (Py_TYPE(value) != &PyMemberDescr_Type) continue;
      const auto* member = reinterpret_cast<PyMemberDescrObject*>(value)->d_member;
      if (member->type != T_OBJECT_EX) continue;
      PyObject* held = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + member->offset);
      if (!held) continue;
      const int inner = of(held);
      if (inner < 0) return -1;
      add(Kind::SetSlot, {made, constant(value), inner});
    }
  }
  return attributes(o, made) ? made : -1;
}

// Iterators and other objects in C that say how they are made again.
int RecipeWriter::reduced(PyObject* o) {
  if (PyObject* self = self_in_c(o); self && !PyModule_Check(self)) {
    const int inner = of(self);
    const nb::object model = nb::steal(bind_in_c(o, Py_None));
    if (!model.is_valid()) PyErr_Clear();
    if (!model.is_valid()) return fail("a method in C that was made in the captured part");
    return inner < 0 ? -1 : add(Kind::MethodInC, {inner}, model.ptr());
  }
  if (PyGen_Check(o)) return fail("a generator that has begun");
  for (const auto& [type, name] :
       {std::pair{&PyDictKeys_Type, "keys"}, {&PyDictValues_Type, "values"}, {&PyDictItems_Type, "items"}})
    if (Py_TYPE(o) == type) {
      struct View {
        PyObject_HEAD PyObject* dict;
      };
      PyObject* dict = reinterpret_cast<View*>(o)->dict;
      const int inner = of(dict);
      return inner < 0 ? -1
                       : add(Kind::Call,
                             {constant(nb::object(nb::handle(type_object(dict)).attr(name)).ptr()), inner});
    }
  if (!builtins().is_plain(Py_TYPE(o)))
    return fail(fmt::format("a {} that was made in the captured part", Py_TYPE(o)->tp_name));
  if (Py_TYPE(o) == &PySuper_Type) {
    const int type = of(nb::handle(o).attr("__thisclass__").ptr()),
              self = type < 0 ? -1 : of(nb::handle(o).attr("__self__").ptr());
    return self < 0 ? -1
                    : add(Kind::Call, {constant(reinterpret_cast<PyObject*>(&PySuper_Type)), type, self});
  }
  nb::object state = nb::steal(PyObject_CallMethod(o, "__reduce__", nullptr));
  if (!state.is_valid()) {
    PyErr_Clear();
    return fail(fmt::format("a {} that was made in the captured part", Py_TYPE(o)->tp_name));
  }
  if (!PyTuple_Check(state.ptr()) || PyTuple_GET_SIZE(state.ptr()) < 2 || PyTuple_GET_SIZE(state.ptr()) > 3)
    return fail(fmt::format("a {} that was made in the captured part", Py_TYPE(o)->tp_name));
  PyObject* args = PyTuple_GET_ITEM(state.ptr(), 1);
  std::vector<int> parts{of(PyTuple_GET_ITEM(state.ptr(), 0))};
  if (parts[0] < 0 || !sequence_items(args, parts)) return -1;
  const int made = add(Kind::Call, std::move(parts));
  if (PyTuple_GET_SIZE(state.ptr()) == 3 && PyTuple_GET_ITEM(state.ptr(), 2) != Py_None) {
    const int inner = of(PyTuple_GET_ITEM(state.ptr(), 2));
    if (inner < 0) return -1;
    add(Kind::SetState, {made, inner});
  }
  kept_.push_back(std::move(state));
  return made;
}

bool RecipeWriter::changes() {
  for (const World::Shadow& s : world_.shadows()) {
    if (!World::is_changed(s)) continue;
    const int target = of(s.shadow);
    std::vector<int> parts{target};
    PyObject* o = s.shadow;
    if (PyCell_Check(o)) {
      if (PyCell_GET(o)) parts.push_back(of(PyCell_GET(o)));
      if (parts.back() < 0) return false;
      add(Kind::AssignCell, std::move(parts));
    } else if (PyDict_Check(o)) {
      if (!items(o, parts)) return false;
      add(Kind::AssignDict, std::move(parts));
    } else {
      PyTypeObject* base = PyAnySet_Check(o) ? &PySet_Type
                           : PyList_Check(o) ? &PyList_Type
                                             : builtins().deque;
      const nb::object iterator = nb::steal(base->tp_iter(o));
      const nb::object all = nb::steal(PySequence_List(iterator.ptr()));
      if (!sequence_items(all.ptr(), parts)) return false;
      add(PyAnySet_Check(o) ? Kind::AssignSet : Kind::AssignList, std::move(parts));
    }
  }
  for (const World::Overlay& o : world_.overlays()) {
    const int target = o.is_globals ? constant(o.target) : of(o.target);
    if (target < 0) return false;
    PyObject *key, *value;
    for (Py_ssize_t k = 0; PyDict_Next(o.changes, &k, &key, &value);) {
      const int name = constant(key);
      if (value == World::deleted()) {
        add(o.is_globals ? Kind::DeleteItem : Kind::DeleteAttribute, {target, name});
        continue;
      }
      const int made = of(value);
      if (made < 0) return false;
      add(o.is_globals ? Kind::SetItem : Kind::SetAttribute, {target, name, made});
    }
  }
  return true;
}

}  // namespace fl::python::capture
#endif
