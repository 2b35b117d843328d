// Attributes, globals and cells: the attribute protocol of CPython, with guards and overlays.
#include "builtins.h"
#include "hook.h"
#include "world.h"

#if FLAMBEAU_CAPTURE
#include <structmember.h>

namespace fl::python::capture {
namespace {

PyObject* intern(const char* text) { return PyUnicode_InternFromString(text); }

bool is_text(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

PyObject* as_object(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

bool is_data_descriptor(PyObject* d) { return Py_TYPE(d)->tp_descr_set != nullptr; }

PyObject* no_attribute(PyObject* o, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(o)->tp_name, name);
  return nullptr;
}

}  // namespace

PyObject* World::deleted() {
  static PyObject* marker = PyObject_CallNoArgs(as_object(&PyBaseObject_Type));
  return marker;
}

void World::guard_type(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) return;
  static PyObject* any = intern("__class__");
  if (!version_of(type)) _PyType_Lookup(type, any);
  expect(constant(as_object(type)), Check::TypeVersion, nullptr, static_cast<Py_ssize_t>(version_of(type)));
}

PyObject* World::type_attribute(PyTypeObject* type, PyObject* name) {
  guard_type(type);
  return _PyType_Lookup(type, name);
}

PyObject* World::overlay_of(PyObject* target) const {
  auto it = overlay_index_.find(target);
  return it == overlay_index_.end() ? nullptr : overlays_[it->second].changes;
}

PyObject* World::make_overlay(PyObject* target, int at, bool is_globals) {
  if (PyObject* known = overlay_of(target)) return known;
  const nb::dict changes;
  overlay_index_[keep(target)] = overlays_.size();
  overlays_.push_back({target, at, keep(changes.ptr()), is_globals});
  return changes.ptr();
}

PyObject* World::getattr(PyObject* o, PyObject* name) {
  bool unbound = false;
  PyObject* found = get_method(o, name, &unbound);
  if (!unbound || !found) return found;
  const nb::object method = nb::steal(found);
  return bind(method.ptr(), o, Py_TYPE(o));
}

PyObject* World::get_method(PyObject* o, PyObject* name, bool* unbound) {
  PyTypeObject* type = Py_TYPE(o);
  if (is_opaque(o))
    return stop(fmt::format("attribute '{}' of a {} is not captured", PyUnicode_AsUTF8(name), type->tp_name));
  if (PyModule_Check(o)) return attribute_of_module(o, name);
  if (PyType_Check(o)) return attribute_of_type(reinterpret_cast<PyTypeObject*>(o), name);
  if (type == &PySuper_Type) return attribute_of_super(o, name);
  if (as_tensor(o)) return attribute_of_tensor(o, name, unbound);
  if (!is_python_class(type)) {
    if (PyFunction_Check(o)) return attribute_of_function(o, name);
    if (!builtins().is_plain(type))
      return stop(
          fmt::format("attribute '{}' of a {} is not captured", PyUnicode_AsUTF8(name), type->tp_name));
    PyObject* method = nullptr;
    if (_PyObject_GetMethod(o, name, &method) == 1) *unbound = true;
    return method;
  }
  static PyObject *getattribute = intern("__getattribute__"), *fallback = intern("__getattr__");
  PyObject* own = type_attribute(type, getattribute);
  if (own && PyFunction_Check(own)) {
    PyObject* args[] = {o, name};
    PyObject* r = call(own, args, 2, nullptr);
    if (r || stopped_ || !PyErr_ExceptionMatches(PyExc_AttributeError)) return r;
  } else {
    PyObject* r = generic_attribute(o, name, unbound);
    if (r || stopped_ || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError))) return r;
  }
  PyObject* hook = type_attribute(type, fallback);
  if (!hook) {
    if (!PyErr_Occurred()) no_attribute(o, name);
    return nullptr;
  }
  PyErr_Clear();
  if (hook == builtins().module_getattr()) {
    bool found = false;
    PyObject* r = attribute_of_nn_module(o, name, &found);
    if (found || PyErr_Occurred()) return r;
    return no_attribute(o, name);
  }
  PyObject* args[] = {o, name};
  return call(hook, args, 2, nullptr);
}

