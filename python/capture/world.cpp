#include "world.h"

#if FLAMBEAU_CAPTURE
#include "builtins.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"

namespace fl::python::capture {
namespace {

PyObject* type_object(PyObject* o) { return reinterpret_cast<PyObject*>(Py_TYPE(o)); }

/// The exception that ends a capture. No handler of the program catches it: the evaluator sees that the
/// capture has stopped.
PyObject* stop_exception() {
  static PyObject* type = PyErr_NewException("flambeau.CaptureStopped", PyExc_BaseException, nullptr);
  return type;
}

bool is_value(PyObject* o) {
  return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) ||
         PyComplex_CheckExact(o);
}

}  // namespace

bool is_python_class(PyTypeObject* type) {
  static const destructor dealloc = [] {
    const nb::object sample =
        nb::handle(reinterpret_cast<PyObject*>(&PyType_Type))("Sample", nb::tuple(), nb::dict());
    return reinterpret_cast<PyTypeObject*>(sample.ptr())->tp_dealloc;
  }();
  // Types of C modules may have it, too, but not without methods.
  return type->tp_dealloc == dealloc && !type->tp_methods;
}

PyTypeObject* builtin_base(PyTypeObject* type) {
  while (is_python_class(type)) type = type->tp_base;
  return type;
}

World::World(Frame* root) : root_(root) {}

World::~World() {
  // The program goes on with generators of its own: these must not run what they have in `finally`.
  for (const nb::object& g : generators_)
    if (const nb::object o = nb::handle(g)(); !o.is_none()) rewind_generator(o.ptr());
  // Shadows may be parts of cycles; the collector has them.
  kept_.clear();
}

PyObject* World::keep(PyObject* o) {
  kept_.push_back(nb::borrow(o));
  return o;
}

std::string World::user_stack() const {
  std::string out;
  for (Frame* f = current_frame(PyThreadState_Get()); f; f = caller_of(f)) {
    PyCodeObject* code = code_of(f);
    const int line = PyCode_Addr2Line(code, std::max(running_of(f), 0) * 2);
    out = fmt::format("  File \"{}\", line {}, in {}\n", PyUnicode_AsUTF8(code->co_filename), line,
                      PyUnicode_AsUTF8(code->co_name)) +
          out;
    if (f == root_) break;
  }
  return out;
}

PyObject* World::stop(const std::string& reason) {
  if (!stopped_) {
    stopped_ = true;
    why_ = {reason, user_stack()};
  }
  PyErr_SetString(stop_exception(), reason.c_str());
  return nullptr;
}

PyObject* World::checked(PyObject* result) {
  if (stopped_) {
    Py_XDECREF(result);
    if (!PyErr_Occurred()) PyErr_SetString(stop_exception(), why_.reason.c_str());
    return nullptr;
  }
  if (result || !PyErr_Occurred()) return result;
  const bool not_captured = PyErr_ExceptionMatches(builtins().unsupported_error.ptr()) ||
                            PyErr_ExceptionMatches(builtins().internal_error.ptr());
  const bool missing = PyErr_ExceptionMatches(PyExc_NotImplementedError);
  if (!not_captured && !missing) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (missing && raised_.count(value)) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  const std::string text = text_of(nb::handle(value));
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return stop(text);
}

PyObject* World::operator_function(const char* name) {
  static PyObject* module = PyImport_ImportModule("operator");
  PyObject* builtin = strcmp(name, "getattr") && strcmp(name, "setattr") ? nullptr : PyEval_GetBuiltins();
  const nb::object f = builtin ? nb::borrow(PyDict_GetItemString(builtin, name))
                               : nb::steal(PyObject_GetAttrString(module, name));
  return f.ptr();  // the module has it
}

// --- places ---

size_t World::PlaceHash::operator()(const Place& p) const {
  const Py_hash_t of_key = !p.key ? 0 : PyUnicode_CheckExact(p.key) ? PyObject_Hash(p.key) : 0;
  size_t h = of_key ? static_cast<size_t>(of_key) : reinterpret_cast<size_t>(p.key) >> 4;
  for (const size_t part :
       {static_cast<size_t>(p.step), static_cast<size_t>(p.parent), static_cast<size_t>(p.index)})
    h = (h ^ part) * 0x9E3779B97F4A7C15U;
  return h ^ h >> 32;
}

