#include "builtins.h"

#if FLAMBEAU_CAPTURE
#include <cstring>

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

/// setattr and delattr (two arguments), by the rules of the object's type or of object.
template <auto change, size_t arguments>
PyObject* change_attribute(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != arguments) return bad_count(arguments == 3 ? "setattr" : "delattr", count);
  return (w.*change)(args[0], args[1], arguments == 3 ? args[2] : nullptr) < 0 ? nullptr : Py_NewRef(Py_None);
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
  const int r = PyObject_IsInstance(args[0], args[1]);
  return w.checked(r < 0 ? nullptr : PyBool_FromLong(r));
}

PyObject* type_of(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (count == 1 && !keywords)
    return Py_NewRef(reinterpret_cast<PyObject*>(is_sym_int(args[0])     ? &PyLong_Type
                                                 : is_sym_float(args[0]) ? &PyFloat_Type
                                                                         : Py_TYPE(args[0])));
  PyObject* made =
      w.checked(PyObject_Vectorcall(reinterpret_cast<PyObject*>(&PyType_Type), args, count, keywords));
  if (made) w.note_made(made);
  return made;
}

/// A number that follows from the address of an object: one from outside has to stay that object.
PyObject* address_number(World& w, PyObject* o, PyObject* number) {
  w.keep_identity(o);
  if (number && w.place_of(o) < 0) w.note_address(o, number);
  return number;
}

PyObject* identity_of(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 1) return bad_count("id", count);
  return address_number(w, args[0], PyLong_FromVoidPtr(w.original(args[0])));
}

PyObject* hash_of(World& w, PyObject* const* args, size_t count, PyObject* keywords) {
  if (keywords || count != 1) return bad_count("hash", count);
  if (Py_TYPE(args[0])->tp_hash == PyBaseObject_Type.tp_hash) {
    const Py_hash_t h = PyObject_Hash(w.original(args[0]));
    return address_number(w, args[0], PyLong_FromSsize_t(h));
  }
  if (!w.may_use(args[0])) return nullptr;
  if (PyTuple_Check(args[0]) || PyFrozenSet_Check(args[0])) {
    // That of a whole follows from those of its parts.
    const nb::object parts = nb::steal(PySequence_List(args[0]));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(parts.ptr()); ++k) {
      PyObject* part = PyList_GET_ITEM(parts.ptr(), k);
      const nb::object h = nb::steal(hash_of(w, &part, 1, nullptr));
      if (!h.is_valid()) return nullptr;
    }
  }
  const Py_hash_t h = PyObject_Hash(args[0]);
  return w.checked(h == -1 ? nullptr : PyLong_FromSsize_t(h));
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
  add(b, {"abs",    "all", "any",        "ascii", "bin",   "callable", "chr", "divmod",
          "format", "hex", "issubclass", "iter",  "len",   "max",      "min", "next",
          "oct",    "ord", "pow",        "repr",  "round", "sorted",   "sum", "__build_class__"});
  add_all("math");
  add_all("_operator");
  add(nb::module_::import_("functools"), {"reduce", "cmp_to_key"});
  add(nb::module_::import_("itertools"), {"tee"});
  add(nb::module_::import_("sys"), {"intern", "is_finalizing"});
  add(nb::module_::import_("_abc"), {"_abc_instancecheck", "_abc_subclasscheck", "get_cache_token"});

  const auto intrinsic = [&](nb::handle f, Intrinsic i) {
    intrinsics_[nb::object(nb::borrow(f)).release().ptr()] = i;
  };
  intrinsic(b.attr("getattr"), get_attribute);
  intrinsic(b.attr("hasattr"), has_attribute);
  intrinsic(b.attr("setattr"), change_attribute<&World::setattr, 3>);
  intrinsic(b.attr("delattr"), change_attribute<&World::setattr, 2>);
  intrinsic(b.attr("vars"), variables);
  intrinsic(b.attr("id"), identity_of);
  intrinsic(b.attr("hash"), hash_of);
  intrinsic(nb::module_::import_("inspect").attr("signature"), signature_of);
  intrinsic(b.attr("isinstance"), is_instance);
  intrinsic(b.attr("type"), type_of);
  const nb::handle object = type_handle(&PyBaseObject_Type);
  intrinsic(object.attr("__setattr__"), change_attribute<&World::generic_setattr, 3>);
  intrinsic(object.attr("__delattr__"), change_attribute<&World::generic_setattr, 2>);
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
  deque_bound = collections.attr("deque").attr("__dict__").attr("__getitem__")("maxlen");
  size = type(nb::module_::import_("flambeau._C").attr("Size"));
  enum_type = type(nb::module_::import_("enum").attr("EnumMeta"));
  const nb::module_ own = nb::module_::import_("flambeau._C");
  for (const char* name :
       {"dtype", "device", "layout", "memory_format", "Generator", "DispatchKey", "DispatchKeySet"})
    constant_types_.insert(type(own.attr(name)));
  build_class = nb::object(b.attr("__build_class__")).release().ptr();
  const auto method = [](const char* name) { return _PyType_Lookup(tensor_type, nb::str(name).ptr()); };
  item = Py_XNewRef(method("item"));
  to_list = Py_XNewRef(method("tolist"));
  apply =
      nb::object(
          nb::module_::import_("flambeau.autograd.function").attr("Function").attr("apply").attr("__func__"))
          .release()
          .ptr();
  unsupported_error = nb::module_::import_("flambeau._C").attr("UnsupportedError");
  internal_error = nb::module_::import_("flambeau._C").attr("InternalError");
  const nb::handle sample = nb::handle(Py_None);
  method_wrapper = Py_TYPE(nb::object(sample.attr("__str__")).ptr());

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
  plain_.insert(type(nb::module_::import_("operator").attr("itemgetter")));
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
         t == &PyRange_Type || t == &PySlice_Type || PyWeakref_CheckRef(o) || constant_types_.count(t) > 0 ||
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

