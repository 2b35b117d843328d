#include "guards.h"

#if FLAMBEAU_CAPTURE
#include <structmember.h>

#include <algorithm>
#include <cstring>

#include "builtins.h"
#include "snapshot.h"

namespace fl::python::capture {
namespace {

PyObject* instance_dict(PyObject* o) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  return dict ? *dict : nullptr;
}

PyObject* dict_item(PyObject* dict, PyObject* key) {
  PyObject* o = dict && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, key) : nullptr;
  if (!o && PyErr_Occurred()) PyErr_Clear();
  return o;
}

// A value that the object itself keeps alive, borrowed.
PyObject* slot(PyObject* descriptor, PyObject* o) {
  const auto* d = reinterpret_cast<PyMemberDescrObject*>(descriptor);
  if (!PyObject_TypeCheck(o, d->d_common.d_type)) return nullptr;
  if (d->d_member->type != T_OBJECT && d->d_member->type != T_OBJECT_EX) return nullptr;
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + d->d_member->offset);
}

/// Fields of a partial, in the order of its struct.
PyObject* partial_field(PyObject* o, int which) {
  struct Partial {
    PyObject_HEAD PyObject *function, *arguments, *keywords;
  };
  const auto* p = reinterpret_cast<Partial*>(o);
  return which == 0 ? p->function : which == 1 ? p->arguments : p->keywords;
}

Py_ssize_t length(PyObject* o) {
  if (PyTuple_Check(o)) return PyTuple_GET_SIZE(o);
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  return Py_TYPE(o)->tp_as_sequence && Py_TYPE(o)->tp_as_sequence->sq_length
             ? Py_TYPE(o)->tp_as_sequence->sq_length(o)
             : -1;
}

bool equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {  // nan is nan; 0.0 is not -0.0
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y);
  }
  if (PyTuple_CheckExact(a)) {
    bool same = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
    for (Py_ssize_t k = 0; same && k < PyTuple_GET_SIZE(a); ++k)
      same = equal(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k));
    return same;
  }
  const int r = PyObject_RichCompareBool(a, b, Py_EQ);
  if (r < 0) PyErr_Clear();
  return r == 1;
}

bool same_key(PyObject* key, PyObject* want) {
  return key == want || (compares_in_c(key) && compares_in_c(want) && equal(key, want));
}

bool has_keys(PyObject* dict, PyObject* expected) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(dict)) != PyTuple_GET_ITEM(expected, 0)) return false;
  if (PyDict_GET_SIZE(dict) + 1 != PyTuple_GET_SIZE(expected)) return false;
  Py_ssize_t k = 1;
  if (PyODict_Check(dict) && PyDict_GET_SIZE(dict) > 1) {  // its order is not that of the dict below it
    const nb::object keys = nb::steal(PyODict_Type.tp_iter(dict));
    while (PyObject* key = PyIter_Next(keys.ptr())) {
      const nb::object owned = nb::steal(key);
      if (!same_key(key, PyTuple_GET_ITEM(expected, k++))) return false;
    }
    return true;
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
    if (!same_key(key, PyTuple_GET_ITEM(expected, k++))) return false;
  return true;
}

/// Item `index` of a set, or key of a dict.
PyObject* key_at(PyObject* o, Py_ssize_t index) {
  PyObject *key, *value;
  Py_hash_t hash;
  Py_ssize_t at = 0;
  if (PyAnySet_Check(o)) {
    while (_PySet_NextEntry(o, &at, &key, &hash))
      if (index-- == 0) return key;
    return nullptr;
  }
  while (PyDict_Check(o) && PyDict_Next(o, &at, &key, &value))
    if (index-- == 0) return key;
  return nullptr;
}

bool has_items(PyObject* set, PyObject* expected) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(set)) != PyTuple_GET_ITEM(expected, 0)) return false;
  if (PySet_GET_SIZE(set) + 1 != PyTuple_GET_SIZE(expected)) return false;
  PyObject* item;
  Py_hash_t hash;
  Py_ssize_t k = 1;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &item, &hash);)
    if (!same_key(item, PyTuple_GET_ITEM(expected, k++))) return false;
  return true;
}

