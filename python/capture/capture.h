// One run of the evaluator over a frame, from where it stands, on a copy behind glass.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluator.h"
#include "region.h"

namespace fl::python::capture {

/// What a run came to.
struct Attempt {
  Evaluator::End end = Evaluator::End::Error;
  int64_t steps = 0;    ///< of the root frame that are a part of the region
  bool raised = false;  ///< the program raises an exception after them
  Break why;
  Modes modes;
  std::vector<World::Input> inputs;
  int64_t farthest = 0;  ///< steps that went well, whether or not their end can be handed on
  int operators = 0;
  std::string problem;  ///< the state at the end can't be made again
  int64_t began = -1;   ///< the step with which the problem began; -1: not known
};

struct CaptureOptions {
  Trial trial;
  const std::set<std::string>* varying;  ///< names of places whose numbers are symbols
  bool records_calls;                    ///< for a backend that is a Python function
};

class Capture {
 public:
  Capture(PyThreadState* thread, Frame* frame, std::vector<nb::object> stand_ins,
          const CaptureOptions& options);
  ~Capture();
  Capture(const Capture&) = delete;

  const Modes& before() const { return before_; }
  CallRecorder* recorder() { return recorder_ ? &*recorder_ : nullptr; }
  const World& world() const { return world_; }
  /// Inputs that are floats and whose numbers something needed.
  const std::set<int>& needed() const { return needed_; }

  /// limit: steps of the frame; -1: as far as it goes.
  Attempt run(int64_t limit);
  /// How the frame goes on, as a recipe. False with `problem` set.
  bool write(Region& region, Tensors& outputs, std::string& problem, int64_t* began = nullptr);
  /// What the capture relied on so far.
  void guard(Region& region) const;

 private:
  /// No collection of garbage: it would run Python code that is no part of the program.
  class WithoutCollection {
   public:
    WithoutCollection() : was_on_(PyGC_Disable()) {}
    ~WithoutCollection() {
      if (was_on_) PyGC_Enable();
    }
    WithoutCollection(const WithoutCollection&) = delete;

   private:
    bool was_on_;
  };
  /// The exception that is being handled, put back at the end.
  class HandledException {
   public:
    explicit HandledException(PyThreadState* t) : info_(t->exc_info), before_(Py_XNewRef(info_->exc_value)) {}
    ~HandledException() { Py_XSETREF(info_->exc_value, before_); }
    bool unchanged() const { return info_->exc_value == before_; }

   private:
    _PyErr_StackItem* info_;
    PyObject* before_;
  };

  bool take_over();
  bool write_values(Region& region, RecipeWriter& writer);
  void drop_generators();
  /// Whether a local holds what it held at the start.
  bool is_as_it_was(int slot);

  WithoutCollection no_collection_;
  PyThreadState* thread_;
  Frame* real_;
  HandledException handled_;
  FrameCopy copy_;
  World world_;
  std::optional<CallRecorder> recorder_;
  Evaluator evaluator_;
  Modes before_;
  Capturing state_{}, *previous_ = nullptr;
  std::set<int> needed_, *needed_before_;
  PyObject* value_ = nullptr;
  std::set<int> taken_;  ///< locals that the capture began with
};

/// The largest number of steps that can be captured, its end and reason; nothing is compiled.
Attempt find_end(PyThreadState* thread, Frame* frame, const CaptureOptions& options);

}  // namespace fl::python::capture
#endif
