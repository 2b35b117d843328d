// A captured stretch of a frame: guards, compiled graph, and how the frame goes on after it.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/compile/compile.h"
#include "flambeau/compile/quick_guard.h"
#include "guards.h"
#include "recipe.h"
#include "world.h"

namespace fl::python::capture {

/// Modes of a thread that a program may change.
struct Modes {
  bool grad_enabled, inference;
  AutocastState autocast;
  DType default_dtype;
  std::optional<Device> default_device;
  int cuda_device;  ///< what "cuda" means
  static Modes now();
  void set() const;
  bool operator==(const Modes& o) const;
};

/// What a backend that is a Python function made.
struct PythonProgram {
  /// Where an argument of the function comes from: an input, or a number of one.
  struct Argument {
    enum class Kind : uint8_t { Object, Size, Stride } kind;
    int input, dim;
  };
  nb::object function;
  std::vector<Argument> arguments;
  trace::TracedProgram traced;  ///< for guards
};

struct Region {
  GuardProgram guards;
  std::shared_ptr<aot::CompiledFunction> function;
  std::unique_ptr<PythonProgram> python;  ///< or this one
  const trace::TracedProgram& program() const { return python ? python->traced : function->joint().program; }
  std::unique_ptr<QuickGuard> quick;
  QuickGuard::Storages storages;  ///< of the inputs that were accepted last
  std::vector<int> inputs;        ///< numbers of the objects that the guards give
  std::vector<bool> inference;    ///< which inputs are inference tensors
  Recipe recipe;
  static constexpr int kNothing = -1, kAsItIs = -2;
  /// Numbers of the recipe, or one of these. Locals and stack where the frame goes on, or one value to
  /// return.
  std::vector<int> locals, stack;
  bool returns = false;
  int next_unit = 0;
  Modes modes_before, modes_after;
  std::shared_ptr<GraphReport> report = std::make_shared<GraphReport>();
  std::set<std::string> changes;  ///< names of the attributes that it changes
  std::string why_it_ends;        ///< empty where it returns
  int64_t runs = 0;
};

/// What is known of one state of a code object: an instruction and the height of the stack.
struct State {
  std::vector<std::shared_ptr<Region>> regions;
  std::map<size_t, std::set<int>> dynamic_dims;  ///< by the number of the input
  std::set<std::string> varying;                 ///< names of places whose ints are symbols
  std::set<std::string> fixed;                   ///< of ints that graphs need as numbers
  bool hopeless = false;                         ///< nothing to capture here: runs natively
  int failures = 0;
  int64_t nothing_for = 0;  ///< steps before which there is nothing to capture
};

struct CodeCache {
  std::map<std::pair<int, int>, State> states;
  bool skip = false;  ///< CPython runs it
};

/// What tests ask for: where regions end whatever is there, and what is captured without need.
struct Trial {
  int break_at = -1;        ///< the code unit of every frame at which a region ends; -1: none
  int64_t longest = -1;     ///< steps of a region; -1: as far as it goes
  bool everything = false;  ///< also regions without operators, and frames of the standard library
};

/// One call of compile(): its options, what was captured, and what happened.
class Unit {
 public:
  Unit(CompileOptions options, nb::object backend)
      : options(std::move(options)), backend(std::move(backend)) {}
  ~Unit();
  Unit(const Unit&) = delete;
  CompileOptions options;
  nb::object backend;  ///< a Python function in the place of the options' backend, or none
  Trial trial;
  std::map<PyCodeObject*, CodeCache> codes;
  std::vector<std::shared_ptr<Region>> regions;  ///< all, in order of their capture
  std::vector<Break> breaks;
  std::vector<std::string> recompiles;
  int64_t calls = 0;

  void note_break(const Break& b);
  CodeCache& cache(PyCodeObject* code);
};

/// Whether the environment asks for a kind of message: FLAMBEAU_LOGS or TORCH_LOGS, with the words
/// graph_breaks, recompiles, guards, graph_code.
bool is_logged(std::string_view what);

/// Captures from where a frame stands. Null if there is nothing to gain; then state.nothing_for says how far.
/// Raises what fullgraph asks for.
std::shared_ptr<Region> capture_region(PyThreadState* thread, Frame* frame, Unit& unit, State& state,
                                       const std::string& reason);

/// Runs a region on a frame whose guards hold. The value to return, or null with the frame ready to go on;
/// with *failed set where the graph raised: then the frame is as it was. Python's error is set if a
/// backend's function raised it.
PyObject* run_region(Region& region, Frame* frame, const std::vector<PyObject*>& places,
                     const Tensors& inputs, bool* failed);

/// A number that varies goes into a graph as a tensor: an int as the size of one without elements, a float as
/// an element of float64.
Tensor number_tensor(PyObject* number);

/// Whether the region may run; fills what it finds.
bool accepts(Region& region, Frame* frame, std::vector<PyObject*>& places, Tensors& inputs, std::string* why);

/// What is raised where a backend that is a function fails: _dynamo.exc.BackendCompilerFailed.
PyObject* backend_error();

/// The capture that goes on in this thread, or null.
class Evaluator;
struct Capturing {
  World* world;
  Evaluator* evaluator;
};
extern thread_local Capturing* capturing;

}  // namespace fl::python::capture
#endif