/// A method that is a slot of a type in C, bound: `[].__len__`.
struct Wrapper {
  PyObject_HEAD PyObject *descriptor, *self;
};

PyObject* dict_value(PyObject* dict, Py_ssize_t index) {
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Check(dict) && PyDict_Next(dict, &at, &key, &value);)
    if (index-- == 0) return value;
  return nullptr;
}

/// Which holes a dict has is its own business: of two equal dicts one may give another key here.
PyObject* dict_entry(PyObject* dict, Py_ssize_t at, bool key) {
  PyObject *k, *value;
  if (!PyDict_Check(dict) || !PyDict_Next(dict, &at, &k, &value)) return nullptr;
  return key ? k : value;
}

std::string text(PyObject* o) {
  if (!o) return "nothing";
  if (PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
      o == Py_None)
    return text_of(nb::repr(nb::handle(o)));
  if (PyType_Check(o)) return reinterpret_cast<PyTypeObject*>(o)->tp_name;
  return std::string("a ") + Py_TYPE(o)->tp_name;
}

std::string difference(const Place& p, PyObject* o) {
  switch (p.check) {
    case Check::Float:
      return fmt::format("it is {}, captured for a float", text(o));
    case Check::Number:
      return fmt::format("it is {}, captured for an int of 0 or more", text(o));
    case Check::Absent:
      return "it exists now";
    case Check::Type:
      return fmt::format("it is {}, captured for {}", text(o), text(p.expected));
    case Check::Length:
      return fmt::format("its length or type differs: captured for a {} of {}", text(p.expected),
                         p.check_index);
    case Check::Equal:
      return fmt::format("it is {}, captured for {}", text(o), text(p.expected));
    case Check::Keys:
      return "it has other keys";
    case Check::Items:
      return "it has other items, or in another order";
    case Check::TypeVersion:
      return "the class was changed";
    case Check::SameAs:
      return "it is no longer the same object as before";
    default:
      return fmt::format("it is another object: {}", text(o));
  }
}

}  // namespace

PyObject* self_in_c(PyObject* o) {
  if (PyCFunction_Check(o)) return PyCFunction_GET_SELF(o);
  return Py_TYPE(o) == builtins().method_wrapper ? reinterpret_cast<const Wrapper*>(o)->self : nullptr;
}

void* definition(PyObject* o) {
  if (PyCFunction_Check(o)) return reinterpret_cast<PyCFunctionObject*>(o)->m_ml;
  return Py_TYPE(o) == builtins().method_wrapper ? reinterpret_cast<const Wrapper*>(o)->descriptor : nullptr;
}

PyObject* bind_in_c(PyObject* method, PyObject* self) {
  if (!PyCFunction_Check(method)) return PyWrapper_New(static_cast<PyObject*>(definition(method)), self);
  auto* f = reinterpret_cast<PyCFunctionObject*>(method);
  return PyCMethod_New(f->m_ml, self, f->m_module, PyCFunction_GET_CLASS(method));
}

bool same_value(PyObject* a, PyObject* b) { return equal(a, b); }

bool compares_in_c(PyObject* o) {
  if (PyTuple_CheckExact(o)) {
    bool all = true;
    for (Py_ssize_t k = 0; all && k < PyTuple_GET_SIZE(o); ++k) all = compares_in_c(PyTuple_GET_ITEM(o, k));
    return all;
  }
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) ||
         (Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash &&
          Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare) ||
         PyFunction_Check(o) || Py_TYPE(o) == &PyType_Type;
}

