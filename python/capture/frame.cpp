#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <opcode.h>
#include <pthread.h>

#include <cstring>

#undef HAVE_STD_ATOMIC  // C's atomics are not C++; the header can do with the compiler's own
#define Py_BUILD_CORE 1
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

namespace fl::python::capture {

#if PY_VERSION_HEX >= 0x030d0000
Frame* current_frame(PyThreadState* thread) { return thread->current_frame; }

Linked::Linked(PyThreadState* thread, Frame* f) : thread_(thread), before_(thread->current_frame) {
  f->previous = before_;
  thread->current_frame = f;
}
Linked::~Linked() { thread_->current_frame = before_; }
#else
Frame* current_frame(PyThreadState* thread) { return thread->cframe->current_frame; }

Linked::Linked(PyThreadState* thread, Frame* f) : thread_(thread) {
#if PY_VERSION_HEX < 0x030c0000
  mine_.use_tracing = thread->cframe->use_tracing;
  f->is_entry = true;
#endif
  mine_.previous = thread->cframe;
  mine_.current_frame = f;
  f->previous = thread->cframe->current_frame;
  thread->cframe = &mine_;
}
Linked::~Linked() {
  thread_->cframe = mine_.previous;
#if PY_VERSION_HEX < 0x030c0000
  thread_->cframe->use_tracing = mine_.use_tracing;
#endif
}
#endif

#if PY_VERSION_HEX >= 0x030c0000
Py_ssize_t new_code_field(void (*free)(void*)) { return PyUnstable_Eval_RequestCodeExtraIndex(free); }

void* code_field(PyCodeObject* code, Py_ssize_t field) {
  void* data = nullptr;
  PyUnstable_Code_GetExtra(reinterpret_cast<PyObject*>(code), field, &data);
  return data;
}

void set_code_field(PyCodeObject* code, Py_ssize_t field, void* data) {
  PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), field, data);
}
#else
Py_ssize_t new_code_field(void (*free)(void*)) { return _PyEval_RequestCodeExtraIndex(free); }

void* code_field(PyCodeObject* code, Py_ssize_t field) {
  void* data = nullptr;
  _PyCode_GetExtra(reinterpret_cast<PyObject*>(code), field, &data);
  return data;
}

void set_code_field(PyCodeObject* code, Py_ssize_t field, void* data) {
  _PyCode_SetExtra(reinterpret_cast<PyObject*>(code), field, data);
}
#endif

Frame* caller_of(const Frame* f) {
  Frame* below = f->previous;
#if PY_VERSION_HEX >= 0x030c0000
  while (below && below->owner == FRAME_OWNED_BY_CSTACK) below = below->previous;
#endif
  return below;
}

bool is_watched(PyThreadState* thread, PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030c0000
  for (auto tools : thread->interp->monitors.tools)
    if (tools) return true;
  if (code->_co_monitoring)
    for (auto tools : code->_co_monitoring->local_monitors.tools)
      if (tools) return true;
  return false;
#else
  (void)code;
  return thread->cframe->use_tracing != 0;
#endif
}

bool is_collecting(PyThreadState* thread) { return thread->interp->gc.collecting != 0; }

PyObject* dict_of_type(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030c0000
  PyObject* dict = PyType_GetDict(type);
  Py_XDECREF(dict);  // the type holds it
  return dict;
#else
  return type->tp_dict;
#endif
}

uint64_t version_of_dict(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
}

bool has_version(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030d0000
  const auto* d = reinterpret_cast<PyDictObject*>(dict);
  if (!d->ma_values) return true;
  if (PyDict_GET_SIZE(dict) == 0) return false;
  // popitem() gives the dict a table of its own; the last item goes back to where it was.
  PyObject* item = PyObject_CallMethod(dict, "popitem", nullptr);
  if (!item || PyDict_SetItem(dict, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1)) < 0) PyErr_Clear();
  Py_XDECREF(item);
  return !d->ma_values;
#else
  (void)dict;
  return true;
#endif
}

bool has_stack_left() {
  static thread_local const char* limit = [] {
    pthread_attr_t attributes;
    void* low = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &low, &size);
      pthread_attr_destroy(&attributes);
    }
    return static_cast<const char*>(low);
  }();
  const char here = 0;
  return !limit || &here - limit > (1 << 20);
}

#if PY_VERSION_HEX >= 0x030c0000
namespace {

/// Levels of C that a call through a hook counts and CPython's own calls do not.
constexpr int kLevelsOfC = 2;

/// Instructions that return from any frame: they look at nothing of the code around them. Each stands there
/// twice, as versions differ in what a frame's place is. The second is for frames without room on the stack;
/// their code ends with it and so has constants.
struct Ends {
  _Py_CODEUNIT with_value[2], with_constant[2];
  Ends() {
    for (int k = 0; k < 2; ++k) {
      with_value[k].op = {RETURN_VALUE, 0};
      with_constant[k].op = {RETURN_CONST, 0};
    }
  }
};

_Py_CODEUNIT*& place_of(Frame* f) {
#if PY_VERSION_HEX >= 0x030d0000
  return f->instr_ptr;
#else
  return f->prev_instr;
#endif
}

}  // namespace