// What object.__getattribute__ does. Null without an error: there is no such attribute.
PyObject* World::generic_attribute(PyObject* o, PyObject* name, bool* unbound) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject* descriptor = type_attribute(type, name);
  if (descriptor && is_data_descriptor(descriptor)) return bind(descriptor, o, type);
  bool found = false;
  PyObject* value = instance_attribute(o, name, &found);
  if (found || PyErr_Occurred()) return value;
  if (!descriptor) return nullptr;
  if (unbound && Py_TYPE(descriptor)->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) {
    *unbound = true;
    return Py_NewRef(descriptor);
  }
  if (Py_TYPE(descriptor)->tp_descr_get) return bind(descriptor, o, type);
  return wrap(descriptor, place(Step::TypeItem, constant(as_object(type)), name));
}

PyObject* World::instance_attribute(PyObject* o, PyObject* name, bool* found) {
  *found = true;
  if (auto it = full_dicts_.find(o); it != full_dicts_.end()) {
    PyObject* value = PyDict_GetItemWithError(it->second, name);
    *found = value != nullptr;
    return Py_XNewRef(value);
  }
  const int at = place_of(o);
  if (PyObject* changes = overlay_of(o)) {
    if (PyObject* value = PyDict_GetItemWithError(changes, name)) {
      *found = value != deleted();
      return *found ? Py_NewRef(value) : nullptr;
    }
  }
  PyObject** dict = _PyObject_GetDictPtr(original(o));
  PyObject* value = dict && *dict ? PyDict_GetItemWithError(*dict, name) : nullptr;
  if (at < 0) {
    *found = value != nullptr;
    return Py_XNewRef(value);
  }
  if (!dict) {
    *found = false;
    return nullptr;
  }
  const int inner = place(Step::Instance, at, name);
  if (value) return wrap(value, inner);
  expect(inner, Check::Absent);
  *found = false;
  return nullptr;
}

// The object's __dict__ as the capture sees it.
PyObject* World::instance_dict(PyObject* o) {
  if (auto it = full_dicts_.find(o); it != full_dicts_.end()) return Py_NewRef(it->second);
  PyObject** dict = _PyObject_GetDictPtr(original(o));
  if (!dict) return no_attribute(o, nb::str("__dict__").ptr());
  if (!*dict) *dict = PyDict_New();
  const int at = place_of(o);
  if (at < 0) return Py_NewRef(*dict);
  PyObject* shadow = wrap(*dict, place(Step::Dictionary, at));
  if (!shadow) return nullptr;
  if (PyObject* changes = overlay_of(o)) {
    PyObject *key, *value;
    for (Py_ssize_t k = 0; PyDict_Next(changes, &k, &key, &value);) {
      if (value != deleted())
        PyDict_SetItem(shadow, key, value);
      else if (PyDict_Contains(shadow, key) == 1)
        PyDict_DelItem(shadow, key);
    }
    PyDict_Clear(changes);
  }
  full_dicts_[o] = shadow;
  return shadow;
}

