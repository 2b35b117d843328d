// What a capture leaves for a backend that is a Python function: the program's calls on tensors as a graph of
// Python objects (flambeau/_dynamo/recorder.py).
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <string>
#include <vector>

#include "flambeau/tensor/tensor.h"
#include "object.h"

namespace fl::python::capture {

class World;

/// One call of the evaluator is one node, whatever it does inside. What C code calls where the evaluator
/// does not see it ends the capture.
class CallRecorder {
 public:
  explicit CallRecorder(World& world);

  /// The arguments of a call.
  struct Call {
    PyObject* target;  ///< what is called
    PyObject* const* args;
    size_t positional;
    PyObject* keywords;  ///< names of the arguments after the positional ones: a tuple, or null
  };
  /// Runs `run` as the call, which gives a new reference or null. whole: the capture ends where a graph can't
  /// hold the arguments; otherwise what is called inside is recorded.
  template <class Run>
  PyObject* record(const Call& call, Run&& run, bool whole = false) {
    switch (begin(call, whole)) {
      case Begin::Inside:
        return run();
      case Begin::Stopped:
        return nullptr;
      default:
        return end(call, run());
    }
  }
  /// A tensor or number from outside and what stands for it, named by its place.
  bool input(PyObject* value, PyObject* real, const std::string& name);
  /// A variable of the program holds the value.
  void name(PyObject* value, PyObject* variable);
  /// Ends the capture if something was missed.
  bool is_complete();
  /// What the program returns and changed, numbers as SymInts. Raises nb::python_error.
  void output(const nb::list& values);
  nb::object python() const { return python_; }

 private:
  enum class Begin : uint8_t { Inside, Stopped, Records };
  Begin begin(const Call& call, bool whole);
  PyObject* end(const Call& call, PyObject* result);
  /// Whether a graph can hold an argument.
  static bool holds(PyObject* o, int depth = 0);
  /// Whether the result has a tensor that no node gave.
  bool is_new(PyObject* o) const;

  World& world_;
  nb::object python_;
  nb::object known_;  ///< dict: id of a tensor -> its node
  bool inside_ = false;
  int32_t calls_ = 0;  ///< of the trace, at the end of the last call
};

}  // namespace fl::python::capture
#endif
