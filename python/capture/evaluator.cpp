#include "evaluator.h"

#if FLAMBEAU_CAPTURE
#include "module.h"
#include "run.h"
#include "world.h"

namespace fl::python::capture {

Evaluator::Result Evaluator::run(PyThreadState* thread, Frame* frame, bool throwing, int64_t limit) {
  const Linked linked(thread, frame);
  Run r(*this, world_, thread, frame);
  const bool is_root = world_ && frame == world_->root();
  bool in_call = false;  // between what prepares a call and the call
  if (throwing && !r.handle_error()) return {End::Error, nullptr};
  for (int64_t done = 0;;) {
    const Instruction& i = r.info.at[static_cast<size_t>(r.pc)];
    if (!in_call) {
      if (done == limit) {
        r.suspend();
        set_next(frame, r.pc);
        return {End::Limit, nullptr};
      }
      ++done;
      ++steps_;
      if (is_root) world_->root_steps = done - 1;
      if (is_root && r.pc == world_->break_at) {
        world_->stop("a break was asked for here");
        r.unit = r.pc;
        r.handle_error();
        return {End::Error, nullptr};
      }
    }
    in_call = i.op == KW_NAMES || i.op == PRECALL;
    r.unit = r.pc;
    set_running(frame, r.pc);
    r.pc = i.next;
    Status s = Status::Error;
    try {
      s = r.execute(i);
    } catch (...) {
      raise_in_python(std::current_exception());
      if (world_) world_->checked(nullptr);
    }
    if (s == Status::Next) continue;
    if (s == Status::Error) {
      in_call = false;
      r.keywords = nullptr;
      if (limit >= 0 && !world_) {  // the caller goes on with the exception
        r.suspend();
        return {End::Error, nullptr};
      }
      if (r.handle_error()) continue;
      return {End::Error, nullptr};
    }
    PyObject* value = r.pop();
    r.suspend();
    if (s == Status::Yield) set_running(frame, r.unit);
    return {s == Status::Yield ? End::Yield : End::Return, value};
  }
}

Run::Run(Evaluator&, World* w, PyThreadState* t, Frame* f)
    : world(w),
      thread(t),
      frame(f),
      code(code_of(f)),
      info(code_info(code)),
      locals(locals_of(f)),
      base(stack_of(f)),
      sp(base + depth_of(f)),
      pc(next_of(f)) {
  unit = pc > 0 ? pc - 1 : 0;
  f->stacktop = -1;
}

void Run::suspend() { set_depth(frame, static_cast<int>(sp - base)); }

bool Run::handle_error() {
  const Handler* h = world && world->stopped() ? nullptr : info.handler(unit);
  if (!h) {
    while (sp > base) Py_XDECREF(pop());
    suspend();
    return false;
  }
  while (sp - base > h->depth) Py_XDECREF(pop());
  if (h->keeps_place) push(PyLong_FromLong(unit));
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyException_SetTraceback(value, traceback ? traceback : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  if (world) world->note_handled(value);
  push(value);
  pc = h->target;
  return true;
}

Status Run::execute(const Instruction& i) {
  Status s = locals_and_stack(i);
  if (s == Status::Other) s = jumps(i);
  if (s == Status::Other) s = operators(i);
  if (s == Status::Other) s = attributes(i);
  if (s == Status::Other) s = containers(i);
  if (s == Status::Other) s = calls(i);
  if (s == Status::Other) s = exceptions(i);
  if (s == Status::Other) s = patterns(i);
  if (s != Status::Other) return s;
  if (world) {
    world->stop("instruction " + std::to_string(i.op) + " is not captured");
  } else {
    PyErr_Format(PyExc_SystemError, "instruction %d can't be run", int{i.op});
  }
  return Status::Error;
}

Status Run::locals_and_stack(const Instruction& i) {
  switch (i.op) {
    case NOP:
    case RESUME:
    case PRECALL:
      return Status::Next;
    case KW_NAMES:
      keywords = constant(i.arg);
      return Status::Next;
    case LOAD_FAST:
      return locals[i.arg] ? push_new(locals[i.arg]) : unbound(i.arg);
    case STORE_FAST: {
      PyObject* old = locals[i.arg];
      locals[i.arg] = pop();
      Py_XDECREF(old);
      return Status::Next;
    }
    case DELETE_FAST:
      if (!locals[i.arg]) return unbound(i.arg);
      Py_CLEAR(locals[i.arg]);
      return Status::Next;
    case LOAD_CONST:
      return push_new(constant(i.arg));
    case POP_TOP:
      Py_XDECREF(pop());
      return Status::Next;
    case PUSH_NULL:
      push(nullptr);
      return Status::Next;
    case COPY:
      Py_XINCREF(peek(i.arg));
      push(peek(i.arg));
      return Status::Next;
    case SWAP:
      std::swap(peek(1), peek(i.arg));
      return Status::Next;
    case MAKE_CELL: {
      PyObject* cell = PyCell_New(locals[i.arg]);
      if (!cell) return Status::Error;
      if (world) world->note_cell(cell);
      Py_XDECREF(locals[i.arg]);
      locals[i.arg] = cell;
      return Status::Next;
    }
    case COPY_FREE_VARS: {
      PyObject* closure = function_of(frame)->func_closure;
      const int first = code->co_nlocalsplus - i.arg;
      for (int k = 0; k < i.arg; ++k) {
        PyObject* cell = world ? world->free_cell(frame, k) : Py_NewRef(PyTuple_GET_ITEM(closure, k));
        if (!cell) return Status::Error;
        Py_XSETREF(locals[first + k], cell);
      }
      return Status::Next;
    }
    case LOAD_CLOSURE:
      return push_new(locals[i.arg]);
    case LOAD_CLASSDEREF: {
      PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i.arg);
      if (PyObject* o = frame->f_locals ? PyObject_GetItem(frame->f_locals, name) : nullptr)
        return push_result(o);
      PyErr_Clear();
      [[fallthrough]];
    }
    case LOAD_DEREF: {
      PyObject* value = PyCell_GET(locals[i.arg]);
      if (!value) return unbound(i.arg);
      return push_new(value);
    }
    case STORE_DEREF: {
      PyObject* value = pop();
      PyCell_Set(locals[i.arg], value);
      Py_DECREF(value);
      return Status::Next;
    }
    case DELETE_DEREF:
      if (!PyCell_GET(locals[i.arg])) return unbound(i.arg);
      PyCell_Set(locals[i.arg], nullptr);
      return Status::Next;
    default:
      return Status::Other;
  }
}

Status Run::unbound(int slot) {
  PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, slot);
  const bool is_free = PyBytes_AS_STRING(code->co_localspluskinds)[slot] & CO_FAST_FREE;
  PyErr_Format(
      is_free ? PyExc_NameError : PyExc_UnboundLocalError,
      is_free ? "cannot access free variable '%U' where it is not associated with a value in enclosing scope"
              : "cannot access local variable '%U' where it is not associated with a value",
      name);
  return Status::Error;
}

