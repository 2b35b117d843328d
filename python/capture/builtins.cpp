#include "builtins.h"

#if FLAMBEAU_CAPTURE
#include <cstring>

#include "flambeau/ops/functions.h"
#include "hook.h"
#include "world.h"

namespace fl::python::capture {
namespace {

nb::handle type_handle(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

PyObject* bad_count(const char* name, size_t count) {
  PyErr_Format(PyExc_TypeError, "%s() got %zu arguments", name, count);
  return nullptr;
}

PyObject* get_attribute(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count < 2 || count > 3) return bad_count("getattr", count);
  if (!PyUnicode_Check(args[1])) {
    PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'", Py_TYPE(args[1])->tp_name);
    return nullptr;
  }
  PyObject* r = w.getattr(args[0], args[1]);
  if (r || count == 2 || w.stopped() || !PyErr_ExceptionMatches(PyExc_AttributeError)) return r;
  PyErr_Clear();
  return Py_NewRef(args[2]);
}

PyObject* has_attribute(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 2) return bad_count("hasattr", count);
  PyObject* r = w.getattr(args[0], args[1]);
  if (!r && (w.stopped() || !PyErr_ExceptionMatches(PyExc_AttributeError))) return nullptr;
  if (!r) PyErr_Clear();
  const bool has = r != nullptr;
  Py_XDECREF(r);
  return PyBool_FromLong(has);
}

PyObject* set_attribute(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 3) return bad_count("setattr", count);
  return w.setattr(args[0], args[1], args[2]) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* delete_attribute(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 2) return bad_count("delattr", count);
  return w.setattr(args[0], args[1], nullptr) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* object_setattr(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 3) return bad_count("__setattr__", count);
  return w.generic_setattr(args[0], args[1], args[2]) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* object_delattr(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 2) return bad_count("__delattr__", count);
  return w.generic_setattr(args[0], args[1], nullptr) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* object_getattribute(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 2) return bad_count("__getattribute__", count);
  PyObject* r = w.generic_attribute(args[0], args[1], nullptr);
  if (!r && !PyErr_Occurred())
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(args[0])->tp_name,
                 args[1]);
  return r;
}

PyObject* variables(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 1) return w.stop("vars() of the frame is not captured");
  return w.getattr(args[0], nb::str("__dict__").ptr());
}

PyObject* is_instance(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 2) return bad_count("isinstance", count);
  if (is_sym_int(args[0])) {  // an int to the program
    const nb::object zero = nb::int_(0);
    return PyBool_FromLong(PyObject_IsInstance(zero.ptr(), args[1]));
  }
  const int r = PyObject_IsInstance(args[0], args[1]);
  return w.checked(r < 0 ? nullptr : PyBool_FromLong(r));
}

PyObject* type_of(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (count == 1 && !keywords)
    return Py_NewRef(reinterpret_cast<PyObject*>(is_sym_int(args[0]) ? &PyLong_Type : Py_TYPE(args[0])));
  return w.checked(PyObject_Vectorcall(reinterpret_cast<PyObject*>(&PyType_Type), args, count, keywords));
}

// The address of an object from outside, which it then has to stay.
PyObject* identity_of(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 1) return bad_count("id", count);
  w.keep_identity(args[0]);
  PyObject* number = PyLong_FromVoidPtr(w.original(args[0]));
  if (w.place_of(args[0]) < 0) w.note_address(args[0], number);
  return number;
}

/// Whether a class leaves it to object how it is copied.
bool copies_as_object(PyTypeObject* type, const char* method) {
  const nb::object own = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), method));
  const nb::object base =
      nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), method));
  if (!own.is_valid()) PyErr_Clear();
  return own.is_valid() && own.is(base);
}

// object.__reduce_ex__ of an object from outside: its class and what it holds.
PyObject* reduce_outside(World& w, PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (!copies_as_object(type, "__reduce__") || !copies_as_object(type, "__getstate__") ||
      !type->tp_dictoffset)
    return w.stop(fmt::format("copying a {} is not captured", type->tp_name));
  // The first copy of an object of a class leaves a note in the class.
  if (!PyDict_GetItemString(dict_of_type(type), "__slotnames__"))
    return w.stop(fmt::format("the first copy of a {} is not captured", type->tp_name));
  const nb::object state = nb::steal(w.instance_dict(o));
  if (!state.is_valid()) return nullptr;
  static PyObject* make = nb::object(nb::module_::import_("copyreg").attr("__newobj__")).release().ptr();
  const nb::object copy = nb::steal(PyDict_Copy(state.ptr()));
  return Py_BuildValue("(O(O)O)", make, reinterpret_cast<PyObject*>(type), copy.ptr());
}