PyObject* World::bind(PyObject* d, PyObject* o, PyTypeObject* type) {
  if (PyFunction_Check(d)) return PyMethod_New(d, o);
  if (Py_TYPE(d) == &PyProperty_Type) {
    const nb::object getter = nb::handle(d).attr("fget");
    if (getter.is_none()) {
      PyErr_SetString(PyExc_AttributeError, "unreadable attribute");
      return nullptr;
    }
    return call(getter.ptr(), &o, 1, nullptr);
  }
  if (Py_TYPE(d) == &PyMemberDescr_Type) {
    if (place_of(o) < 0) return Py_TYPE(d)->tp_descr_get(d, o, as_object(type));
    const int inner = place(Step::Slot, place_of(o), d);
    const auto* member = reinterpret_cast<PyMemberDescrObject*>(d)->d_member;
    if (member->type != T_OBJECT_EX)
      return stop(fmt::format("attribute '{}' of a {} is not captured", member->name, type->tp_name));
    PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(original(o)) + member->offset);
    if (PyObject* changes = overlay_of(o))
      if (PyObject* changed = PyDict_GetItemString(changes, member->name)) {
        if (changed != deleted()) return Py_NewRef(changed);
        PyErr_SetString(PyExc_AttributeError, member->name);
        return nullptr;
      }
    if (value) return wrap(value, inner);
    expect(inner, Check::Absent);
    PyErr_SetString(PyExc_AttributeError, member->name);
    return nullptr;
  }
  if (Py_TYPE(d) == &PyGetSetDescr_Type) {
    const char* name = reinterpret_cast<PyGetSetDescrObject*>(d)->d_getset->name;
    if (!strcmp(name, "__dict__")) return instance_dict(o);
    if (!strcmp(name, "__class__")) return Py_NewRef(as_object(type));
    if (place_of(o) >= 0)
      return stop(fmt::format("attribute '{}' of a {} is not captured", name, type->tp_name));
  }
  return checked(Py_TYPE(d)->tp_descr_get(d, o, as_object(type)));
}

PyObject* World::attribute_of_nn_module(PyObject* o, PyObject* name, bool* found) {
  static PyObject* const registries[] = {intern("_parameters"), intern("_buffers"), intern("_modules")};
  *found = true;
  for (PyObject* registry : registries) {
    const int at = place_of(o);
    PyObject** dict = _PyObject_GetDictPtr(original(o));
    PyObject* real = dict && *dict ? PyDict_GetItem(*dict, registry) : nullptr;
    const bool untouched = at >= 0 && real && PyDict_CheckExact(real) && !shadow_index_.count(real) &&
                           !full_dicts_.count(o) && !overlay_of(o);
    if (untouched) {
      const int table = place(Step::Instance, at, registry);
      expect(table, Check::Type, as_object(&PyDict_Type));
      PyObject* value = PyDict_GetItemWithError(real, name);
      const int inner = place(Step::DictItem, table, name);
      if (value) return wrap(value, inner);
      expect(inner, Check::Absent);
      continue;
    }
    bool has = false;
    const nb::object contents = nb::steal(instance_attribute(o, registry, &has));
    if (!has) {
      if (PyErr_Occurred()) return nullptr;
      continue;
    }
    if (PyObject* value = PyDict_GetItemWithError(contents.ptr(), name)) return Py_NewRef(value);
    if (PyErr_Occurred()) return nullptr;
  }
  *found = false;
  return nullptr;
}

PyObject* World::attribute_of_tensor(PyObject* o, PyObject* name, bool* unbound) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject* descriptor = type_attribute(type, name);
  if (is_text(name, "__dict__")) return stop("the __dict__ of a tensor is not captured");
  if (!descriptor) {
    bool found = false;
    PyObject* value = instance_attribute(o, name, &found);
    if (found || PyErr_Occurred()) return value;
    static PyObject* fallback = intern("__getattr__");
    if (PyObject* hook = type_attribute(type, fallback)) {
      PyObject* args[] = {o, name};
      return call(hook, args, 2, nullptr);
    }
    return no_attribute(o, name);
  }
  if (Py_TYPE(descriptor)->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) {
    *unbound = true;
    return Py_NewRef(descriptor);
  }
  if (!Py_TYPE(descriptor)->tp_descr_get)
    return wrap(descriptor, place(Step::TypeItem, constant(as_object(type)), name));
  if (Py_TYPE(descriptor) == &PyProperty_Type) return bind(descriptor, o, type);
  return operation("getattr", {o, name}, [&] {
    return checked(Py_TYPE(descriptor)->tp_descr_get(descriptor, o, as_object(type)));
  });
}