// 1, 0, or -1 with an error set; takes the value over.
int Run::truth(PyObject* value) {
  const int r = value == Py_True                        ? 1
                : value == Py_False || value == Py_None ? 0
                : world                                 ? world->truth(value)
                                                        : PyObject_IsTrue(value);
  Py_DECREF(value);
  return r;
}

Status Run::jumps(const Instruction& i) {
  const auto jump_if = [&](bool take, int delta) {
    if (take) pc += delta;
    return Status::Next;
  };
  switch (i.op) {
    case JUMP_FORWARD:
      return jump_if(true, i.arg);
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
      return jump_if(true, -i.arg);
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE: {
      const int t = truth(pop());
      if (t < 0) return Status::Error;
      const bool wanted = i.op == POP_JUMP_FORWARD_IF_TRUE || i.op == POP_JUMP_BACKWARD_IF_TRUE;
      const bool forward = i.op == POP_JUMP_FORWARD_IF_TRUE || i.op == POP_JUMP_FORWARD_IF_FALSE;
      return jump_if((t == 1) == wanted, forward ? i.arg : -i.arg);
    }
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE: {
      PyObject* value = pop();
      const bool none = value == Py_None;
      Py_DECREF(value);
      const bool wanted = i.op == POP_JUMP_FORWARD_IF_NONE || i.op == POP_JUMP_BACKWARD_IF_NONE;
      const bool forward = i.op == POP_JUMP_FORWARD_IF_NONE || i.op == POP_JUMP_FORWARD_IF_NOT_NONE;
      return jump_if(none == wanted, forward ? i.arg : -i.arg);
    }
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP: {
      Py_INCREF(peek(1));
      const int t = truth(peek(1));
      if (t < 0) return Status::Error;
      if ((t == 1) == (i.op == JUMP_IF_TRUE_OR_POP)) return jump_if(true, i.arg);
      Py_DECREF(pop());
      return Status::Next;
    }
    case GET_ITER: {
      PyObject* o = pop();
      PyObject* iterator = world ? world->iterate(o) : PyObject_GetIter(o);
      Py_DECREF(o);
      return push_result(iterator);
    }
    case FOR_ITER: {
      PyObject* iterator = peek(1);
      if (world && !world->may_use(iterator)) return Status::Error;
      PyObject* item = checked((*Py_TYPE(iterator)->tp_iternext)(iterator));
      if (item) return push_result(item);
      if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Status::Error;
        PyErr_Clear();
      }
      Py_DECREF(pop());
      return jump_if(true, i.arg);
    }
    case RETURN_VALUE:
      return Status::Return;
    case YIELD_VALUE:
      return yield_value();
    case GET_YIELD_FROM_ITER: {
      if (PyGen_CheckExact(peek(1))) return Status::Next;
      PyObject* o = pop();
      PyObject* iterator = world ? world->iterate(o) : PyObject_GetIter(o);
      Py_DECREF(o);
      return push_result(iterator);
    }
    case SEND:
      return send(i);
    default:
      return Status::Other;
  }
}

Status Run::yield_value() {
  if (!is_generator(frame)) return Status::Other;
  // The generator is the object that the frame lies in.
  auto* generator =
      reinterpret_cast<PyGenObject*>(reinterpret_cast<char*>(frame) - offsetof(PyGenObject, gi_iframe));
  generator->gi_frame_state = FRAME_SUSPENDED;
  return Status::Yield;
}

Status Run::send(const Instruction& i) {
  PyObject* value = pop();
  PyObject* receiver = peek(1);
  if (world && !world->may_use(receiver)) return Status::Error;
  PyObject* result = nullptr;
  const PySendResult got = PyIter_Send(receiver, value, &result);
  Py_DECREF(value);
  if (got == PYGEN_ERROR) {
    checked(nullptr);
    return Status::Error;
  }
  if (got == PYGEN_RETURN) {
    Py_DECREF(pop());
    push(result);
    pc += i.arg;
    return Status::Next;
  }
  push(result);
  return Status::Next;
}

}  // namespace fl::python::capture
#endif