// inspect.signature: follows from the function alone, and takes a long way to it.
PyObject* signature_of(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  static PyObject* function = nb::object(nb::module_::import_("inspect").attr("signature")).release().ptr();
  if (count < 1 || (!PyFunction_Check(args[0]) && !PyMethod_Check(args[0]) && !PyType_Check(args[0])))
    return w.stop("the signature of an object that is neither a function nor a class is not captured");
  return w.checked(call_outside(function, args, count, keywords));
}

PyObject* is_capturing(World&, PyObject* const*, size_t, PyObject*) { return Py_NewRef(Py_True); }

}  // namespace

Builtins::Builtins() {
  const nb::module_ b = nb::module_::import_("builtins");
  const auto add = [&](nb::handle module, std::initializer_list<const char*> names) {
    for (const char* n : names)
      if (nb::hasattr(module, n)) pure_.insert(nb::object(module.attr(n)).release().ptr());
  };
  const auto add_all = [&](const char* name) {
    const nb::module_ m = nb::module_::import_(name);
    for (nb::handle n : nb::borrow<nb::list>(PyObject_Dir(m.ptr()))) {
      const nb::object o = m.attr(nb::str(n));
      if (PyCFunction_Check(o.ptr())) pure_.insert(nb::object(o).release().ptr());
    }
  };
  add(b, {"abs",      "all",        "any",    "ascii",  "bin",
          "callable", "chr",        "divmod", "format", "hash",
          "hex",      "issubclass", "iter",   "len",    "max",
          "min",      "next",       "oct",    "ord",    "pow",
          "repr",     "round",      "sorted", "sum",    "__build_class__"});
  add_all("math");
  add_all("_operator");
  add(nb::module_::import_("functools"), {"reduce", "cmp_to_key"});
  add(nb::module_::import_("itertools"), {"tee"});
  add(nb::module_::import_("sys"), {"intern", "getsizeof", "is_finalizing"});
  add(nb::module_::import_("_abc"), {"_abc_instancecheck", "_abc_subclasscheck", "get_cache_token"});

  const auto intrinsic = [&](nb::handle f, Intrinsic i) {
    intrinsics_[nb::object(nb::borrow(f)).release().ptr()] = i;
  };
  intrinsic(b.attr("getattr"), get_attribute);
  intrinsic(b.attr("hasattr"), has_attribute);
  intrinsic(b.attr("setattr"), set_attribute);
  intrinsic(b.attr("delattr"), delete_attribute);
  intrinsic(b.attr("vars"), variables);
  intrinsic(b.attr("id"), identity_of);
  intrinsic(nb::module_::import_("inspect").attr("signature"), signature_of);
  intrinsic(b.attr("isinstance"), is_instance);
  intrinsic(b.attr("type"), type_of);
  const nb::handle object = type_handle(&PyBaseObject_Type);
  intrinsic(object.attr("__setattr__"), object_setattr);
  intrinsic(object.attr("__delattr__"), object_delattr);
  intrinsic(object.attr("__getattribute__"), object_getattribute);
  intrinsic(nb::module_::import_("flambeau._C").attr("_is_capturing"), is_capturing);

  const nb::module_ functools = nb::module_::import_("functools"),
                    collections = nb::module_::import_("collections");
  const auto type = [](const nb::object& o) {
    return reinterpret_cast<PyTypeObject*>(nb::object(o).release().ptr());
  };
  partial = type(functools.attr("partial"));
  lru_cache = type(functools.attr("_lru_cache_wrapper"));
  deque = type(collections.attr("deque"));
  default_dict = type(collections.attr("defaultdict"));
  default_factory = collections.attr("defaultdict").attr("__dict__").attr("__getitem__")("default_factory");
  size = type(nb::module_::import_("flambeau._C").attr("Size"));
  enum_type = type(nb::module_::import_("enum").attr("EnumMeta"));
  const nb::module_ own = nb::module_::import_("flambeau._C");
  for (const char* name :
       {"dtype", "device", "layout", "memory_format", "Generator", "DispatchKey", "DispatchKeySet"})
    constant_types_.insert(type(own.attr(name)));
  unsupported_error = nb::module_::import_("flambeau._C").attr("UnsupportedError");
  internal_error = nb::module_::import_("flambeau._C").attr("InternalError");
  const nb::handle sample = nb::handle(Py_None);
  method_wrapper = Py_TYPE(nb::object(sample.attr("__str__")).ptr());
  wrapper_descriptor = Py_TYPE(nb::object(object.attr("__setattr__")).ptr());
  method_descriptor = &PyMethodDescr_Type;
  class_method_descriptor = &PyClassMethodDescr_Type;

  for (PyTypeObject* t : {&PyBaseObject_Type,
                          Py_TYPE(Py_None),
                          &PyBool_Type,
                          &PyLong_Type,
                          &PyFloat_Type,
                          &PyComplex_Type,
                          &PyUnicode_Type,
                          &PyBytes_Type,
                          &PyByteArray_Type,
                          &PyList_Type,
                          &PyTuple_Type,
                          &PyDict_Type,
                          &PySet_Type,
                          &PyFrozenSet_Type,
                          &PyRange_Type,
                          &PySlice_Type,
                          &PyFunction_Type,
                          &PyMethod_Type,
                          &PyCFunction_Type,
                          &PyType_Type,
                          &PyEnum_Type,
                          &PyZip_Type,
                          &PyMap_Type,
                          &PyFilter_Type,
                          &PyReversed_Type,
                          &PyGen_Type,
                          &PyCell_Type,
                          Py_TYPE(Py_Ellipsis),
                          Py_TYPE(Py_NotImplemented),
                          &PyODict_Type,
                          &PyProperty_Type,
                          &PyStaticMethod_Type,
                          &PyClassMethod_Type,
                          &PySuper_Type,
                          &PyDictKeys_Type,
                          &PyDictValues_Type,
                          &PyDictItems_Type,
                          &PyDictIterKey_Type,
                          &PyDictIterValue_Type,
                          &PyDictIterItem_Type,
                          &PyDictRevIterKey_Type,
                          &PyDictRevIterValue_Type,
                          &PyDictRevIterItem_Type,
                          &PyListIter_Type,
                          &PyListRevIter_Type,
                          &PyTupleIter_Type,
                          &PyRangeIter_Type,
                          &PyLongRangeIter_Type,
                          &PySetIter_Type,
                          &PyUnicodeIter_Type,
                          &PyBytesIter_Type,
                          &PySeqIter_Type,
                          &PyCallIter_Type,
                          &PyMethodDescr_Type,
                          &PyWrapperDescr_Type,
                          &PyMemberDescr_Type,
                          &PyGetSetDescr_Type,
                          &PyClassMethodDescr_Type,
                          method_wrapper,
                          partial,
                          deque,
                          default_dict,
                          &PyODictIter_Type,
                          &PyODictKeys_Type,
                          &PyODictValues_Type,
                          &PyODictItems_Type})
    plain_.insert(t);
  for (const char* name : {"accumulate", "chain", "combinations", "combinations_with_replacement", "compress",
                           "count", "cycle", "dropwhile", "filterfalse", "groupby", "islice", "pairwise",
                           "permutations", "product", "repeat", "starmap", "takewhile", "zip_longest"})
    plain_.insert(type(nb::module_::import_("itertools").attr(name)));
  plain_.insert(Py_TYPE(nb::object(nb::str("a").attr("__iter__")()).ptr()));  // of ASCII alone
  for (const char* name : {"itemgetter"}) plain_.insert(type(nb::module_::import_("operator").attr(name)));
  const nb::module_ types = nb::module_::import_("types");
  for (const char* name : {"GenericAlias", "UnionType", "SimpleNamespace", "CodeType"})
    plain_.insert(type(types.attr(name)));
  plain_.insert(Py_TYPE(nb::object(collections.attr("deque")().attr("__iter__")()).ptr()));
  plain_.insert(
      Py_TYPE(nb::object(nb::module_::import_("functools").attr("cmp_to_key")(b.attr("len"))).ptr()));
  for (nb::handle n : nb::borrow<nb::list>(PyObject_Dir(b.ptr()))) {
    const nb::object o = b.attr(nb::str(n));
    if (PyExceptionClass_Check(o.ptr())) plain_.insert(type(o));
  }
}