bool World::SamePlace::operator()(const Place& a, const Place& b) const {
  if (a.step != b.step || a.parent != b.parent || a.index != b.index) return false;
  return a.key == b.key || (a.key && b.key && PyUnicode_CheckExact(a.key) && PyUnicode_CheckExact(b.key) &&
                            PyUnicode_Compare(a.key, b.key) == 0);
}

int World::place(Step step, int parent, PyObject* key, Py_ssize_t index) {
  Place p{step};
  p.parent = parent;
  p.index = index;
  p.key = key;
  const auto [it, is_new] = place_index_.emplace(p, static_cast<int>(places_.size()));
  if (is_new) {
    if (key) keep(key);
    places_.push_back(p);
  }
  return it->second;
}

void World::expect(int at, Check check, PyObject* expected, Py_ssize_t index) {
  Place& p = places_[static_cast<size_t>(at)];
  if (p.check == check || check == Check::None) return;
  if (p.check != Check::None) {  // another question about the same object
    expect(place(Step::Itself, at, nullptr, static_cast<Py_ssize_t>(check)), check, expected, index);
    return;
  }
  p.check = check;
  p.expected = expected ? keep(expected) : nullptr;
  p.check_index = index;
}

int World::constant(PyObject* o) { return place(Step::Constant, -1, o); }

int World::place_of(PyObject* o) const {
  if (auto it = shadow_index_.find(o); it != shadow_index_.end()) return shadows_[it->second].place;
  if (auto it = input_index_.find(o); it != input_index_.end()) return inputs_[it->second].place;
  return -1;
}

PyObject* World::original(PyObject* o) const {
  if (auto it = shadow_index_.find(o); it != shadow_index_.end()) return shadows_[it->second].real;
  if (auto it = input_index_.find(o); it != input_index_.end()) return inputs_[it->second].real;
  return o;
}

// Gives a new reference to the shadow.
PyObject* World::remember(PyObject* real, PyObject* shadow, int at, PyObject* before) {
  shadow_index_[keep(real)] = shadows_.size();
  shadow_index_[keep(shadow)] = shadows_.size();
  shadows_.push_back({real, shadow, at, before ? nb::borrow(before) : nb::object()});
  return Py_NewRef(shadow);
}

// Which of two places is meant only matters where the order of checks allows it: the later is checked.
void World::differ(int a, int b) {
  if (a >= 0 && b >= 0 && a != b) differences.emplace_back(std::min(a, b), std::max(a, b));
}

void World::same(int at, int other) {
  if (at == other) return;
  if (at > other) {
    expect(at, Check::SameAs, nullptr, other);
  } else {  // it is looked at before the other one
    expect(at, Check::Present);
    equalities.emplace_back(at, other);
  }
}

void World::guard_changed() {
  std::vector<size_t> changed;
  for (size_t k = 0; k < shadows_.size(); ++k)
    if (is_changed(shadows_[k])) changed.push_back(k);
  for (size_t k : changed)
    for (size_t j = 0; j < shadows_.size(); ++j)
      if (j != k && Py_TYPE(shadows_[j].real) == Py_TYPE(shadows_[k].real))
        differ(shadows_[k].place, shadows_[j].place);
  for (const Overlay& o : overlays_)
    for (const Shadow& s : shadows_)
      if (s.real != o.target && Py_TYPE(s.real) == Py_TYPE(o.target)) differ(o.place, s.place);
}

std::set<std::string> World::changed_attributes() const {
  std::set<std::string> out;
  const auto add = [&](int place, PyObject* key) {
    std::string owner = place_name(places_, place, code_of(root_));
    if (owner.ends_with(".__dict__")) owner.erase(owner.rfind('.'));
    if (PyUnicode_Check(key)) out.insert(owner + "." + PyUnicode_AsUTF8(key));
  };
  PyObject *key, *value;
  for (const Overlay& o : overlays_)
    for (Py_ssize_t at = 0; o.place >= 0 && PyDict_Next(o.changes, &at, &key, &value);) add(o.place, key);
  for (const Shadow& s : shadows_)
    for (Py_ssize_t at = 0;
         PyDict_Check(s.shadow) && is_changed(s) && PyDict_Next(s.shadow, &at, &key, &value);)
      if (PyDict_GetItem(s.before.ptr(), key) != value) add(s.place, key);
  return out;
}

// --- wrap ---