PyObject* World::attribute_of_function(PyObject* o, PyObject* name) {
  const bool constant_text = is_text(name, "__name__") || is_text(name, "__qualname__") ||
                             is_text(name, "__module__") || is_text(name, "__doc__") ||
                             is_text(name, "__code__");
  if (constant_text || place_of(o) < 0) return PyObject_GetAttr(o, name);
  if (_PyType_Lookup(&PyFunction_Type, name))
    return is_text(name, "__dict__")
               ? instance_dict(o)
               : stop(fmt::format("{} of a function is not captured", PyUnicode_AsUTF8(name)));
  bool found = false;
  PyObject* value = instance_attribute(o, name, &found);
  return found || PyErr_Occurred() ? value : no_attribute(o, name);
}

PyObject* World::attribute_of_module(PyObject* module, PyObject* name) {
  PyObject* dict = PyModule_GetDict(module);
  if (PyObject* changes = overlay_of(dict))
    if (PyObject* value = PyDict_GetItemWithError(changes, name); value && value != deleted())
      return Py_NewRef(value);
  const int inner = place(Step::DictItem, constant(dict), name);
  if (PyObject* value = PyDict_GetItemWithError(dict, name)) return wrap(value, inner);
  if (PyErr_Occurred()) return nullptr;
  static PyObject* fallback = intern("__getattr__");
  if (PyObject* hook = PyDict_GetItemWithError(dict, fallback)) {
    // A package that loads its parts late: an import.
    const nb::object value = nb::steal(checked(call_outside(hook, &name, 1, nullptr)));
    if (value.is_valid())
      return wrap(value.ptr(), PyDict_GetItem(dict, name) == value.ptr() ? inner : constant(value.ptr()));
    expect(inner, Check::Absent);
    return nullptr;
  }
  expect(inner, Check::Absent);
  if (_PyType_Lookup(Py_TYPE(module), name))
    return stop(fmt::format("attribute '{}' of a module is not captured", PyUnicode_AsUTF8(name)));
  if (PyObject* hook =
          is_python_class(Py_TYPE(module)) ? type_attribute(Py_TYPE(module), fallback) : nullptr) {
    PyObject* args[] = {module, name};
    const nb::object value = nb::steal(checked(call_outside(hook, args, 2, nullptr)));
    return value.is_valid() ? wrap(value.ptr(), constant(value.ptr())) : nullptr;
  }
  PyErr_Format(PyExc_AttributeError, "module '%s' has no attribute '%U'", PyModule_GetName(module), name);
  return nullptr;
}

PyObject* World::attribute_of_type(PyTypeObject* type, PyObject* name) {
  PyTypeObject* meta = Py_TYPE(type);
  static PyObject* fallback = intern("__getattr__");
  if (is_text(name, "__dict__")) return stop("the __dict__ of a class is not captured");
  PyObject* of_meta = type_attribute(meta, name);
  if (of_meta && is_data_descriptor(of_meta)) {
    if (Py_TYPE(of_meta) == &PyProperty_Type) return bind(of_meta, as_object(type), meta);
    guard_type(type);
    return checked(PyObject_GetAttr(as_object(type), name));
  }
  if (PyObject* own = type_attribute(type, name)) {
    descrgetfunc get = Py_TYPE(own)->tp_descr_get;
    if (PyFunction_Check(own) || (!get && builtins().is_constant(own))) return Py_NewRef(own);
    if (get) return checked(get(own, nullptr, as_object(type)));
    return wrap(own, place(Step::TypeItem, constant(as_object(type)), name));
  }
  if (of_meta) return bind(of_meta, as_object(type), meta);
  if (PyObject* hook = type_attribute(meta, fallback)) {
    PyObject* args[] = {as_object(type), name};
    return call(hook, args, 2, nullptr);
  }
  PyErr_Format(PyExc_AttributeError, "type object '%.100s' has no attribute '%U'", type->tp_name, name);
  return nullptr;
}