Intrinsic Builtins::intrinsic(PyObject* function) const {
  auto it = intrinsics_.find(function);
  return it == intrinsics_.end() ? nullptr : it->second;
}

bool Builtins::is_of_library(PyTypeObject* type) {
  if (nb::type_check(nb::handle(reinterpret_cast<PyObject*>(type)))) return true;
  return strncmp(type->tp_name, "flambeau.", 9) == 0 || strncmp(type->tp_name, "nanobind.", 9) == 0;
}

bool Builtins::is_plain(PyTypeObject* type) const {
  if (plain_.count(type)) return true;
  if (!is_python_class(type))
    return is_of_library(type) || PyExceptionClass_Check(reinterpret_cast<PyObject*>(type));
  for (Py_ssize_t k = 1; k < PyTuple_GET_SIZE(type->tp_mro); ++k) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, k));
    if (!is_python_class(base) && !is_plain(base)) return false;
  }
  return true;
}

bool Builtins::is_constant(PyObject* o) const {
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyCFunction_Type) {  // a method of an object is more than a function
    PyObject* self = PyCFunction_GET_SELF(o);
    return !self || PyModule_Check(self) || PyType_Check(self);
  }
  return t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyGetSetDescr_Type ||
         t == &PyMemberDescr_Type || t == &PyClassMethodDescr_Type || t == &PyProperty_Type ||
         t == &PyStaticMethod_Type || t == &PyClassMethod_Type || t == &PyCode_Type || t == lru_cache ||
         t == &PyRange_Type || t == &PySlice_Type || PyWeakref_Check(o) || constant_types_.count(t) > 0 ||
         is_function_of_library(t);
}