PyObject* World::wrap(PyObject* real, int at) {
  if (real == Py_None || PyBool_Check(real) || real == Py_Ellipsis || real == Py_NotImplemented) {
    expect(at, Check::Identity, real);
    return Py_NewRef(real);
  }
  if (is_value(real)) {
    if (varying_ && may_vary(real) && !(recorder && PyFloat_CheckExact(real)) &&
        varying_->count(place_name(places_, at, code_of(root_))))
      return wrap_number(real, at);
    expect(at, Check::Equal, real);
    return Py_NewRef(real);
  }
  if (auto it = input_index_.find(real); it != input_index_.end()) {
    same(at, inputs_[it->second].place);
    return Py_NewRef(stand_ins_.empty() ? real : stand_ins_[it->second].ptr());
  }
  if (auto it = shadow_index_.find(real); it != shadow_index_.end()) {
    const Shadow& s = shadows_[it->second];
    same(at, s.place);
    return Py_NewRef(s.shadow);
  }
  if (as_tensor(real)) return wrap_tensor(real, at);
  PyTypeObject* type = Py_TYPE(real);
  if (PyFunction_Check(real)) {
    const Step step = places_[static_cast<size_t>(at)].step;
    if (step == Step::Local || step == Step::Stack || step == Step::Cell) {
      const nb::tuple code =
          nb::make_tuple(nb::handle(PyFunction_GET_CODE(real)), nb::handle(PyFunction_GET_GLOBALS(real)));
      expect(at, Check::Code, code.ptr());
    } else {
      expect(at, Check::Identity, real);
    }
    return remember(real, real, at);
  }
  if (PyType_Check(real) || PyModule_Check(real) || builtins().is_constant(real)) {
    expect(at, Check::Identity, real);
    return Py_NewRef(real);
  }
  if (type == &PyMethod_Type) return wrap_method(real, at);
  if (self_in_c(real)) return wrap_method_in_c(real, at);
  if (type == builtins().partial) return wrap_partial(real, at);
  if (type == &PyCell_Type) return wrap_cell(real, at);
  if (builtins().is_enumeration(real)) {
    expect(at, Check::Identity, real);
    return Py_NewRef(real);
  }
  PyTypeObject* base = builtin_base(type);
  if (base == &PyTuple_Type || builtins().is_named_result(base) || base == builtins().size)
    return wrap_tuple(real, at);
  if (base == &PyList_Type) return wrap_list(real, at);
  if (base == &PyDict_Type || base == &PyODict_Type || base == builtins().default_dict)
    return wrap_dict(real, at);
  if (base == &PySet_Type || base == &PyFrozenSet_Type) return wrap_set(real, at);
  if (base == builtins().deque) return wrap_deque(real, at);
  if (base == &PyLong_Type || base == &PyFloat_Type ||
      base == &PyUnicode_Type) {  // a subclass: never changes
    expect(at, Check::Identity, real);
    return Py_NewRef(real);
  }
  expect(at, Check::Type, type_object(real));
  // What lies in C below a class of the program has no glass before it.
  if (base != &PyBaseObject_Type) opaque_.insert(real);
  return remember(real, real, at);
}

bool is_late_view(const Tensor& t) { return t.requires_grad() && t.is_leaf() && is_view(t); }

PyObject* World::wrap_tensor(PyObject* real, int at) {
  expect(at, Check::Type, type_object(real));
  if (is_late_view(*as_tensor(real)))
    return stop("a view of a tensor that came to require gradients later is not captured");
  input_index_[real] = inputs_.size();
  return stand_in(real, at);
}

namespace {

/// The name of argument `index` of the forward() that a call of a module comes to; empty if it is not known.
std::string parameter_of_forward(Frame* f, Py_ssize_t index) {
  PyObject* self = locals_of(f)[0];
  static PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* function = self && builtins().is_module(self) ? _PyType_Lookup(Py_TYPE(self), forward) : nullptr;
  if (!function || !PyFunction_Check(function)) return {};
  const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return index + 1 < code->co_argcount
             ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(code->co_localsplusnames, index + 1))
             : std::string();
}

}  // namespace

