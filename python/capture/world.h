// What a capture sees of the program: objects from outside are read through places, and each reading leaves
// a guard. Tensors are replaced by their stand-ins, containers and cells by copies ("shadows") that hold
// stand-ins; attributes of objects and globals are written into overlays. Objects that the capture makes are
// real. So C code runs on them as ever, and nothing outside changes while a program is captured.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "call_recorder.h"
#include "guards.h"
#include "object.h"
#include "sym_float.h"

namespace fl::python::capture {

/// Where and why a capture ended.
struct Break {
  std::string reason;
  std::string where;  ///< the user's lines, outermost first
};

class World {
 public:
  /// The frame whose values the places start from.
  explicit World(Frame* root);
  ~World();
  World(const World&) = delete;

  // --- state ---
  /// Ends the capture: sets an exception that no handler catches. Returns null.
  PyObject* stop(const std::string& reason);
  bool stopped() const { return stopped_; }
  const Break& why() const { return why_; }
  /// After a call into C: an error that says that the program can't be captured ends the capture.
  PyObject* checked(PyObject* result);
  /// Steps of the root frame so far; set by the evaluator.
  int64_t root_steps = 0;
  int break_at = -1;  ///< the code unit of the root frame that stops the capture
  Frame* root() const { return root_; }
  /// For a backend that is a Python function: what gets the calls.
  CallRecorder* recorder = nullptr;
  /// An operation of an instruction: a call of a function of the module operator, as far as graphs know it.
  template <class F>
  PyObject* operation(const char* name, std::initializer_list<PyObject*> args, F&& run) {
    if (!recorder) return run();
    return recorder->record({operator_function(name), args.begin(), args.size(), nullptr}, run);
  }

  // --- reading: new references, null with an error set ---
  PyObject* wrap(PyObject* real, int place);
  PyObject* getattr(PyObject* o, PyObject* name);
  /// The same; a method of the type that only lacks its self comes as it is, with *unbound set.
  PyObject* get_method(PyObject* o, PyObject* name, bool* unbound);
  PyObject* generic_attribute(PyObject* o, PyObject* name, bool* unbound);
  PyObject* global(Frame* f, PyObject* name);
  PyObject* subscript(PyObject* o, PyObject* key);
  PyObject* iterate(PyObject* o);
  PyObject* import_name(Frame* f, PyObject* name, PyObject* from, PyObject* level);
  /// The cell of a free variable of the function that a frame runs.
  PyObject* free_cell(Frame* f, Py_ssize_t index);
  PyObject* compare_identity(PyObject* a, PyObject* b, bool invert);

  // --- writing: -1 with an error set ---
  int setattr(PyObject* o, PyObject* name, PyObject* value);  ///< null deletes
  int generic_setattr(PyObject* o, PyObject* name, PyObject* value);
  PyObject* instance_dict(PyObject* o);
  int set_global(Frame* f, PyObject* name, PyObject* value);  ///< null deletes

  // --- calls ---
  PyObject* call(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords);
  /// Whether C may work on operands by their types' slots. Otherwise ends the capture.
  bool may_use(PyObject* o);
  bool may_use(PyObject* a, PyObject* b) { return may_use(a) && may_use(b); }
  /// Whether the text of an object is the same for every object like it: does not show an address. Otherwise
  /// ends the capture.
  bool may_show(PyObject* o, int depth = 0);
  /// Whether a value of the root frame may go. Not if it is from outside and its end could run code, which
  /// the program would see. Otherwise ends the capture.
  bool may_drop(PyObject* o);
  /// Whether the end of an object from outside can run code of the program.
  static bool ends_with_code(PyObject* o);
  /// Truth of a value; -1 with an error set.
  int truth(PyObject* o);

  /// The arguments of a function that is called, where they are its defaults.
  bool take_defaults(Frame* f);
  /// Cells of a generator that C has just made.
  bool take_cells(Frame* generator);

  // --- what the capture found ---
  int local(int slot) { return place(Step::Local, -1, nullptr, slot); }
  int stack(int slot) { return place(Step::Stack, -1, nullptr, slot); }
  const std::vector<Place>& places() const { return places_; }
  /// The real tensors that were read, in order, and numbers that vary.
  struct Input {
    PyObject* real;  ///< a tensor, or an int or float that varies
    int place;
  };
  const std::vector<Input>& inputs() const { return inputs_; }
  /// Python objects that stand for the inputs, in their order; set before the capture runs. Without them
  /// tensors stand for themselves.
  void set_stand_ins(std::vector<nb::object> list) { stand_ins_ = std::move(list); }