bool Builtins::is_function_of_library(PyTypeObject* type) {
  return is_of_library(type) &&
         (strstr(type->tp_name, "nb_func") || strstr(type->tp_name, "nb_method") ||
          strstr(type->tp_name, "flambeau.Operator") || strstr(type->tp_name, "_Operator"));
}

bool Builtins::is_enumeration(PyObject* o) const { return PyType_IsSubtype(Py_TYPE(Py_TYPE(o)), enum_type); }

bool Builtins::is_named_result(PyTypeObject* type) const {
  return PyType_IsSubtype(type, &PyTuple_Type) && type != &PyTuple_Type && type != size &&
         is_of_library(type);
}

bool Builtins::is_tuple_of_values(PyObject* tuple) const {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); ++k) {
    PyObject* o = PyTuple_GET_ITEM(tuple, k);
    const bool fine = PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyFloat_CheckExact(o) ||
                      PyBool_Check(o) || o == Py_None || PyType_Check(o) ||
                      (PyTuple_CheckExact(o) && is_tuple_of_values(o));
    if (!fine) return false;
  }
  return true;
}

bool Builtins::is_forbidden(PyObject* function) const {
  static const std::unordered_set<std::string> names = {"numpy",
                                                        "data_ptr",
                                                        "_bytes",
                                                        "from_numpy",
                                                        "from_dlpack",
                                                        "__dlpack__",
                                                        "manual_seed",
                                                        "seed",
                                                        "set_state",
                                                        "get_state",
                                                        "initial_seed",
                                                        "set_offset",
                                                        "get_offset",
                                                        "_push_saved_tensor_hooks",
                                                        "_pop_saved_tensor_hooks",
                                                        "_push_torch_function_mode",
                                                        "_pop_torch_function_mode",
                                                        "_set_anomaly",
                                                        "untyped_storage",
                                                        "storage",
                                                        "_set_storage",
                                                        "_compile",
                                                        "register_hook",
                                                        "register_post_accumulate_grad_hook",
                                                        "set_num_threads",
                                                        "_break",
                                                        "_run_plainly",
                                                        "_clear_autocast_cache",
                                                        "share_memory_",
                                                        "set_default_dtype",
                                                        "_set_default_dtype",
                                                        "_set_inference",
                                                        "_tensor_on_storage",
                                                        "_make_wrapper_subclass",
                                                        "set_",
                                                        "resize_",
                                                        "resize_as_",
                                                        "__copy__",
                                                        "__deepcopy__"};
  nb::object name = nb::steal(PyObject_GetAttrString(function, "__name__"));
  if (!name.is_valid()) PyErr_Clear();
  return name.is_valid() && PyUnicode_Check(name.ptr()) && names.count(PyUnicode_AsUTF8(name.ptr())) > 0;
}

