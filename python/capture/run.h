// One frame while the evaluator runs it.
#pragma once
#include "evaluator.h"

#if FLAMBEAU_CAPTURE
#include <utility>

#include "world.h"

namespace fl::python::capture {

enum class Status : uint8_t {
  Next,
  Return,  ///< with the value on the stack
  Yield,   ///< with the value on the stack
  Error,   ///< an exception is set
  Other,   ///< not an instruction of this group
};

struct Run {
  Run(World* w, PyThreadState* t, Frame* f);

  World* const world;
  PyThreadState* const thread;
  Frame* const frame;
  PyCodeObject* const code;
  const CodeInfo& info;
  PyObject** const locals;
  PyObject** const base;
  PyObject** sp;
  int pc;
  int unit;                      ///< where the running instruction starts
  PyObject* keywords = nullptr;  ///< for the next call; borrowed

  void push(PyObject* o) { *sp++ = o; }
  PyObject* pop() { return *--sp; }
  PyObject*& peek(int n) { return sp[-n]; }
  Status push_new(PyObject* o) {
    Py_INCREF(o);
    push(o);
    return Status::Next;
  }
  Status push_result(PyObject* o) {
    if (!o) return Status::Error;
    push(o);
    return Status::Next;
  }
  PyObject* constant(int k) const { return PyTuple_GET_ITEM(code->co_consts, k); }
  PyObject* name(int k) const { return PyTuple_GET_ITEM(code->co_names, k); }
  PyObject* checked(PyObject* result) { return world ? world->checked(result) : result; }
  int checked(int result) {
    if (world && result < 0) world->checked(nullptr);
    return result;
  }
  bool may_drop(PyObject* o) { return !world || frame != world->root() || world->may_drop(o); }
  /// Writes the stack's height to the frame.
  void suspend();
  /// Goes to the handler of the exception that is set; false if there is none.
  bool handle_error();

  Status execute(const Instruction& i);
  Status locals_and_stack(const Instruction& i);
  Status jumps(const Instruction& i);
  Status operators(const Instruction& i);
  Status attributes(const Instruction& i);
  Status containers(const Instruction& i);
  Status calls(const Instruction& i);
  Status exceptions(const Instruction& i);
  Status patterns(const Instruction& i);

  Status load_fast(int slot);
  Status store_fast(int slot);
  static PyObject* item_of(PyObject* mapping, PyObject* key);
  Status unbound(int slot);
  int truth(PyObject* value);
  Status send(const Instruction& i);
  Status binary(const Instruction& i);
  Status compare(const Instruction& i);
  Status slice(const Instruction& i);
  Status load_method(const Instruction& i);
  Status load_super(const Instruction& i);
  Status names(const Instruction& i);
  Status build(const Instruction& i);
  Status unpack(const Instruction& i);
  Status unpack_ex(const Instruction& i);
  PyObject* subscript(PyObject* o, PyObject* key);
  int store_subscript(PyObject* o, PyObject* key, PyObject* value);
  Status format(PyObject* value, int conversion, bool formats, PyObject* spec);
  Status formats(const Instruction& i);
  static void merge_error(PyObject* function, PyObject* more);
  Status call(const Instruction& i);
  /// Pushes a callable that has its self, as a call wants it.
  void push_callable(PyObject* f) {
    if (kNullBelow) push(nullptr);
    push(f);
    if (!kNullBelow) push(nullptr);
  }
  Status call_ex(const Instruction& i);
  Status make_function(const Instruction& i);
  Status set_function_attribute(const Instruction& i);
  Status raise(const Instruction& i);
  Status stop_iteration_error();
  Status enter_with();
  Status match_class(const Instruction& i);
  Status match_keys();
  PyObject* call_object(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords);
  PyObject* get_attribute(PyObject* o, PyObject* name);
  /// Replaces the topmost `count` values by a result.
  Status replace(int count, PyObject* result) {
    for (int k = 0; k < count; ++k) Py_XDECREF(pop());
    return push_result(result);
  }
};

}  // namespace fl::python::capture
#endif