  /// Names of places whose numbers are symbols.
  void set_varying(const std::set<std::string>* names) { varying_ = names; }

  /// The place of an object from outside or of its shadow; -1: made by the capture.
  int place_of(PyObject* o) const;
  /// The object that a shadow stands for; o itself if it is none.
  PyObject* original(PyObject* o) const;
  bool is_opaque(PyObject* o) const { return opaque_.count(o) > 0; }
  /// A place whose object has to be the constant.
  int constant(PyObject* o);
  /// Cells that the capture made.
  bool made_cell(PyObject* cell) const { return cells_.count(cell) > 0; }
  void note_cell(PyObject* cell) { cells_.insert(keep(cell)); }
  /// A generator that the capture made.
  void note_generator(PyObject* generator) {
    // It goes when the program drops it.
    generators_.push_back(nb::steal(PyWeakref_NewRef(generator, nullptr)));
  }
  /// Functions and classes that the capture made.
  bool was_made(PyObject* o) const { return made_.count(o) > 0; }
  void note_made(PyObject* o) { made_.emplace(keep(o), root_steps); }
  /// Whether a cache of the program has an object, which then is the same one in each run.
  bool is_cached(PyObject* o) const { return cached_.count(o) > 0; }
  /// The root's step that made it.
  int64_t made_at(PyObject* o) const { return made_.at(o); }

  struct Shadow {
    PyObject *real, *shadow;
    int place;
    nb::object before;  ///< the contents at the start, as a list, dict or set
  };
  const std::vector<Shadow>& shadows() const { return shadows_; }
  struct Overlay {
    PyObject* target;  ///< an object, or the dict of a module
    int place;
    PyObject* changes;  ///< dict: name -> value, or `deleted()`
    bool is_globals;
  };
  const std::vector<Overlay>& overlays() const { return overlays_; }
  static PyObject* deleted();
  /// Guards that two places give different objects.
  void differ(int a, int b);
  Pairs differences, equalities;
  /// Guards that a place gives the object of another place.
  void same(int at, int other);
  /// Guards that an object from outside stays the same one.
  void keep_identity(PyObject* o) {
    if (const int at = place_of(o); at >= 0) expect(at, Check::Identity, original(o));
  }
  /// The address of an object of the capture, which must not leave it.
  void note_address(PyObject* o, PyObject* number) {
    keep(o);
    addresses_.insert(PyLong_AsVoidPtr(number));
  }
  bool is_address(PyObject* number) const {
    return !addresses_.empty() && addresses_.count(PyLong_AsVoidPtr(number)) > 0;
  }
  /// Whether the contents of a shadow are not what they were.
  static bool is_changed(const Shadow& s);
  /// An exception that `raise` made: an error of the program, not of the capture.
  void note_raised(PyObject* exception) { raised_.insert(keep(exception)); }
  /// An exception came to a handler.
  void note_handled(PyObject* exception) { handled_.emplace(keep(exception), root_steps); }
  /// The root's step in which an exception came to a handler first; -1: it did not.
  int64_t handled_at(PyObject* exception) const {
    auto it = handled_.find(exception);
    return it == handled_.end() ? -1 : it->second;
  }
  /// Names of the places of attributes that the program changes.
  std::set<std::string> changed_attributes() const;
  /// The lines of the program that lead to where it is, outermost first.
  std::string user_stack() const;
  /// For the end of a capture: two objects of a kind stay two where one of them is changed.
  void guard_changed();