PyObject* World::attribute_of_super(PyObject* super, PyObject* name) {
  struct Super {
    PyObject_HEAD PyTypeObject* type;
    PyObject* object;
    PyTypeObject* object_type;
  };
  const auto* s = reinterpret_cast<Super*>(super);
  if (!s->object_type || is_text(name, "__class__")) return checked(PyObject_GetAttr(super, name));
  guard_type(s->object_type);
  PyObject* order = s->object_type->tp_mro;
  Py_ssize_t k = 0;
  const Py_ssize_t n = PyTuple_GET_SIZE(order);
  while (k < n && PyTuple_GET_ITEM(order, k) != as_object(s->type)) ++k;
  for (++k; k < n; ++k) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, k));
    PyObject* found = PyDict_GetItemWithError(dict_of_type(base), name);
    if (!found) continue;
    const bool on_class = s->object == as_object(s->object_type);
    if (Py_TYPE(found)->tp_descr_get) {
      if (on_class) return checked(Py_TYPE(found)->tp_descr_get(found, nullptr, as_object(s->object_type)));
      return bind(found, s->object, s->object_type);
    }
    guard_type(base);
    return wrap(found, place(Step::TypeItem, constant(as_object(base)), name));
  }
  return checked(PyObject_GetAttr(super, name));
}

// --- writing ---

int World::setattr(PyObject* o, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(o);
  const auto refuse = [&] {
    stop(fmt::format("setting '{}' of a {} is not captured", PyUnicode_AsUTF8(name), type->tp_name));
    return -1;
  };
  if (is_opaque(o) || PyModule_Check(o) || PyType_Check(o)) return refuse();
  if (as_tensor(o)) {
    if (is_text(name, "data") || (is_text(name, "requires_grad") && place_of(o) >= 0) ||
        (place_of(o) >= 0 && !type_attribute(type, name)))
      return refuse();
    const auto change = [&] {
      const int r = value ? PyObject_SetAttr(o, name, value) : PyObject_DelAttr(o, name);
      return r < 0 ? checked(nullptr) : Py_NewRef(Py_None);
    };
    if (!value && recorder) return refuse();
    PyObject* done = value ? operation("setattr", {o, name, value}, change) : change();
    Py_XDECREF(done);
    return done ? 0 : -1;
  }
  if (!is_python_class(type)) {
    if (place_of(o) >= 0) return refuse();
    return value ? PyObject_SetAttr(o, name, value) : PyObject_DelAttr(o, name);
  }
  static PyObject *set = intern("__setattr__"), *del = intern("__delattr__");
  PyObject* own = type_attribute(type, value ? set : del);
  if (own && PyFunction_Check(own)) {
    PyObject* args[] = {o, name, value};
    PyObject* r = call(own, args, value ? 3 : 2, nullptr);
    Py_XDECREF(r);
    return r ? 0 : -1;
  }
  return generic_setattr(o, name, value);
}

