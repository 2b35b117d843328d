// Runs instructions of CPython: on the frame as it is, or with the world outside behind glass (world.h).
#pragma once
#include "instruction.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {

class World;

class Evaluator {
 public:
  /// Why run() came back.
  enum class End : uint8_t { Return, Yield, Error, Limit, Handled };
  struct Result {
    End end = End::Error;
    PyObject* value = nullptr;  ///< new reference; Return and Yield
  };

  /// world: null to run natively.
  explicit Evaluator(World* world) : world_(world) {}

  /// Runs a frame from where it stands, at most `limit` steps (-1: to its end). At the limit the frame is
  /// between two instructions; natively it comes there earlier, before what only CPython can run. A step is
  /// an instruction, or those that prepare a call together with the call. throwing: the exception that is set
  /// was raised at the instruction before. After an error: the unit that raised is the frame's running one.
  /// Natively and with a limit it comes back as Handled where an exception goes to a handler: the frame is at
  /// its start, for CPython to go on.
  Result run(PyThreadState* thread, Frame* frame, bool throwing, int64_t limit = -1);
  int64_t steps() const { return steps_; }

 private:
  World* world_;
  int64_t steps_ = 0;
};

}  // namespace fl::python::capture
#endif
