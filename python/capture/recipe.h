// How the objects that a capture left are made again in a run: from places, results of the graph and
// constants.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/trace/trace.h"
#include "object.h"

namespace fl::python::capture {

class World;

/// One step of making objects. It makes an object (`result` is its own number) or fills one made before.
struct Make {
  enum class Kind : uint8_t {
    Place,     ///< object of place `index`
    Output,    ///< result `index` of the graph
    Number,    ///< the first size of result `index`, less kNumberBias
    Float,     ///< the element of result `index`
    Constant,  ///< `object`
    Tuple,     ///< of type `object`
    List,
    Dict,
    Set,
    Empty,      ///< of class `object`, made by the C type below it
    Exception,  ///< of class `object` with arguments parts[0]
    Method,     ///< function, self
    MethodInC,  ///< what `object`, a method in C, does, bound to parts[0]
    Cell,
    Function,  ///< like `object`, with closure, defaults, keyword defaults, attributes (-1: none)
    Call,      ///< parts[0](parts[1:])
    // fillings of parts[0]
    Bound,     ///< a deque by its maximal length
    Extend,    ///< a list, deque or set by the other parts
    Update,    ///< a dict by keys and values
    SetDict,   ///< attributes in the __dict__: keys and values
    SetSlot,   ///< descriptor, value
    SetCell,   ///< contents
    SetState,  ///< __setstate__(parts[1])
    // changes of what was there before: of parts[0]
    AssignList,  ///< all items
    AssignDict,  ///< all keys and values
    AssignSet,
    AssignCell,       ///< contents; none: emptied
    SetAttribute,     ///< name, value
    DeleteAttribute,  ///< name
    SetItem,          ///< key, value of a dict
    DeleteItem,       ///< key
  };
  Kind kind;
  int index = -1;
  PyObject* object = nullptr;  ///< kept by the recipe
  std::vector<int> parts;
};

/// Numbers leave a graph as sizes of tensors without elements, which are not negative.
constexpr int64_t kNumberBias = int64_t{1} << 42;

/// Makes objects one after the other.
class Recipe {
 public:
  /// The objects, new references, by number. Raises nb::python_error.
  std::vector<nb::object> make(const std::vector<PyObject*>& places, const Tensors& outputs) const;
  const std::vector<Make>& steps() const { return steps_; }
  /// Gives the places that it reads other numbers.
  template <class F>
  void renumber_places(F&& number) {
    for (Make& m : steps_)
      if (m.kind == Make::Kind::Place) m.index = number(m.index);
  }

 private:
  friend class RecipeWriter;
  void fill(const Make& m, const std::vector<nb::object>& made) const;
  std::vector<Make> steps_;
  std::vector<nb::object> kept_;
};

/// Finds the recipe of what a capture left.
class RecipeWriter {
 public:
  explicit RecipeWriter(World& world) : world_(world) {}
  /// The number of an object; -1 with `problem` set where it can't be made again.
  int of(PyObject* o);
  bool knows(PyObject* o) const { return known_.count(o) > 0; }
  /// What the capture changed outside. False with `problem` set.
  bool changes();
  /// Tensors that the recipe takes from the graph.
  const Tensors& outputs() const { return outputs_; }
  Recipe take() { return std::move(recipe_); }
  std::string problem;
  /// With a problem: the steps of the frame before it began; -1: not known.
  int64_t began = -1;

 private:
  int add(Make::Kind kind, std::vector<int> parts = {}, PyObject* object = nullptr, int index = -1);
  int constant(PyObject* o) { return add(Make::Kind::Constant, {}, o); }
  int fail(const std::string& why);
  int tensor(PyObject* o);
  int number(PyObject* o);
  int float_number(PyObject* o);
  int sequence(PyObject* o);
  int list(PyObject* o);
  int dict(PyObject* o);
  int set(PyObject* o);
  int method(PyObject* o);
  int cell(PyObject* o);
  int function(PyObject* o);
  int instance(PyObject* o);
  int reduced(PyObject* o);
  bool attributes(PyObject* o, int made);
  bool members(PyObject* o, PyTypeObject* type, int made);
  /// Appends key and value of each item; false where one can't be made.
  bool items(PyObject* dict, std::vector<int>& parts);
  bool sequence_items(PyObject* o, std::vector<int>& parts);

  World& world_;
  Recipe recipe_;
  Tensors outputs_;
  std::unordered_map<PyObject*, int> known_;
  std::vector<nb::object> kept_;
};

}  // namespace fl::python::capture
#endif