bool holds(const Place& p, PyObject* o, const std::vector<PyObject*>& values) {
  switch (p.check) {
    case Check::None:
      return true;
    case Check::Absent:
      return !o;
    case Check::Present:
      return o;
    default:
      break;
  }
  if (!o) return false;
  switch (p.check) {
    case Check::Identity:
      return o == p.expected;
    case Check::Number:
      return PyLong_CheckExact(o) && may_vary(o);
    case Check::Float:
      return PyFloat_CheckExact(o);
    case Check::Type:
      return reinterpret_cast<PyObject*>(Py_TYPE(o)) == p.expected;
    case Check::Length:
      return reinterpret_cast<PyObject*>(Py_TYPE(o)) == p.expected && length(o) == p.check_index;
    case Check::Equal:
      return equal(o, p.expected);
    case Check::Keys:
      return PyDict_Check(o) && has_keys(o, p.expected);
    case Check::Items:
      return PyAnySet_Check(o) && has_items(o, p.expected);
    case Check::Definition:
      return Py_TYPE(o) == Py_TYPE(p.expected) && definition(o) == definition(p.expected);
    case Check::Code:
      return PyFunction_Check(o) && PyFunction_GET_CODE(o) == PyTuple_GET_ITEM(p.expected, 0) &&
             PyFunction_GET_GLOBALS(o) == PyTuple_GET_ITEM(p.expected, 1);
    case Check::TypeVersion:
      return PyType_Check(o) && p.check_index != 0 &&
             version_of(reinterpret_cast<PyTypeObject*>(o)) == static_cast<unsigned>(p.check_index);
    case Check::SameAs:
      return o == values[static_cast<size_t>(p.check_index)];
    default:
      return false;
  }
}

PyObject* find(const Place& p, Frame* f, const std::vector<PyObject*>& values) {
  if (p.step == Step::Constant) return p.key;
  switch (p.step) {
    case Step::Local:
      return locals_of(f)[p.index];
    case Step::Stack:
      return stack_of(f)[p.index];
    case Step::Function:
      return reinterpret_cast<PyObject*>(function_of(f));
    case Step::Globals: {
      PyObject* o = dict_item(f->f_globals, p.key);
      return o ? o : dict_item(f->f_builtins, p.key);
    }
    default:
      break;
  }
  PyObject* o = values[static_cast<size_t>(p.parent)];
  if (!o) return nullptr;
  switch (p.step) {
    case Step::Itself:
      return o;
    case Step::Instance:
      return dict_item(instance_dict(o), p.key);
    case Step::Dictionary:
      return instance_dict(o);
    case Step::Slot:
      return slot(p.key, o);
    case Step::DictItem:
      return dict_item(o, p.key);
    case Step::DictValue:
      return dict_value(o, p.index);
    case Step::DictKeyAt:
    case Step::DictValueAt:
      return dict_entry(o, p.index, p.step == Step::DictKeyAt);
    case Step::ListItem:
      return PyList_Check(o) && p.index < PyList_GET_SIZE(o) ? PyList_GET_ITEM(o, p.index) : nullptr;
    case Step::TupleItem:
      return PyTuple_Check(o) && p.index < PyTuple_GET_SIZE(o) ? PyTuple_GET_ITEM(o, p.index) : nullptr;
    case Step::DequeItem: {
      PyObject* item = PySequence_GetItem(o, p.index);
      if (!item) PyErr_Clear();
      Py_XDECREF(item);  // the deque holds it
      return item;
    }
    case Step::Key:
      return key_at(o, p.index);
    case Step::TypeItem:
      return PyType_Check(o) ? _PyType_Lookup(reinterpret_cast<PyTypeObject*>(o), p.key) : nullptr;
    case Step::Cell:
      return PyCell_Check(o) ? PyCell_GET(o) : nullptr;
    case Step::FreeCell: {
      PyObject* closure = PyFunction_Check(o) ? PyFunction_GET_CLOSURE(o) : nullptr;
      return closure && p.index < PyTuple_GET_SIZE(closure) ? PyTuple_GET_ITEM(closure, p.index) : nullptr;
    }
    case Step::Code:
      return PyFunction_Check(o) ? PyFunction_GET_CODE(o) : nullptr;
    case Step::Defaults:
      return PyFunction_Check(o) ? PyFunction_GET_DEFAULTS(o) : nullptr;
    case Step::KeywordDefaults:
      return PyFunction_Check(o) ? PyFunction_GET_KW_DEFAULTS(o) : nullptr;
    case Step::MethodSelf:
      return PyMethod_Check(o) ? PyMethod_GET_SELF(o) : self_in_c(o);
    case Step::MethodFunction:
      return PyMethod_Check(o) ? PyMethod_GET_FUNCTION(o) : nullptr;
    case Step::PartialFunction:
      return partial_field(o, 0);
    case Step::PartialArguments:
      return partial_field(o, 1);
    case Step::PartialKeywords:
      return partial_field(o, 2);
    default:
      return nullptr;
  }
}