// What object.__setattr__ does.
int World::generic_setattr(PyObject* o, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(o);
  const int at = place_of(o);
  PyObject* d = type_attribute(type, name);
  if (d && Py_TYPE(d) == &PyProperty_Type) {
    const nb::object setter = nb::handle(d).attr(value ? "fset" : "fdel");
    if (setter.is_none()) {
      PyErr_Format(PyExc_AttributeError, "property '%U' of '%s' object has no %s", name, type->tp_name,
                   value ? "setter" : "deleter");
      return -1;
    }
    PyObject* args[] = {o, value};
    PyObject* r = call(setter.ptr(), args, value ? 2 : 1, nullptr);
    Py_XDECREF(r);
    return r ? 0 : -1;
  }
  const bool is_slot = d && Py_TYPE(d) == &PyMemberDescr_Type;
  if (d && is_data_descriptor(d) && !(is_slot && at >= 0)) {
    if (Py_TYPE(d) == &PyGetSetDescr_Type &&
        (at >= 0 || is_text(name, "__dict__") || is_text(name, "__class__"))) {
      stop(fmt::format("setting '{}' of a {} is not captured", PyUnicode_AsUTF8(name), type->tp_name));
      return -1;
    }
    const int r = Py_TYPE(d)->tp_descr_set(d, o, value);
    if (r < 0 || stopped_) checked(nullptr);
    return stopped_ ? -1 : r;
  }
  if (at < 0) return PyObject_GenericSetAttr(o, name, value);
  if (auto it = full_dicts_.find(o); it != full_dicts_.end() && !is_slot) {
    if (value) return PyDict_SetItem(it->second, name, value);
    if (PyDict_Contains(it->second, name) == 1) return PyDict_DelItem(it->second, name);
    no_attribute(o, name);
    return -1;
  }
  if (!is_slot && !_PyObject_GetDictPtr(original(o))) {
    no_attribute(o, name);
    return -1;
  }
  if (!value) {
    bool found = false;
    const nb::object old = nb::steal(instance_attribute(o, name, &found));
    if (!found) {
      if (!PyErr_Occurred()) no_attribute(o, name);
      return -1;
    }
  }
  return PyDict_SetItem(make_overlay(o, at, false), name, value ? value : deleted());
}

// --- globals, cells, imports ---

PyObject* World::global(Frame* f, PyObject* name) {
  PyObject *globals = f->f_globals, *builtin = f->f_builtins;
  if (PyObject* changes = overlay_of(globals)) {
    PyObject* value = PyDict_GetItemWithError(changes, name);
    if (value && value != deleted()) return Py_NewRef(value);
    if (value) {
      PyErr_Format(PyExc_NameError, "name '%U' is not defined", name);
      return nullptr;
    }
  }
  PyObject* value = PyDict_GetItemWithError(globals, name);
  PyObject* from_builtins =
      value || !PyDict_Check(builtin) ? nullptr : PyDict_GetItemWithError(builtin, name);
  if (PyErr_Occurred()) return nullptr;
  if (globals == root_->f_globals) {
    const int at = place(Step::Globals, -1, name);
    if (value || from_builtins) return wrap(value ? value : from_builtins, at);
    expect(at, Check::Absent);
  } else {
    const int at = place(Step::DictItem, constant(globals), name);
    if (value) return wrap(value, at);
    expect(at, Check::Absent);
    if (from_builtins) return wrap(from_builtins, place(Step::DictItem, constant(builtin), name));
  }
  PyErr_Format(PyExc_NameError, "name '%U' is not defined", name);
  return nullptr;
}

int World::set_global(Frame* f, PyObject* name, PyObject* value) {
  if (!value) {
    const nb::object old = nb::steal(global(f, name));
    if (!old.is_valid()) return -1;
  }
  return PyDict_SetItem(make_overlay(f->f_globals, -1, true), name, value ? value : deleted());
}

PyObject* World::free_cell(Frame* f, Py_ssize_t k) {
  auto* function = reinterpret_cast<PyObject*>(function_of(f));
  PyObject* cell = PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(function), k);
  if (made_cell(cell)) return Py_NewRef(cell);
  if (auto it = shadow_index_.find(cell); it != shadow_index_.end())
    return Py_NewRef(shadows_[it->second].shadow);
  int at = place_of(function);
  if (at < 0)
    at = code_of(f) == code_of(root_) && function_of(f) == function_of(root_) ? place(Step::Function, -1)
                                                                              : constant(function);
  return wrap(cell, place(Step::FreeCell, at, nullptr, k));
}

namespace {

/// Values that are the same for everyone.
bool needs_no_place(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyType_Check(o);
}

}  // namespace