 private:
  int place(Step step, int parent, PyObject* key = nullptr, Py_ssize_t index = 0);
  void expect(int place, Check check, PyObject* expected = nullptr, Py_ssize_t index = 0);
  PyObject* keep(PyObject* o);
  PyObject* remember(PyObject* real, PyObject* shadow, int place, PyObject* before = nullptr);
  PyObject* wrap_tensor(PyObject* real, int place);
  PyObject* wrap_number(PyObject* real, int place);
  PyObject* stand_in(PyObject* real, int place);
  std::string input_name(int place) const;
  PyObject* wrap_tuple(PyObject* real, int place);
  PyObject* wrap_list(PyObject* real, int place);
  PyObject* wrap_dict(PyObject* real, int place);
  PyObject* wrap_dict_of_tensors(PyObject* real, PyObject* shadow, int place);
  bool wrap_factory(PyObject* real, PyObject* shadow, int place);
  PyObject* wrap_set(PyObject* real, int place);
  PyObject* wrap_deque(PyObject* real, int place);
  PyObject* wrap_cell(PyObject* real, int place);
  PyObject* wrap_method(PyObject* real, int place);
  PyObject* wrap_method_in_c(PyObject* real, int place);
  /// Key or item `index` of a dict or set, which stays what it is. False where it can't.
  bool wrap_key(PyObject* key, int container, Py_ssize_t index);
  PyObject* wrap_partial(PyObject* real, int place);
  PyObject* empty_like(PyObject* real, PyTypeObject* base);

  /// An attribute of a type, borrowed; null if there is none. Guarded.
  PyObject* type_attribute(PyTypeObject* type, PyObject* name);
  void guard_type(PyTypeObject* type);
  PyObject* attribute_of_tensor(PyObject* o, PyObject* name, bool* unbound);
  PyObject* attribute_of_function(PyObject* o, PyObject* name);
  PyObject* attribute_of_type(PyTypeObject* type, PyObject* name);
  PyObject* attribute_of_module(PyObject* module, PyObject* name);
  PyObject* attribute_of_super(PyObject* super, PyObject* name);
  PyObject* attribute_of_nn_module(PyObject* o, PyObject* name, bool* found);
  PyObject* instance_attribute(PyObject* o, PyObject* name, bool* found);
  PyObject* bind(PyObject* descriptor, PyObject* o, PyTypeObject* type);
  /// What the capture wrote to an object or the dict of a module: a dict; null: nothing.
  PyObject* overlay_of(PyObject* target) const;
  PyObject* make_overlay(PyObject* target, int place, bool is_globals);
  PyObject* call_cached(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords);
  /// What the program has changed outside so far: other numbers after other changes.
  std::vector<size_t> state(size_t shadows) const;
  PyObject* call_native(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords);
  /// Whether a function in C may run; otherwise ends the capture.
  bool may_call(PyObject* f, PyObject* const* args, size_t count);
  static PyObject* operator_function(const char* name);
  /// Whether a tensor that was read was computed from others for which gradients are wanted.
  bool has_earlier_gradients() const;

  Frame* root_;
  bool stopped_ = false;
  Break why_;
  std::vector<Place> places_;
  /// By how a place is reached.
  struct PlaceHash {
    size_t operator()(const Place& p) const;
  };
  struct SamePlace {
    bool operator()(const Place& a, const Place& b) const;
  };
  std::unordered_map<Place, int, PlaceHash, SamePlace> place_index_;
  std::unordered_map<PyObject*, int> shadow_index_;  // of the real object and of its shadow
  std::vector<Shadow> shadows_;
  std::vector<Input> inputs_;
  std::unordered_map<PyObject*, size_t> input_index_;  // real and stand-in
  std::vector<nb::object> stand_ins_;
  const std::set<std::string>* varying_ = nullptr;
  std::unordered_map<int, size_t> number_index_;  // by place
  std::unordered_set<PyObject*> opaque_, cells_, raised_, cached_;
  std::unordered_map<PyObject*, int64_t> made_;
  nb::dict cached_results_;  ///< of functions under functools.lru_cache
  std::vector<Overlay> overlays_;
  std::unordered_map<PyObject*, size_t> overlay_index_;
  std::unordered_map<PyObject*, PyObject*> full_dicts_;  // object -> shadow of its __dict__
  std::unordered_set<void*> addresses_;
  std::unordered_map<PyObject*, int64_t> handled_;
  std::vector<nb::object> generators_;  // weak references
  std::vector<nb::object> kept_;
};

/// Whether a tensor is a view whose base came to require gradients after it was made.
bool is_late_view(const Tensor& t);
/// Whether an object is a symbolic integer.
inline bool is_sym_int(PyObject* o) { return Py_TYPE(o) == sym_int_type; }

/// Whether a class was made by a class statement.
bool is_python_class(PyTypeObject* type);
/// The C type that a Python class lies over.
PyTypeObject* builtin_base(PyTypeObject* type);

}  // namespace fl::python::capture
#endif