// "L['self'].weight" as graphs name it: L_self_weight_.
std::string World::input_name(int at) const {
  std::vector<int> steps{at};
  while (places_[static_cast<size_t>(steps.back())].parent >= 0 &&
         places_[static_cast<size_t>(steps.back())].step != Step::Cell)
    steps.push_back(places_[static_cast<size_t>(steps.back())].parent);
  const auto root = steps.back();
  const Step step = places_[static_cast<size_t>(root)].step;
  std::string first = place_name(places_, root, code_of(root_)),
              rest = place_name(places_, at, code_of(root_)).substr(first.size());
  for (const std::string hidden = ".__dict__"; rest.find(hidden) != std::string::npos;)
    rest.erase(rest.find(hidden), hidden.size());
  // A module's call hands on what it gets: *args, **kwargs.
  if (step == Step::Local && first == "args" && steps.size() > 1) {
    const Place& item = places_[static_cast<size_t>(steps[steps.size() - 2])];
    const std::string name = parameter_of_forward(root_, item.index);
    if (!name.empty()) {
      first = name;
      rest.erase(0, rest.find(']') + 1);
    }
  }
  if (step == Step::Local && first == "kwargs") first.clear();
  const char* kind = step == Step::Globals || step == Step::Constant ? "G" : "L";
  std::string out;
  for (const char c : fmt::format("{}['{}']{}", kind, first, rest)) {
    const bool plain = isalnum(static_cast<unsigned char>(c));
    if (plain || out.back() != '_') out += plain ? c : '_';
  }
  return out;
}

PyObject* World::wrap_number(PyObject* real, int at) {
  expect(at, PyFloat_CheckExact(real) ? Check::Float : Check::Number);
  if (auto it = number_index_.find(at); it != number_index_.end())
    return Py_NewRef(stand_ins_.empty() ? real : stand_ins_[it->second].ptr());
  number_index_[at] = inputs_.size();
  return stand_in(real, at);
}

// The next input.
PyObject* World::stand_in(PyObject* real, int at) {
  const size_t index = inputs_.size();
  inputs_.push_back({keep(real), at});
  if (!stand_ins_.empty() && index >= stand_ins_.size())
    return stop("the program read other tensors when it was captured again");
  PyObject* fake = stand_ins_.empty() ? real : stand_ins_[index].ptr();
  if (recorder && !recorder->input(fake, real, input_name(at))) return nullptr;
  if (stand_ins_.empty()) return Py_NewRef(real);
  if (as_tensor(fake) || is_sym_int(fake) || is_sym_float(fake)) input_index_[fake] = index;
  return Py_NewRef(fake);
}

PyObject* World::empty_like(PyObject* real, PyTypeObject* base) {
  const nb::tuple nothing;
  return base->tp_new(Py_TYPE(real), nothing.ptr(), nullptr);
}

PyObject* World::wrap_tuple(PyObject* real, int at) {
  const Py_ssize_t n = PyTuple_GET_SIZE(real);
  expect(at, Check::Length, type_object(real), n);
  std::vector<nb::object> items;
  bool same = true;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* item = wrap(PyTuple_GET_ITEM(real, k), place(Step::TupleItem, at, nullptr, k));
    if (!item) return nullptr;
    same = same && item == PyTuple_GET_ITEM(real, k);
    items.push_back(nb::steal(item));
  }
  if (same) return remember(real, real, at);
  PyObject* shadow = Py_TYPE(real)->tp_alloc(Py_TYPE(real), n);
  if (!shadow) return nullptr;
  for (Py_ssize_t k = 0; k < n; ++k)
    PyTuple_SET_ITEM(shadow, k, items[static_cast<size_t>(k)].release().ptr());
  const nb::object owned = nb::steal(shadow);
  return remember(real, shadow, at);
}

PyObject* World::wrap_list(PyObject* real, int at) {
  const Py_ssize_t n = PyList_GET_SIZE(real);
  expect(at, Check::Length, type_object(real), n);
  const nb::object shadow = nb::steal(empty_like(real, &PyList_Type));
  if (!shadow.is_valid()) return nullptr;
  Py_DECREF(remember(real, shadow.ptr(), at));
  const size_t index = shadows_.size() - 1;
  for (Py_ssize_t k = 0; k < n; ++k) {
    const nb::object item = nb::steal(wrap(PyList_GET_ITEM(real, k), place(Step::ListItem, at, nullptr, k)));
    if (!item.is_valid() || PyList_Append(shadow.ptr(), item.ptr()) < 0) return nullptr;
  }
  shadows_[index].before = nb::steal(PyList_GetSlice(shadow.ptr(), 0, n));
  return Py_NewRef(shadow.ptr());
}