GuardProgram::GuardProgram() = default;
GuardProgram::~GuardProgram() = default;
GuardProgram::GuardProgram(GuardProgram&&) noexcept = default;
GuardProgram& GuardProgram::operator=(GuardProgram&&) noexcept = default;

GuardProgram::GuardProgram(const std::vector<Place>& places, Pairs differences, Pairs equalities)
    : places_(places),
      differences_(std::move(differences)),
      equalities_(std::move(equalities)),
      snapshot_(std::make_unique<Snapshot>()) {
  for (const Place& p : places_) {
    if (p.key) kept_.push_back(nb::borrow(p.key));
    if (p.expected) kept_.push_back(nb::borrow(p.expected));
  }
}

int GuardProgram::need(int place) {
  const auto it = std::find(needed_.begin(), needed_.end(), place);
  if (it != needed_.end()) return static_cast<int>(it - needed_.begin());
  needed_.push_back(place);
  return static_cast<int>(needed_.size()) - 1;
}

bool GuardProgram::check(Frame* f, std::vector<PyObject*>& needed, std::string* why) {
  failed_ = -1;
  bool fine = snapshot_->taken() && snapshot_->look(places_, values_, f) == Snapshot::Answer::Same &&
              pairs_hold(code_of(f), nullptr);
  if (!fine) {
    snapshot_->drop();
    fine = check_all(f, why) && pairs_hold(code_of(f), why);
    if (fine && ++checks_ > 1) snapshot_->take(places_, values_, f);
  }
  if (!fine) return false;
  needed.resize(needed_.size());
  for (size_t k = 0; k < needed_.size(); ++k) needed[k] = values_[static_cast<size_t>(needed_[k])];
  return true;
}

bool GuardProgram::check_all(Frame* f, std::string* why) {
  values_.resize(places_.size());
  for (size_t k = 0; k < places_.size(); ++k) {
    const Place& p = places_[k];
    PyObject* o = find(p, f, values_);
    values_[k] = o;
    if (holds(p, o, values_)) continue;
    failed_ = static_cast<int>(k);
    if (why) *why = fmt::format("{}: {}", name(static_cast<int>(k), code_of(f)), difference(p, o));
    return false;
  }
  return true;
}

bool GuardProgram::pairs_hold(PyCodeObject* code, std::string* why) const {
  const auto value = [&](int k) { return values_[static_cast<size_t>(k)]; };
  for (const auto& [a, b] : differences_) {
    if (!value(a) || value(a) != value(b)) continue;
    if (why) *why = fmt::format("{} and {} are one object now", name(a, code), name(b, code));
    return false;
  }
  for (const auto& [a, b] : equalities_) {
    if (value(a) == value(b)) continue;
    if (why) *why = fmt::format("{} and {} are no longer one object", name(a, code), name(b, code));
    return false;
  }
  return true;
}

