// What differs between versions of CPython: the frame, how it is linked, and how it ends. code_info.cpp knows
// how their instructions are written; no other file knows versions.
#pragma once
#include <Python.h>

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000 && !defined(Py_GIL_DISABLED)
#define FLAMBEAU_CAPTURE 1
#undef _PyGC_FINALIZED  // defined again by the internal headers
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#define FLAMBEAU_CAPTURE 0
#endif

#if FLAMBEAU_CAPTURE
#include <vector>

#if PY_VERSION_HEX >= 0x030d0000
// Exported, but its headers are not for C++.
extern "C" {
PyAPI_FUNC(int) _PyObject_GetMethod(PyObject* o, PyObject* name, PyObject** method);
PyAPI_FUNC(int) _PySet_Update(PyObject* set, PyObject* more);
PyAPI_FUNC(int) _PySet_NextEntry(PyObject* set, Py_ssize_t* at, PyObject** key, Py_hash_t* hash);
PyAPI_FUNC(int) _PyDict_MergeEx(PyObject* dict, PyObject* more, int override);
}
#endif

namespace fl::python::capture {

using Frame = _PyInterpreterFrame;

#if PY_VERSION_HEX >= 0x030d0000
inline PyCodeObject* code_of(const Frame* f) { return reinterpret_cast<PyCodeObject*>(f->f_executable); }
inline _Py_CODEUNIT* units_of(const Frame* f) { return _PyCode_CODE(code_of(f)); }
/// The code unit that runs next.
inline int next_of(const Frame* f) { return static_cast<int>(f->instr_ptr - units_of(f)); }
inline void set_next(Frame* f, int unit) { f->instr_ptr = units_of(f) + unit; }
/// The code unit that runs now, as line numbers have it.
inline int running_of(const Frame* f) { return static_cast<int>(f->instr_ptr - units_of(f)); }
inline void set_running(Frame* f, int unit) { f->instr_ptr = units_of(f) + unit; }
#else
inline PyCodeObject* code_of(const Frame* f) { return f->f_code; }
inline _Py_CODEUNIT* units_of(const Frame* f) { return _PyCode_CODE(code_of(f)); }
inline int next_of(const Frame* f) { return static_cast<int>(f->prev_instr - units_of(f)) + 1; }
inline void set_next(Frame* f, int unit) { f->prev_instr = units_of(f) + unit - 1; }
inline int running_of(const Frame* f) { return static_cast<int>(f->prev_instr - units_of(f)); }
inline void set_running(Frame* f, int unit) { f->prev_instr = units_of(f) + unit; }
#endif

#if PY_VERSION_HEX >= 0x030c0000
inline PyFunctionObject* function_of(const Frame* f) {
  return reinterpret_cast<PyFunctionObject*>(f->f_funcobj);
}
/// Levels of Python's recursion that a thread has left.
inline int& recursion_left(PyThreadState* thread) { return thread->py_recursion_remaining; }
#else
inline PyFunctionObject* function_of(const Frame* f) { return f->f_func; }
inline int& recursion_left(PyThreadState* thread) { return thread->recursion_remaining; }
#endif

/// Cells and values of locals, then the stack.
inline PyObject** locals_of(Frame* f) { return f->localsplus; }
inline PyObject** stack_of(Frame* f) { return f->localsplus + code_of(f)->co_nlocalsplus; }
/// Values on the stack of a frame that does not run.
inline int depth_of(const Frame* f) { return f->stacktop - code_of(f)->co_nlocalsplus; }
inline void set_depth(Frame* f, int depth) { f->stacktop = code_of(f)->co_nlocalsplus + depth; }
inline void forget_depth(Frame* f) { f->stacktop = -1; }
inline bool is_generator(const Frame* f) { return f->owner == FRAME_OWNED_BY_GENERATOR; }
/// Whether a generator stands at a yield.
inline bool waits(const PyGenObject* generator) {
#if PY_VERSION_HEX >= 0x030d0000
  return FRAME_STATE_SUSPENDED(generator->gi_frame_state);
#else
  return generator->gi_frame_state == FRAME_SUSPENDED;
#endif
}
/// A field of all code objects for data of ours, and what frees it with a code.
Py_ssize_t new_code_field(void (*free)(void*));
/// Null where nothing was set.
void* code_field(PyCodeObject* code, Py_ssize_t field);
void set_code_field(PyCodeObject* code, Py_ssize_t field, void* data);
Frame* current_frame(PyThreadState* thread);
/// The frame below one, of a function or module; null at the end.
Frame* caller_of(const Frame* f);

/// Units that a loop skips where it jumps to its end, beyond its target.
inline constexpr int kAfterLoop = PY_VERSION_HEX >= 0x030d0000 ? 2 : PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;
/// Of a callable without self and the null that a call wants: whether the null lies below.
inline constexpr bool kNullBelow = PY_VERSION_HEX < 0x030d0000;
/// Whether SEND leaves the exhausted receiver on the stack.
inline constexpr bool kSendKeepsReceiver = PY_VERSION_HEX >= 0x030c0000;

/// Whether somebody watches this thread or code: debuggers, profilers, coverage.
bool is_watched(PyThreadState* thread, PyCodeObject* code);

/// Whether garbage is being collected: what runs now was not called by the program.
bool is_collecting(PyThreadState* thread);

/// The dict of a class, borrowed.
PyObject* dict_of_type(PyTypeObject* type);
/// What changes with every change of a class; 0 if it is not kept.
inline unsigned version_of(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030d0000
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

/// What changes with every change of a dict.
uint64_t version_of_dict(PyObject* dict);
/// Whether the version of an object's __dict__ also changes where the object's attributes are set. Makes it
/// so where the object itself has the values.
bool has_version(PyObject* dict);

/// Lets CPython run a frame; throwing: the exception that is set was raised at its place. A call through a
/// hook nests in C, where CPython's own does not: as long as there is stack for it, that is not counted.
PyObject* run_in_cpython(PyThreadState* thread, Frame* f, bool throwing, _PyFrameEvalFunction evaluate);
/// Ends a frame that the hook got and ran itself. value: what it returns (taken over), or null with an
/// exception set. Gives what the hook has to return. The frame is gone then.
PyObject* leave(PyThreadState* thread, Frame* f, PyObject* value);
/// Makes a generator wait where its frame yields; the frame's depth is set. delegating: in `yield from`.
void suspend_generator(PyThreadState* thread, Frame* f, int unit, bool delegating);
/// Whether a megabyte of the thread's stack is left.
bool has_stack_left();

/// Makes a frame the thread's current one for a scope.
class Linked {
 public:
  Linked(PyThreadState* thread, Frame* f);
  ~Linked();
  Linked(const Linked&) = delete;

 private:
  PyThreadState* thread_;
#if PY_VERSION_HEX >= 0x030d0000
  Frame* before_;
#else
  _PyCFrame mine_;
#endif
};

/// Makes a generator that waits at a yield one that never began: dropping it runs none of its code.
void rewind_generator(PyObject* generator);
/// Whether somebody keeps the frame's object and so may look at its locals.
inline bool is_shown(const Frame* f) {
  return f->frame_obj && Py_REFCNT(reinterpret_cast<PyObject*>(f->frame_obj)) > 1;
}

/// A frame in memory of its own that stands where another one does, with other values.
class FrameCopy {
 public:
  /// Without values.
  explicit FrameCopy(const Frame* f);
  ~FrameCopy();
  FrameCopy(const FrameCopy&) = delete;
  Frame* frame() { return reinterpret_cast<Frame*>(words_.data()); }

 private:
  std::vector<PyObject*> words_;
};

}  // namespace fl::python::capture
#endif
