// What the capture knows of functions and types written in C.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <unordered_map>
#include <unordered_set>

#include "object.h"

namespace fl::python::capture {

class World;

/// A function in C that reads or changes the world, as the capture does it.
using Intrinsic = PyObject* (*)(World&, PyObject* const* args, size_t count, PyObject* keywords);

class Builtins {
 public:
  Builtins();

  /// Null if the function is none of them.
  Intrinsic intrinsic(PyObject* function) const;
  /// Functions that give the same result for the same arguments and change nothing else.
  bool is_pure(PyObject* function) const { return pure_.count(function) > 0; }
  /// Types whose objects C code may be let loose on.
  bool is_plain(PyTypeObject* type) const;
  /// Objects that never change: functions in C, descriptors, dtypes, ...
  bool is_constant(PyObject* o) const;
  bool is_enumeration(PyObject* o) const;
  bool is_named_result(PyTypeObject* type) const;
  /// A function or type of this library in C that must not be called while a program is captured.
  bool is_forbidden(PyObject* function) const;
  static bool is_named(PyObject* function, const std::unordered_set<std::string>& names);
  /// A function that gives the text of its argument.
  static bool shows(PyObject* function);
  /// A function of the library that only says what its arguments are.
  static bool is_question(PyObject* function);
  /// A function of the library that computes gradients.
  static bool runs_backward(PyObject* function);
  /// A method of tensors that changes what autograd knows of one.
  static bool changes_tensor(PyObject* function);
  static bool is_of_library(PyTypeObject* type);
  static bool is_function_of_library(PyTypeObject* type);
  /// Module.__getattr__.
  PyObject* module_getattr() const;
  /// A function in Python whose calls graphs have as they are: those of nn.functional.
  bool is_functional(PyObject* function) const;
  /// Whether an object is an nn.Module.
  bool is_module(PyObject* o) const;

  PyTypeObject *partial, *deque, *default_dict, *size, *lru_cache, *enum_type, *method_wrapper;
  PyObject *build_class, *apply;            ///< apply: autograd.Function's, as a function
  nb::object default_factory, deque_bound;  ///< descriptors
  PyObject *item, *to_list;                 ///< methods of Tensor
  nb::object unsupported_error, internal_error;

 private:
  std::unordered_map<PyObject*, Intrinsic> intrinsics_;
  std::unordered_set<PyObject*> pure_;
  std::unordered_set<PyTypeObject*> plain_, constant_types_;
};

const Builtins& builtins();

}  // namespace fl::python::capture
#endif
