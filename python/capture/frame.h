// What differs between versions of CPython: the frame and how it is linked. The only file that knows.
#pragma once
#include <Python.h>

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
#define FLAMBEAU_CAPTURE 1
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#define FLAMBEAU_CAPTURE 0
#endif

#if FLAMBEAU_CAPTURE
#include <opcode.h>

#include <memory>
#include <vector>

namespace fl::python::capture {

using Frame = _PyInterpreterFrame;

inline PyCodeObject* code_of(const Frame* f) { return f->f_code; }
inline PyFunctionObject* function_of(const Frame* f) { return f->f_func; }
/// Cells and values of locals, then the stack.
inline PyObject** locals_of(Frame* f) { return f->localsplus; }
inline PyObject** stack_of(Frame* f) { return f->localsplus + f->f_code->co_nlocalsplus; }
/// Values on the stack of a frame that does not run.
inline int depth_of(const Frame* f) { return f->stacktop - f->f_code->co_nlocalsplus; }
inline void set_depth(Frame* f, int depth) { f->stacktop = f->f_code->co_nlocalsplus + depth; }
/// The code unit that runs next.
inline int next_of(const Frame* f) { return _PyInterpreterFrame_LASTI(f) + 1; }
inline void set_next(Frame* f, int unit) { f->prev_instr = _PyCode_CODE(f->f_code) + unit - 1; }
/// The code unit that runs now, for line numbers and the table of exceptions.
inline void set_running(Frame* f, int unit) { f->prev_instr = _PyCode_CODE(f->f_code) + unit; }
inline bool is_generator(const Frame* f) { return f->owner == FRAME_OWNED_BY_GENERATOR; }
/// Whether somebody watches every line of this thread.
inline bool is_watched(PyThreadState* thread) { return thread->cframe->use_tracing != 0; }
inline Frame* current_frame(PyThreadState* thread) { return thread->cframe->current_frame; }

/// Makes a frame the thread's current one for a scope.
class Linked {
 public:
  Linked(PyThreadState* thread, Frame* f) : thread_(thread) {
    mine_.use_tracing = thread->cframe->use_tracing;
    mine_.previous = thread->cframe;
    mine_.current_frame = f;
    f->is_entry = true;
    f->previous = thread->cframe->current_frame;
    thread->cframe = &mine_;
  }
  ~Linked() {
    thread_->cframe = mine_.previous;
    thread_->cframe->use_tracing = mine_.use_tracing;
  }
  Linked(const Linked&) = delete;

 private:
  PyThreadState* thread_;
  _PyCFrame mine_;
};

/// Makes a generator that waits at a yield one that never began: dropping it runs none of its code.
void rewind_generator(PyObject* generator);

/// A frame in memory of its own that stands where another one does, with other values.
class FrameCopy {
 public:
  /// Without values.
  explicit FrameCopy(const Frame* f)
      : words_(static_cast<size_t>(f->f_code->co_nlocalsplus + f->f_code->co_stacksize) +
               FRAME_SPECIALS_SIZE + 1) {
    Py_INCREF(f->f_func);
    _PyFrame_InitializeSpecials(frame(), f->f_func, nullptr, f->f_code->co_nlocalsplus);
    frame()->prev_instr = f->prev_instr;
    set_depth(frame(), 0);
  }
  ~FrameCopy() {
    for (int i = 0; i < frame()->stacktop; ++i) Py_XDECREF(frame()->localsplus[i]);
    Py_CLEAR(frame()->f_code);
    Py_CLEAR(frame()->f_func);
  }
  FrameCopy(const FrameCopy&) = delete;
  Frame* frame() { return reinterpret_cast<Frame*>(words_.data()); }

 private:
  std::vector<PyObject*> words_;
};

/// One instruction with its argument; prefixes are a part of it.
struct Instruction {
  uint8_t op = 0;
  int32_t arg = 0;
  int32_t next = 0;  ///< the code unit after it and its cache
};

/// An entry of the table of exceptions.
struct Handler {
  int start, end, target, depth;
  bool keeps_place;  ///< the place of the raise goes onto the stack
};

/// What is read from a code object once.
struct CodeInfo {
  std::vector<Instruction> at;  ///< by code unit; set where an instruction starts
  std::vector<Handler> handlers;
  std::vector<std::vector<bool>> live;  ///< by code unit: which locals may be read from there on

  const Handler* handler(int unit) const {
    for (const Handler& h : handlers)
      if (unit >= h.start && unit < h.end) return &h;
    return nullptr;
  }
};
/// Kept as long as the process.
const CodeInfo& code_info(PyCodeObject* code);

}  // namespace fl::python::capture
#endif