// Asks no code of the program for the name.
bool Builtins::is_named(PyObject* f, const std::unordered_set<std::string>& names) {
  PyTypeObject* type = Py_TYPE(f);
  if (PyCFunction_Check(f)) return names.count(reinterpret_cast<PyCFunctionObject*>(f)->m_ml->ml_name) > 0;
  if (PyType_Check(f)) {
    const std::string name = reinterpret_cast<PyTypeObject*>(f)->tp_name;
    return !is_python_class(reinterpret_cast<PyTypeObject*>(f)) &&
           names.count(name.substr(name.rfind('.') + 1)) > 0;
  }
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type)
    return names.count(PyUnicode_AsUTF8(PyDescr_NAME(f))) > 0;
  if (is_python_class(type) || (!is_of_library(type) && type != builtins().method_wrapper)) return false;
  const nb::object name = nb::steal(PyObject_GetAttrString(f, "__name__"));
  if (!name.is_valid()) PyErr_Clear();
  return name.is_valid() && PyUnicode_Check(name.ptr()) && names.count(PyUnicode_AsUTF8(name.ptr())) > 0;
}

bool Builtins::is_question(PyObject* function) {
  return is_named(function, {"_has_torch_function", "isinstance", "is_tensor"});
}

bool Builtins::runs_backward(PyObject* function) { return is_named(function, {"_backward", "_grad"}); }

bool Builtins::changes_tensor(PyObject* function) {
  static const std::unordered_set<std::string> names = {"requires_grad_", "detach_", "_detach_in_place",
                                                        "retain_grad"};
  return is_of_library(Py_TYPE(function)) && is_named(function, names);
}

bool Builtins::shows(PyObject* function) {
  static const std::unordered_set<std::string> names = {"repr",       "ascii",    "str",     "format",
                                                        "format_map", "__repr__", "__str__", "__format__"};
  return PyCallable_Check(function) && is_named(function, names);
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
                                                        "_set_torch_function_subclasses_off",
                                                        "_set_torch_function_all_off",
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
  return is_named(function, names);
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

bool Builtins::is_functional(PyObject* function) const {
  if (!PyFunction_Check(function)) return false;
  PyObject* module = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__");
  const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  PyObject* own = reinterpret_cast<PyFunctionObject*>(function)->func_name;
  return name && strncmp(name, "flambeau.nn.functional", 22) == 0 && PyUnicode_READ_CHAR(own, 0) != '_';
}

bool Builtins::is_module(PyObject* o) const {
  static PyObject* type = nb::object(nb::module_::import_("flambeau.nn").attr("Module")).release().ptr();
  return PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(type));
}

const Builtins& builtins() {
  static const auto* b = new Builtins;
  return *b;
}

}  // namespace fl::python::capture
#endif