std::string GuardProgram::text(int k, PyCodeObject* code) const {
  static constexpr const char* kChecks[] = {"read",
                                            "absent",
                                            "there",
                                            "the same object",
                                            "of its type",
                                            "of its length",
                                            "equal",
                                            "of its keys",
                                            "of its items",
                                            "of its definition",
                                            "of its code",
                                            "unchanged",
                                            "an int of 0 or more",
                                            "a float",
                                            "the same as another"};
  const Place& p = places_[static_cast<size_t>(k)];
  return fmt::format("{}: {}{}", name(k, code), kChecks[static_cast<int>(p.check)],
                     p.expected ? " (" + capture::text(p.expected) + ")" : "");
}

bool may_vary(PyObject* o) {
  if (PyFloat_CheckExact(o)) return true;
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
  return !overflow && n >= 0 && n < (1LL << 40);
}

std::string place_name(const std::vector<Place>& places, int k, PyCodeObject* code) {
  const Place& p = places[static_cast<size_t>(k)];
  const auto key = [&] {
    return p.key && PyUnicode_Check(p.key) ? std::string(PyUnicode_AsUTF8(p.key)) : text(p.key);
  };
  const auto parent = [&] { return p.parent < 0 ? std::string() : place_name(places, p.parent, code); };
  switch (p.step) {
    case Step::Local:
      return PyUnicode_AsUTF8(PyTuple_GET_ITEM(code->co_localsplusnames, p.index));
    case Step::Stack:
      return fmt::format("a value in the middle of an expression ({})", p.index);
    case Step::Function:
      return PyUnicode_AsUTF8(code->co_name);
    case Step::Globals:
      return key();
    case Step::Constant:
      if (PyModule_Check(p.key)) return PyModule_GetName(p.key);
      if (PyDict_Check(p.key)) {
        PyObject* module = dict_item(p.key, nb::str("__name__").ptr());
        return module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "a module";
      }
      return PyFunction_Check(p.key) ? PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(p.key)->func_name)
                                     : text(p.key);
    case Step::Instance:
    case Step::Slot:
    case Step::TypeItem:
      return parent() + "." + (p.step == Step::Slot ? text_of(nb::handle(p.key).attr("__name__")) : key());
    case Step::Itself:
      return parent();
    case Step::Dictionary:
      return parent() + ".__dict__";
    case Step::DictItem:
      if (p.parent >= 0 && places[static_cast<size_t>(p.parent)].step == Step::Dictionary)
        return place_name(places, places[static_cast<size_t>(p.parent)].parent, code) + "." + key();
      return p.parent >= 0 && places[static_cast<size_t>(p.parent)].step == Step::Constant
                 ? parent() + "." + key()
                 : fmt::format("{}[{}]", parent(), text(p.key));
    case Step::DictValue:
    case Step::DictValueAt:
      return fmt::format("value {} of {}", p.index, parent());
    case Step::DictKeyAt:
      return fmt::format("key {} of {}", p.index, parent());
    case Step::Key:
      return fmt::format("item {} of {}", p.index, parent());
    case Step::ListItem:
    case Step::TupleItem:
    case Step::DequeItem:
      return fmt::format("{}[{}]", parent(), p.index);
    case Step::Cell: {
      const Place& cell = places[static_cast<size_t>(p.parent)];
      if (cell.step == Step::FreeCell && places[static_cast<size_t>(cell.parent)].step == Step::Function)
        return PyUnicode_AsUTF8(PyTuple_GET_ITEM(code->co_localsplusnames,
                                                 code->co_nlocalsplus - code->co_nfreevars + cell.index));
      return parent();
    }
    case Step::FreeCell:
      return fmt::format("free variable {} of {}", p.index, parent());
    case Step::Code:
      return parent() + ".__code__";
    case Step::Defaults:
      return parent() + ".__defaults__";
    case Step::KeywordDefaults:
      return parent() + ".__kwdefaults__";
    case Step::MethodSelf:
      return parent() + ".__self__";
    case Step::MethodFunction:
      return parent() + ".__func__";
    case Step::PartialFunction:
      return parent() + ".func";
    case Step::PartialArguments:
      return parent() + ".args";
    case Step::PartialKeywords:
      return parent() + ".keywords";
  }
  return "?";
}

}  // namespace fl::python::capture
#endif