bool World::take_defaults(Frame* f) {
  auto* function = reinterpret_cast<PyObject*>(function_of(f));
  PyObject *defaults = PyFunction_GET_DEFAULTS(function),
           *keyword_defaults = PyFunction_GET_KW_DEFAULTS(function);
  if (was_made(function)) return true;
  const int at = place_of(function) >= 0 ? place_of(function) : constant(function);
  PyCodeObject* code = code_of(f);
  expect(place(Step::Code, at), Check::Identity, reinterpret_cast<PyObject*>(code));
  const auto replace = [&](int slot, int where) {
    PyObject* seen = wrap(locals_of(f)[slot], where);
    if (!seen) return false;
    Py_SETREF(locals_of(f)[slot], seen);
    return true;
  };
  if (defaults) {
    const int tuple = place(Step::Defaults, at);
    expect(tuple, Check::Identity, defaults);
    const auto n = static_cast<int>(PyTuple_GET_SIZE(defaults));
    for (int k = 0; k < n; ++k) {
      const int slot = code->co_argcount - n + k;
      PyObject* value = PyTuple_GET_ITEM(defaults, k);
      if (locals_of(f)[slot] != value || needs_no_place(value)) continue;
      if (!replace(slot, place(Step::TupleItem, tuple, nullptr, k))) return false;
    }
  }
  for (int k = 0; keyword_defaults && k < code->co_kwonlyargcount; ++k) {
    const int slot = code->co_argcount + k;
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, slot);
    PyObject* value = PyDict_GetItemWithError(keyword_defaults, name);
    if (!value || locals_of(f)[slot] != value) continue;
    if (!replace(slot, place(Step::DictItem, place(Step::KeywordDefaults, at), name))) return false;
  }
  return true;
}

bool World::take_cells(Frame* f) {
  PyCodeObject* code = code_of(f);
  const int first_free = code->co_nlocalsplus - code->co_nfreevars;
  for (int k = 0; k < code->co_nlocalsplus; ++k) {
    PyObject*& slot = locals_of(f)[k];
    if (!slot || !PyCell_Check(slot)) continue;
    if (k < first_free) {
      if (PyBytes_AS_STRING(code->co_localspluskinds)[k] & CO_FAST_CELL) note_cell(slot);
      continue;
    }
    PyObject* cell = free_cell(f, k - first_free);
    if (!cell) return false;
    Py_SETREF(slot, cell);
  }
  return true;
}

PyObject* World::import_name(Frame* f, PyObject* name, PyObject* from, PyObject* level) {
  static PyObject* import = PyDict_GetItemString(PyEval_GetBuiltins(), "__import__");
  PyObject* now = PyDict_Check(f->f_builtins) ? PyDict_GetItemString(f->f_builtins, "__import__") : nullptr;
  if (now != import) return stop("an import through another __import__ is not captured");
  nb::object full = nb::borrow(name);
  if (const long up = PyLong_AsLong(level); up > 0) {
    PyObject* package = PyDict_GetItemString(f->f_globals, "__package__");
    if (!package || !PyUnicode_Check(package))
      return stop("a relative import without a package is not captured");
    std::string path = PyUnicode_AsUTF8(package);
    for (long k = 1; k < up; ++k) path.resize(path.rfind('.') == std::string::npos ? 0 : path.rfind('.'));
    if (PyUnicode_GET_LENGTH(name) > 0) path += std::string(".") + PyUnicode_AsUTF8(name);
    full = nb::str(path.c_str());
  }
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* module = PyDict_GetItemWithError(modules, full.ptr());
  if (!module) return stop(fmt::format("the import of {} is not captured", PyUnicode_AsUTF8(full.ptr())));
  expect(place(Step::DictItem, constant(modules), full.ptr()), Check::Identity, module);
  return checked(PyImport_ImportModuleLevelObject(name, f->f_globals, nullptr, from,
                                                  static_cast<int>(PyLong_AsLong(level))));
}

}  // namespace fl::python::capture
#endif
