#include "self_test.h"

#if FLAMBEAU_CAPTURE
#include "evaluator.h"
#include "module.h"

namespace fl::python::capture {
namespace {

constexpr const char* kFunctions = R"(
def constant(x):
    if x:
        return 1
    return 2

class Manager:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        return self.log.append
    def __exit__(self, *error):
        self.log.append(error[0])
        return True

def fail(text):
    raise ValueError(text)

def everything(x, y=3, *rest, k=5):
    log = []
    def inner(a):
        return a + y
    for i in range(2):
        log.append([inner(j) for j in (x, i)])
    with Manager(log) as add:
        add(y)
        fail("in a with")
    try:
        log[1:2] = [f"{x!r} {k:4}", {"a": x, **{"b": 1}}, max(x, k, key=lambda v: -v)]
        first, *others = log
        fail(first)
    except ValueError as error:
        log.append(str(error))
    finally:
        log.append(x < k and not y == 4)
    return tuple(log)

def counts(n):
    try:
        for i in range(n):
            sent = yield i
            if sent:
                yield from (sent, sent)
    except KeyError:
        yield "caught"

def uses(n):
    g = counts(n)
    all = [next(g), g.send(7), next(g), next(g), g.throw(KeyError)]
    counts(1).close()
    return all + list(counts(n))
)";

/// What the hook does with frames of one code object.
enum class Trial : uint8_t { Return, Raise, Steps, Copy, Generator };

struct {
  PyCodeObject* code = nullptr;
  Trial trial = Trial::Return;
  int64_t steps = 0;
  int64_t taken = 0;
} now;

PyObject* finish(PyThreadState* thread, Frame* f, const Evaluator::Result& r) {
  return r.end == Evaluator::End::Yield ? r.value : leave(thread, f, r.value);
}

PyObject* try_frame(PyThreadState* thread, Frame* f) {
  Evaluator evaluator(nullptr);
  switch (now.trial) {
    case Trial::Return:
      return leave(thread, f, PyLong_FromLong(7));
    case Trial::Raise:
      PyErr_SetString(PyExc_LookupError, "raised by the hook");
      return leave(thread, f, nullptr);
    case Trial::Steps: {
      const Evaluator::Result r = evaluator.run(thread, f, false, now.steps);
      now.taken = evaluator.steps();
      if (r.end == Evaluator::End::Return || r.end == Evaluator::End::Error) return leave(thread, f, r.value);
      return run_in_cpython(thread, f, false, _PyEval_EvalFrameDefault);
    }
    default: {
      FrameCopy copy(f);
      for (int k = 0; k < code_of(f)->co_nlocalsplus; ++k)
        locals_of(copy.frame())[k] = Py_XNewRef(locals_of(f)[k]);
      return leave(thread, f, evaluator.run(thread, copy.frame(), false).value);
    }
  }
}

PyObject* hook(PyThreadState* thread, Frame* f, int throwing) {
  if (code_of(f) != now.code) return _PyEval_EvalFrameDefault(thread, f, throwing);
  if (now.trial != Trial::Generator) return try_frame(thread, f);
  if (!is_generator(f)) return _PyEval_EvalFrameDefault(thread, f, throwing);
  return finish(thread, f, Evaluator(nullptr).run(thread, f, throwing));
}

class Trials {
 public:
  Trials() {
    PyObject* made = PyRun_String(kFunctions, Py_file_input, names_.ptr(), names_.ptr());
    if (!made) throw nb::python_error();
    Py_DECREF(made);
  }

  std::string run() {
    const nb::object constant = names_["constant"], everything = names_["everything"], uses = names_["uses"];
    const nb::object five = nb::int_(5), seven = nb::int_(7), many = nb::int_(123456);
    if (!same(call(constant, Trial::Return, constant, five), seven)) return "a frame that returns early";
    if (!call(constant, Trial::Raise, constant, five).is_none()) return "a frame that raises early";
    const nb::object wanted = everything(many), wanted_list = uses(five);
    const Py_ssize_t references = Py_REFCNT(many.ptr());
    if (!same(call(everything, Trial::Copy, everything, many), wanted)) return "a copy of a frame";
    if (Py_REFCNT(many.ptr()) != references) return "references of a copy of a frame";
    for (int64_t steps = 0, before = -1; now.taken != before || steps < 2; ++steps) {
      before = std::exchange(now.taken, 0);
      if (!same(call(everything, Trial::Steps, everything, many, steps), wanted))
        return fmt::format("a frame that goes on after {} steps", steps);
      if (Py_REFCNT(many.ptr()) != references)
        return fmt::format("references of a frame that goes on after {} steps", steps);
    }
    if (!same(call(names_["counts"], Trial::Generator, uses, five), wanted_list)) return "a generator";
    return "";
  }

 private:
  static bool same(const nb::object& a, const nb::object& b) {
    return PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ) == 1;
  }

  /// f(argument) with the hook on a function's frames; None where it raises LookupError.
  static nb::object call(const nb::object& hooked, Trial trial, const nb::object& f,
                         const nb::object& argument, int64_t steps = 0) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    now.code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(hooked.ptr()));
    now.trial = trial;
    now.steps = steps;
    _PyFrameEvalFunction before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook);
    PyObject* r = PyObject_CallOneArg(f.ptr(), argument.ptr());
    _PyInterpreterState_SetEvalFrameFunc(interpreter, before);
    now.code = nullptr;
    if (r) return nb::steal(r);
    if (!PyErr_ExceptionMatches(PyExc_LookupError)) throw nb::python_error();
    PyErr_Clear();
    return nb::none();
  }

  nb::dict names_;
};

std::string run_trials() {
  PyThreadState* thread = PyThreadState_Get();
  std::string problem;
  PyThreadState_EnterTracing(thread);
  try {
    problem = Trials().run();
  } catch (nb::python_error& e) {
    problem = e.what();
  }
  PyThreadState_LeaveTracing(thread);
  return problem;
}

}  // namespace

const std::string& frames_problem() {
  static const std::string problem = run_trials();
  return problem;
}

}  // namespace fl::python::capture
#endif