PyObject* run_in_cpython(PyThreadState* thread, Frame* f, bool throwing, _PyFrameEvalFunction evaluate) {
  const int more = has_stack_left() ? kLevelsOfC : 0;
  thread->c_recursion_remaining += more;
  PyObject* value = evaluate(thread, f, throwing);
  thread->c_recursion_remaining -= more;
  return value;
}

// From 3.12 on, the one who runs a frame also clears it, and what does that is not to be had from outside. So
// CPython runs an instruction that returns from the frame. It lies in this library, as not all code has one
// at hand; a frame object that lives on must not show it.
PyObject* leave(PyThreadState* thread, Frame* f, PyObject* value) {
  static Ends ends;
  PyObject *type = nullptr, *exception = nullptr, *traceback = nullptr;
  if (!value) PyErr_Fetch(&type, &exception, &traceback);
  for (int k = depth_of(f); k-- > 0;) Py_CLEAR(stack_of(f)[k]);
  const bool has_stack = code_of(f)->co_stacksize > 0;
  if (has_stack) stack_of(f)[0] = Py_NewRef(Py_None);
  set_depth(f, has_stack);
  PyFrameObject* shown = f->frame_obj;
  Py_XINCREF(shown);
  _Py_CODEUNIT* place = place_of(f);
  place_of(f) = has_stack ? ends.with_value : ends.with_constant;
  ++recursion_left(thread);  // it is not a call that could be one too deep
  Py_XDECREF(run_in_cpython(thread, f, false, _PyEval_EvalFrameDefault));
  --recursion_left(thread);
  if (shown) {
    place_of(shown->f_frame) = place;
    Py_DECREF(shown);
  }
  if (!value) PyErr_Restore(type, exception, traceback);
  return value;
}

void suspend_generator(PyThreadState* thread, Frame* f, int unit, bool delegating) {
  PyGenObject* generator = _PyFrame_GetGenerator(f);
#if PY_VERSION_HEX >= 0x030d0000
  generator->gi_frame_state = delegating ? FRAME_SUSPENDED_YIELD_FROM : FRAME_SUSPENDED;
  set_next(f, unit + 1);
#else
  (void)delegating;
  generator->gi_frame_state = FRAME_SUSPENDED;
  set_running(f, unit);
#endif
  thread->exc_info = generator->gi_exc_state.previous_item;
  generator->gi_exc_state.previous_item = nullptr;
  f->previous = nullptr;
}
#else
PyObject* run_in_cpython(PyThreadState* thread, Frame* f, bool throwing, _PyFrameEvalFunction evaluate) {
  return evaluate(thread, f, throwing);
}

PyObject* leave(PyThreadState*, Frame*, PyObject* value) { return value; }  // the caller clears the frame

void suspend_generator(PyThreadState*, Frame* f, int unit, bool) {
  // The generator is the object that the frame lies in.
  auto* generator =
      reinterpret_cast<PyGenObject*>(reinterpret_cast<char*>(f) - offsetof(PyGenObject, gi_iframe));
  generator->gi_frame_state = FRAME_SUSPENDED;
  set_running(f, unit);
}
#endif

FrameCopy::FrameCopy(const Frame* f)
    : words_(static_cast<size_t>(code_of(f)->co_nlocalsplus + code_of(f)->co_stacksize) +
             FRAME_SPECIALS_SIZE + 1) {
  PyFunctionObject* function = function_of(f);
  Py_INCREF(function);
#if PY_VERSION_HEX >= 0x030c0000
  _PyFrame_Initialize(frame(), function, nullptr, code_of(f), 0);
#else
  _PyFrame_InitializeSpecials(frame(), function, nullptr, code_of(f)->co_nlocalsplus);
#endif
  set_next(frame(), next_of(f));
  set_depth(frame(), 0);
}

FrameCopy::~FrameCopy() {
  Frame* f = frame();
  f->previous = nullptr;
  if (PyFrameObject* shown = f->frame_obj; shown && Py_REFCNT(shown) > 1) {
    // Somebody keeps the frame object: it gets the frame, as it would at the end of a call.
    auto* own = reinterpret_cast<Frame*>(shown->_f_frame_data);
    memcpy(own, f, reinterpret_cast<char*>(f->localsplus + f->stacktop) - reinterpret_cast<char*>(f));
    own->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    shown->f_frame = own;
    if (!PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(shown))) PyObject_GC_Track(shown);
    Py_DECREF(shown);
    own->frame_obj = nullptr;
    return;
  }
  for (int i = 0; i < f->stacktop; ++i) Py_XDECREF(f->localsplus[i]);
  Py_CLEAR(f->frame_obj);
#if PY_VERSION_HEX >= 0x030d0000
  Py_CLEAR(f->f_executable);
#else
  Py_CLEAR(f->f_code);
#endif
#if PY_VERSION_HEX >= 0x030c0000
  Py_CLEAR(f->f_funcobj);
#else
  Py_CLEAR(f->f_func);
#endif
}

}  // namespace fl::python::capture
#endif