PyObject* Builtins::module_getattr() const {
  static PyObject* f = nb::object(nb::module_::import_("flambeau.nn")
                                      .attr("Module")
                                      .attr("__dict__")
                                      .attr("__getitem__")("__getattr__"))
                           .release()
                           .ptr();
  return f;
}

bool Builtins::is_module(PyObject* o) const {
  static PyObject* type = nb::object(nb::module_::import_("flambeau.nn").attr("Module")).release().ptr();
  return PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(type));
}

const Builtins& builtins() {
  static const auto* b = new Builtins;
  return *b;
}

// --- what the world lets C code do ---

bool World::is_plain_type(PyTypeObject* type) { return builtins().is_plain(type); }

bool World::may_use(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (is_opaque(o) || !is_plain_type(type)) {
    stop(fmt::format("an operation on a {} is not captured", type->tp_name));
    return false;
  }
  if (is_python_class(type)) guard_type(type);
  // Elements that C code would look into.
  if (!opaque_.empty() && (PyTuple_CheckExact(o) || PyList_CheckExact(o)))
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      if (is_opaque(PySequence_Fast_GET_ITEM(o, k)) && !may_use(PySequence_Fast_GET_ITEM(o, k))) return false;
  return true;
}

int World::truth(PyObject* o) {
  if (is_opaque(o)) {
    stop(fmt::format("the truth of a {} is not captured", Py_TYPE(o)->tp_name));
    return -1;
  }
  if (is_python_class(Py_TYPE(o))) guard_type(Py_TYPE(o));
  const int r = PyObject_IsTrue(o);
  if (r < 0 || stopped_) checked(nullptr);
  return stopped_ ? -1 : r;
}

PyObject* World::compare_identity(PyObject* a, PyObject* b, bool invert) {
  const bool same = a == b;
  if (!same && place_of(a) >= 0 && place_of(b) >= 0) differ(place_of(a), place_of(b));
  return PyBool_FromLong(same != invert);
}

PyObject* World::subscript(PyObject* o, PyObject* key) {
  if (!may_use(o, key)) return nullptr;
  return checked(PyObject_GetItem(o, key));
}

PyObject* World::iterate(PyObject* o) { return may_use(o) ? checked(PyObject_GetIter(o)) : nullptr; }

bool World::may_call(PyObject* f, PyObject* const* args, size_t count) {
  const Builtins& b = builtins();
  PyTypeObject* type = Py_TYPE(f);
  const auto name = [&] {
    nb::object n = nb::steal(PyObject_GetAttrString(f, "__qualname__"));
    PyErr_Clear();
    return n.is_valid() && PyUnicode_Check(n.ptr()) ? std::string(PyUnicode_AsUTF8(n.ptr()))
                                                    : std::string(type->tp_name);
  };
  bool fine = false;
  if (PyType_Check(f)) {
    fine = b.is_plain(reinterpret_cast<PyTypeObject*>(f));
    if (fine && is_python_class(reinterpret_cast<PyTypeObject*>(f))) {
      guard_type(reinterpret_cast<PyTypeObject*>(f));
      // An object of the capture would tell the world when it goes.
      static PyObject* finalizer = PyUnicode_InternFromString("__del__");
      fine = !_PyType_Lookup(reinterpret_cast<PyTypeObject*>(f), finalizer);
    }
    if (fine && is_python_class(type)) guard_type(type);
  } else if (PyCFunction_Check(f)) {
    PyObject* self = PyCFunction_GET_SELF(f);
    fine = b.is_pure(f);
    if (!fine && self && !PyModule_Check(self))
      fine = PyType_Check(self) ? b.is_plain(reinterpret_cast<PyTypeObject*>(self))
                                : !is_opaque(self) && b.is_plain(Py_TYPE(self));
    const std::string n = name();
    if (fine && (n.ends_with("__reduce_ex__") || n.ends_with("__reduce__") || n.ends_with("__dir__") ||
                 n.ends_with("__getstate__")))
      fine = self && place_of(self) < 0 && !is_python_class(Py_TYPE(self));
  } else if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type ||
             type == &PyClassMethodDescr_Type) {
    fine = b.is_plain(reinterpret_cast<PyDescrObject*>(f)->d_type);
    const std::string n = name();
    if (n.ends_with("__reduce_ex__") || n.ends_with("__dir__") || n.ends_with("__getstate__")) fine = false;
  } else if (type == b.method_wrapper) {
    fine = true;
  } else if (Builtins::is_of_library(type)) {
    fine = !b.is_forbidden(f);
  } else if (is_python_class(type)) {
    guard_type(type);
    fine = b.is_plain(type);
  }
  if (!fine) {
    stop(fmt::format("a call of {} is not captured", name()));
    return false;
  }
  for (size_t k = 0; k < count; ++k) {
    PyObject* a = args[k];
    if (is_opaque(a) &&
        !(PyCFunction_Check(f) && PyCFunction_GET_SELF(f) && PyList_Check(PyCFunction_GET_SELF(f)))) {
      stop(fmt::format("a call of {} with a {} is not captured", name(), Py_TYPE(a)->tp_name));
      return false;
    }
    // A function that the C code may call.
    if ((PyCFunction_Check(a) || Builtins::is_of_library(Py_TYPE(a))) && PyCallable_Check(a) &&
        !as_tensor(a) && !b.intrinsic(a) && !may_call(a, nullptr, 0))
      return false;
    if (!opaque_.empty() && (PyTuple_CheckExact(a) || PyList_CheckExact(a)) && !may_use(a)) return false;
  }
  return true;
}