bool World::wrap_key(PyObject* key, int container, Py_ssize_t index) {
  if (is_value(key) || key == Py_None || PyBool_Check(key)) return true;
  nb::object seen;
  if (!as_tensor(key)) seen = nb::steal(wrap(key, place(Step::Key, container, nullptr, index)));
  if (seen.is_valid() && seen.ptr() == key) return true;
  if (!stopped_) stop(fmt::format("a {} as a key is not captured", Py_TYPE(key)->tp_name));
  return false;
}

PyObject* World::wrap_set(PyObject* real, int at) {
  const bool frozen = PyFrozenSet_Check(real);
  nb::object shadow = frozen ? nb::borrow(real) : nb::steal(empty_like(real, &PySet_Type));
  if (!shadow.is_valid()) return nullptr;
  Py_DECREF(remember(real, shadow.ptr(), at));
  const size_t index = shadows_.size() - 1;
  const nb::object expected = nb::steal(PyTuple_New(PySet_GET_SIZE(real) + 1));
  PyTuple_SET_ITEM(expected.ptr(), 0, Py_NewRef(type_object(real)));
  PyObject* item;
  Py_hash_t hash;
  Py_ssize_t k = 0;
  for (Py_ssize_t in = 0; _PySet_NextEntry(real, &in, &item, &hash); ++k) {
    PyTuple_SET_ITEM(expected.ptr(), k + 1, Py_NewRef(item));
    if (!compares_in_c(item) && !builtins().is_constant(item) && !builtins().is_enumeration(item))
      return stop(fmt::format("a set with a {} in it is not captured", Py_TYPE(item)->tp_name));
    if (!wrap_key(item, at, k)) return nullptr;
    if (!frozen && PySet_Add(shadow.ptr(), item) < 0) return nullptr;
  }
  expect(at, Check::Items, expected.ptr());
  if (frozen) return Py_NewRef(real);
  // What is added to them has to come to the same place.
  const auto *own = reinterpret_cast<PySetObject*>(shadow.ptr()),
             *other = reinterpret_cast<PySetObject*>(real);
  bool alike = other->fill == other->used && own->mask == other->mask;
  const nb::object order = nb::steal(PySet_Type.tp_iter(shadow.ptr()));
  shadows_[index].before = nb::steal(PySequence_List(order.ptr()));
  for (k = 0; k < PyList_GET_SIZE(shadows_[index].before.ptr()); ++k)
    alike =
        alike && PyList_GET_ITEM(shadows_[index].before.ptr(), k) == PyTuple_GET_ITEM(expected.ptr(), k + 1);
  if (!alike) return stop("a set whose order depends on what was in it before is not captured");
  return Py_NewRef(shadow.ptr());
}

PyObject* World::wrap_deque(PyObject* real, int at) {
  PyTypeObject* base = builtins().deque;
  const Py_ssize_t n = base->tp_as_sequence->sq_length(real);
  expect(at, Check::Length, type_object(real), n);
  const nb::object shadow = nb::steal(empty_like(real, base));
  if (!shadow.is_valid()) return nullptr;
  Py_DECREF(remember(real, shadow.ptr(), at));
  const size_t index = shadows_.size() - 1;
  const nb::list items;
  for (Py_ssize_t k = 0; k < n; ++k) {
    const nb::object item = nb::steal(base->tp_as_sequence->sq_item(real, k));
    const nb::object wrapped = nb::steal(wrap(item.ptr(), place(Step::DequeItem, at, nullptr, k)));
    if (!wrapped.is_valid()) return nullptr;
    PyList_Append(items.ptr(), wrapped.ptr());
  }
  PyObject* maximum = builtins().deque_bound.ptr();
  const nb::object bound = nb::steal(Py_TYPE(maximum)->tp_descr_get(maximum, real, type_object(real)));
  if (base->tp_init(shadow.ptr(), nb::make_tuple(items, bound).ptr(), nullptr) < 0) return nullptr;
  shadows_[index].before = items;
  return Py_NewRef(shadow.ptr());
}

PyObject* World::wrap_cell(PyObject* real, int at) {
  expect(at, Check::Type, type_object(real));
  const nb::object shadow = nb::steal(PyCell_New(nullptr));
  Py_DECREF(remember(real, shadow.ptr(), at));
  const size_t index = shadows_.size() - 1;
  const int inner = place(Step::Cell, at);
  if (!PyCell_GET(real)) {
    expect(inner, Check::Absent);
  } else {
    const nb::object value = nb::steal(wrap(PyCell_GET(real), inner));
    if (!value.is_valid()) return nullptr;
    PyCell_Set(shadow.ptr(), value.ptr());
    shadows_[index].before = value;
  }
  return Py_NewRef(shadow.ptr());
}

