// Guards: a flat program that finds the objects a capture read, each by one step from an earlier one, and
// checks what the capture relied on. It runs no user code.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <memory>
#include <string>
#include <vector>

#include "object.h"

namespace fl::python::capture {

/// How an object is reached from its parent.
enum class Step : uint8_t {
  Local,        ///< slot `index` of the frame's locals
  Stack,        ///< slot `index` of the frame's stack
  Function,     ///< the function that the frame runs
  Globals,      ///< name `key` among the function's globals, then builtins
  Constant,     ///< `key` itself
  Itself,       ///< the parent, for another check
  Instance,     ///< item `key` of the object's __dict__
  Dictionary,   ///< the object's __dict__
  Slot,         ///< member descriptor `key` of the object
  DictItem,     ///< item `key` of a dict
  DictValue,    ///< value `index` of a dict, for keys that C alone can't look up
  DictKeyAt,    ///< key in entry `index` of a dict, or in the next one that is taken
  DictValueAt,  ///< value of that key
  ListItem,     ///< item `index`
  TupleItem,    ///< item `index`
  DequeItem,    ///< item `index`
  Key,          ///< key or item `index` of a dict or set, in the order of iteration
  TypeItem,     ///< attribute `key` of a type, by its method resolution order
  Cell,         ///< contents of a cell
  FreeCell,     ///< cell `index` of a function's closure
  Code,         ///< a function's code
  Defaults,     ///< its default arguments
  KeywordDefaults,
  MethodSelf,  ///< what a method, in Python or C, is bound to
  MethodFunction,
  PartialFunction,
  PartialArguments,
  PartialKeywords,
};

/// What has to hold for it. `expected` and `index` are the check's.
enum class Check : uint8_t {
  None,
  Absent,
  Present,
  Identity,     ///< it is `expected`
  Type,         ///< its type is `expected`
  Length,       ///< its type is `expected` and its length `index`
  Equal,        ///< a number or text of the type and value of `expected`
  Keys,         ///< a dict of the type expected[0] whose keys are expected[1:], in order
  Items,        ///< a set of the type expected[0] whose items are expected[1:], in the order of iteration
  Definition,   ///< a method in C, bound to whatever object: that of `expected`
  Code,         ///< a function of the code expected[0] and the globals expected[1]
  TypeVersion,  ///< a type that was not changed since its version was `index`
  Number,       ///< an int of 0 or more
  Float,        ///< a float
  SameAs,       ///< the object of place `index`
};

struct Place {
  Step step;
  Check check = Check::None;
  int parent = -1;
  Py_ssize_t index = 0, check_index = 0;
  PyObject* key = nullptr;       ///< kept by the owner
  PyObject* expected = nullptr;  ///< kept by the owner
};

using Pairs = std::vector<std::pair<int, int>>;

/// "self.layer.weight", for messages.
std::string place_name(const std::vector<Place>& places, int place, PyCodeObject* code);
/// Whether looking an object up and comparing it with others of its kind runs C code only.
bool compares_in_c(PyObject* o);
/// Whether two such objects are the same value of one type.
bool same_value(PyObject* a, PyObject* b);
/// What a method in C is bound to, borrowed; null if it is none.
PyObject* self_in_c(PyObject* o);
/// What it does, whatever it is bound to: a PyMethodDef or a descriptor.
void* definition(PyObject* o);
/// The same method, bound to another object; new reference.
PyObject* bind_in_c(PyObject* method, PyObject* self);
/// Whether an int or a float may stand for others in a graph.
bool may_vary(PyObject* o);

class Snapshot;

class GuardProgram {
 public:
  GuardProgram();
  /// differences, equalities: places that must give different objects, or the same one.
  GuardProgram(const std::vector<Place>& places, Pairs differences, Pairs equalities);
  ~GuardProgram();
  GuardProgram(GuardProgram&&) noexcept;
  GuardProgram& operator=(GuardProgram&&) noexcept;

  /// Asks for the object of a place; gives its number among those that check() gives.
  int need(int place);
  /// Gives the objects that were asked for (borrowed; null where there is none). False with *why set, if that
  /// is given, where a check fails.
  bool check(Frame* f, std::vector<PyObject*>& needed, std::string* why);
  const std::vector<Place>& places() const { return places_; }
  /// "self.training: True", for messages.
  std::string text(int place, PyCodeObject* code) const;
  /// The place whose check failed last.
  int failed() const { return failed_; }
  /// What it gave.
  PyObject* value(int place) const { return values_[static_cast<size_t>(place)]; }
  std::string name(int place, PyCodeObject* code) const { return place_name(places_, place, code); }

 private:
  bool check_all(Frame* f, std::string* why);
  bool pairs_hold(PyCodeObject* code, std::string* why) const;

  std::vector<Place> places_;
  Pairs differences_, equalities_;
  std::vector<nb::object> kept_;
  std::vector<int> needed_;
  std::vector<PyObject*> values_;  ///< of all places in the last check; used under Python's lock
  std::unique_ptr<Snapshot> snapshot_;
  int checks_ = 0;  ///< that held
  int failed_ = -1;
};

/// The object at a place, or null. `values`: of the places before it.
PyObject* find(const Place& p, Frame* f, const std::vector<PyObject*>& values);

}  // namespace fl::python::capture
#endif