PyObject* World::call(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords) {
  const size_t total = positional + (keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0);
  PyTypeObject* type = Py_TYPE(f);
  if (type == &PyMethod_Type || type == builtins().method_wrapper) {
    // The function with its self in front.
    const nb::object self = type == &PyMethod_Type ? nb::borrow(PyMethod_GET_SELF(f))
                                                   : nb::borrow(nb::handle(f).attr("__self__"));
    nb::object function = type == &PyMethod_Type ? nb::borrow(PyMethod_GET_FUNCTION(f)) : nb::object();
    if (type == builtins().method_wrapper) {
      const nb::object name = nb::handle(f).attr("__name__");
      static const nb::handle object = type_handle(&PyBaseObject_Type);
      const std::string n = text_of(name);
      if (n == "__setattr__" || n == "__delattr__" || n == "__getattribute__") {
        function = object.attr(name);
      } else {
        return may_call(f, args, total) ? checked(PyObject_Vectorcall(f, args, positional, keywords))
                                        : nullptr;
      }
    }
    std::vector<PyObject*> all{self.ptr()};
    all.insert(all.end(), args, args + total);
    return call(function.ptr(), all.data(), positional + 1, keywords);
  }
  if (Intrinsic i = builtins().intrinsic(f)) return i(*this, args, positional, keywords);
  if (PyFunction_Check(f)) return checked(PyObject_Vectorcall(f, args, positional, keywords));
  if (type == builtins().partial) {
    const nb::object inner = nb::handle(f).attr("func");
    if (!PyFunction_Check(inner.ptr()) && !PyMethod_Check(inner.ptr()) && !may_call(inner.ptr(), args, total))
      return nullptr;
    return checked(PyObject_Vectorcall(f, args, positional, keywords));
  }
  if (PyCFunction_Check(f) && total == 1 && PyCFunction_GET_SELF(f) &&
      is_python_class(Py_TYPE(PyCFunction_GET_SELF(f))) && place_of(PyCFunction_GET_SELF(f)) >= 0 &&
      !strcmp(reinterpret_cast<PyCFunctionObject*>(f)->m_ml->ml_name, "__reduce_ex__"))
    return reduce_outside(*this, PyCFunction_GET_SELF(f));
  if (type == &PyStaticMethod_Type) {
    const nb::object inner = nb::handle(f).attr("__func__");
    return call(inner.ptr(), args, positional, keywords);
  }
  if (!may_call(f, args, total)) return nullptr;
  PyObject* result = checked(PyObject_Vectorcall(f, args, positional, keywords));
  // A tensor with elements that the call made would be shared by all runs.
  if (result && Builtins::is_of_library(type)) {
    const Tensor* t = as_tensor(result);
    if (t && t->defined() && t->has_data() && place_of(result) < 0) {
      const Tensor copy = fl::clone(*t);
      Py_DECREF(result);
      result = wrap_tensor_object(copy);
    }
  }
  return result;
}

PyObject* wrap_tensor_object(const Tensor& t) { return fl::python::wrap(t).release().ptr(); }

}  // namespace fl::python::capture
#endif