PyObject* World::wrap_method(PyObject* real, int at) {
  expect(at, Check::Type, type_object(real));
  const nb::object function = nb::steal(wrap(PyMethod_GET_FUNCTION(real), place(Step::MethodFunction, at)));
  if (!function.is_valid()) return nullptr;
  const nb::object self = nb::steal(wrap(PyMethod_GET_SELF(real), place(Step::MethodSelf, at)));
  if (!self.is_valid()) return nullptr;
  if (self.ptr() == PyMethod_GET_SELF(real) && function.ptr() == PyMethod_GET_FUNCTION(real))
    return remember(real, real, at);
  const nb::object shadow = nb::steal(PyMethod_New(function.ptr(), self.ptr()));
  return remember(real, shadow.ptr(), at);
}

PyObject* World::wrap_method_in_c(PyObject* real, int at) {
  expect(at, Check::Definition, real);
  const nb::object self = nb::steal(wrap(self_in_c(real), place(Step::MethodSelf, at)));
  if (!self.is_valid()) return nullptr;
  if (self.ptr() == self_in_c(real)) return remember(real, real, at);
  const nb::object shadow = nb::steal(bind_in_c(real, self.ptr()));
  return shadow.is_valid() ? remember(real, shadow.ptr(), at) : nullptr;
}

PyObject* World::wrap_partial(PyObject* real, int at) {
  expect(at, Check::Type, type_object(real));
  const nb::handle p(real);
  const nb::object function = nb::steal(wrap(p.attr("func").ptr(), place(Step::PartialFunction, at)));
  if (!function.is_valid()) return nullptr;
  const nb::object args = nb::steal(wrap(p.attr("args").ptr(), place(Step::PartialArguments, at)));
  if (!args.is_valid()) return nullptr;
  const nb::object keywords = nb::steal(wrap(p.attr("keywords").ptr(), place(Step::PartialKeywords, at)));
  if (!keywords.is_valid()) return nullptr;
  const nb::object shadow = nb::handle(type_object(real))(function, *nb::borrow<nb::args>(args),
                                                          **nb::borrow<nb::kwargs>(keywords));
  return remember(real, shadow.ptr(), at);
}

bool World::is_changed(const Shadow& s) {
  if (s.real == s.shadow) return false;
  PyObject* now = s.shadow;
  PyObject* before = s.before.ptr();
  const auto same_items = [&](PyObject* items) {
    const Py_ssize_t n = PyList_GET_SIZE(before);
    if (PySequence_Fast_GET_SIZE(items) != n) return false;
    for (Py_ssize_t k = 0; k < n; ++k)
      if (PySequence_Fast_GET_ITEM(items, k) != PyList_GET_ITEM(before, k)) return false;
    return true;
  };
  if (PyCell_Check(now)) return PyCell_GET(now) != before;
  if (!before) return false;
  if (PyList_Check(now)) return !same_items(now);
  if (PyDict_Check(now) && !PyODict_Check(now)) {
    if (PyDict_GET_SIZE(now) != PyDict_GET_SIZE(before)) return true;
    PyObject *key, *value, *old_key, *old_value;
    for (Py_ssize_t at = 0, old_at = 0;
         PyDict_Next(now, &at, &key, &value) && PyDict_Next(before, &old_at, &old_key, &old_value);)
      if (key != old_key || value != old_value) return true;
    return false;
  }
  if (PyODict_Check(now)) {
    const nb::object keys = nb::steal(PySequence_List(nb::steal(PyODict_Type.tp_iter(now)).ptr()));
    const nb::object old = nb::steal(PyDict_Keys(before));
    if (PyList_GET_SIZE(keys.ptr()) != PyList_GET_SIZE(old.ptr())) return true;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(old.ptr()); ++k) {
      PyObject* key = PyList_GET_ITEM(keys.ptr(), k);
      if (key != PyList_GET_ITEM(old.ptr(), k) || PyDict_GetItem(now, key) != PyDict_GetItem(before, key))
        return true;
    }
    return false;
  }
  // A set or a deque.
  const nb::object all = nb::steal((PySet_Check(now) ? &PySet_Type : builtins().deque)->tp_iter(now));
  const nb::object items = nb::steal(PySequence_List(all.ptr()));
  return !same_items(items.ptr());
}

}  // namespace fl::python::capture
#endif
