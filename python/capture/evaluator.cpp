#include "evaluator.h"

#if FLAMBEAU_CAPTURE
#include "module.h"
#include "run.h"
#include "world.h"

namespace fl::python::capture {
namespace {

/// Adds the frame, which is the current one, to the traceback of the exception that is set.
void add_traceback(PyThreadState* thread, Frame* f) {
  PyFrameObject* shown = PyThreadState_GetFrame(thread);
  if (shown && shown->f_frame == f) PyTraceBack_Here(shown);
  Py_XDECREF(shown);
}

}  // namespace

Evaluator::Result Evaluator::run(PyThreadState* thread, Frame* frame, bool throwing, int64_t limit) {
  const Linked linked(thread, frame);
  Run r(world_, thread, frame);
  const bool is_root = world_ && frame == world_->root();
  bool in_call = false;  // between what prepares a call and the call
  if (throwing && !r.handle_error()) return {End::Error, nullptr};
  for (int64_t done = 0;;) {
    const Instruction& i = r.info.at[static_cast<size_t>(r.pc)];
    if (!in_call) {
      if (done == limit || (!world_ && limit >= 0 && is_left_to_cpython(i.op))) {
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
    in_call = i.op == Op::KwNames || i.op == Op::Precall;
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
      const bool stays = limit >= 0 && !world_;
      if (stays) add_traceback(thread, frame);
      if (r.handle_error()) {
        if (!stays) continue;
        r.suspend();
        set_next(frame, r.pc);
        return {End::Handled, nullptr};
      }
      return {End::Error, nullptr};
    }
    PyObject* value = r.pop();
    r.suspend();
    if (s == Status::Yield) suspend_generator(thread, frame, r.unit, i.arg == 1);
    return {s == Status::Yield ? End::Yield : End::Return, value};
  }
}

Run::Run(World* w, PyThreadState* t, Frame* f)
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
  forget_depth(f);
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
    world->stop("the instruction " + name_of(i) + " is not captured");
  } else {
    PyErr_Format(PyExc_SystemError, "the instruction %s can't be run", name_of(i).c_str());
  }
  return Status::Error;
}

Status Run::locals_and_stack(const Instruction& i) {
  switch (i.op) {
    case Op::Nop:
    case Op::Precall:
      return Status::Next;
    case Op::KwNames:
      keywords = constant(i.arg);
      return Status::Next;
    case Op::LoadFast:
      return load_fast(i.arg);
    case Op::LoadFastAndClear:
      push(std::exchange(locals[i.arg], nullptr));
      return Status::Next;
    case Op::LoadFastLoadFast: {
      const Status s = load_fast(i.arg >> 4);
      return s == Status::Next ? load_fast(i.arg & 15) : s;
    }
    case Op::StoreFast:
      return store_fast(i.arg);
    case Op::StoreFastLoadFast: {
      const Status s = store_fast(i.arg >> 4);
      return s == Status::Next ? load_fast(i.arg & 15) : s;
    }
    case Op::StoreFastStoreFast: {
      const Status s = store_fast(i.arg >> 4);
      return s == Status::Next ? store_fast(i.arg & 15) : s;
    }
    case Op::DeleteFast:
      if (!locals[i.arg]) return unbound(i.arg);
      if (!may_drop(locals[i.arg])) return Status::Error;
      Py_CLEAR(locals[i.arg]);
      return Status::Next;
    case Op::LoadConst:
      return push_new(constant(i.arg));
    case Op::PopTop:
      if (!may_drop(peek(1))) return Status::Error;
      Py_XDECREF(pop());
      return Status::Next;
    case Op::PushNull:
      push(nullptr);
      return Status::Next;
    case Op::Copy:
      Py_XINCREF(peek(i.arg));
      push(peek(i.arg));
      return Status::Next;
    case Op::Swap:
      std::swap(peek(1), peek(i.arg));
      return Status::Next;
    case Op::MakeCell: {
      PyObject* cell = PyCell_New(locals[i.arg]);
      if (!cell) return Status::Error;
      if (world) world->note_cell(cell);
      Py_XDECREF(locals[i.arg]);
      locals[i.arg] = cell;
      return Status::Next;
    }
    case Op::CopyFreeVars: {
      PyObject* closure = function_of(frame)->func_closure;
      const int first = code->co_nlocalsplus - i.arg;
      for (int k = 0; k < i.arg; ++k) {
        PyObject* cell = world ? world->free_cell(frame, k) : Py_NewRef(PyTuple_GET_ITEM(closure, k));
        if (!cell) return Status::Error;
        Py_XSETREF(locals[first + k], cell);
      }
      return Status::Next;
    }
    case Op::LoadClosure:
      return push_new(locals[i.arg]);
    case Op::LoadClassDeref:
    case Op::LoadFromDictOrDeref: {
      PyObject* mapping = i.op == Op::LoadClassDeref ? Py_XNewRef(frame->f_locals) : pop();
      PyObject* o = item_of(mapping, PyTuple_GET_ITEM(code->co_localsplusnames, i.arg));
      Py_XDECREF(mapping);
      if (o || PyErr_Occurred()) return push_result(o);
      [[fallthrough]];
    }
    case Op::LoadDeref: {
      PyObject* value = PyCell_GET(locals[i.arg]);
      if (!value) return unbound(i.arg);
      return push_new(value);
    }
    case Op::StoreDeref: {
      PyObject* value = pop();
      PyCell_Set(locals[i.arg], value);
      Py_DECREF(value);
      return Status::Next;
    }
    case Op::DeleteDeref:
      if (!PyCell_GET(locals[i.arg])) return unbound(i.arg);
      PyCell_Set(locals[i.arg], nullptr);
      return Status::Next;
    default:
      return Status::Other;
  }
}

Status Run::load_fast(int slot) { return locals[slot] ? push_new(locals[slot]) : unbound(slot); }

Status Run::store_fast(int slot) {
  if (world && world->recorder)
    world->recorder->name(peek(1), PyTuple_GET_ITEM(code->co_localsplusnames, slot));
  if (!may_drop(locals[slot])) return Status::Error;
  PyObject* old = std::exchange(locals[slot], pop());
  Py_XDECREF(old);
  return Status::Next;
}

// An item of the mapping that a class body runs in; null without an error if it is not there.
PyObject* Run::item_of(PyObject* mapping, PyObject* key) {
  PyObject* o = mapping ? PyObject_GetItem(mapping, key) : nullptr;
  if (!o && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return o;
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
  const auto jump_if = [&](bool take) {
    if (take) pc = i.jump;
    return Status::Next;
  };
  switch (i.op) {
    case Op::Jump:
      return jump_if(true);
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfTrue: {
      const int t = truth(pop());
      return t < 0 ? Status::Error : jump_if((t == 1) == (i.op == Op::PopJumpIfTrue));
    }
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone: {
      PyObject* value = pop();
      const bool none = value == Py_None;
      Py_DECREF(value);
      return jump_if(none == (i.op == Op::PopJumpIfNone));
    }
    case Op::JumpIfFalseOrPop:
    case Op::JumpIfTrueOrPop: {
      Py_INCREF(peek(1));
      const int t = truth(peek(1));
      if (t < 0) return Status::Error;
      if ((t == 1) == (i.op == Op::JumpIfTrueOrPop)) return jump_if(true);
      Py_DECREF(pop());
      return Status::Next;
    }
    case Op::GetIter: {
      PyObject* o = pop();
      PyObject* iterator = world ? world->iterate(o) : PyObject_GetIter(o);
      Py_DECREF(o);
      return push_result(iterator);
    }
    case Op::ForIter: {
      PyObject* iterator = peek(1);
      if (world && !world->may_use(iterator)) return Status::Error;
      PyObject* item = checked((*Py_TYPE(iterator)->tp_iternext)(iterator));
      if (item) return push_result(item);
      if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Status::Error;
        PyErr_Clear();
      }
      Py_DECREF(pop());
      return jump_if(true);
    }
    case Op::ReturnConst:
      push_new(constant(i.arg));
      return Status::Return;
    case Op::ReturnValue:
      return Status::Return;
    case Op::YieldValue:
      return is_generator(frame) ? Status::Yield : Status::Other;
    case Op::GetYieldFromIter: {
      if (PyGen_CheckExact(peek(1))) return Status::Next;
      PyObject* o = pop();
      PyObject* iterator = world ? world->iterate(o) : PyObject_GetIter(o);
      Py_DECREF(o);
      return push_result(iterator);
    }
    case Op::Send:
      return send(i);
    case Op::EndSend: {
      PyObject* value = pop();
      return replace(1, value);
    }
    case Op::CleanupThrow: {  // receiver, what was sent last, exception -> None, value
      PyObject* exception = peek(1);
      if (!PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
        PyErr_Restore(Py_NewRef(Py_TYPE(exception)), Py_NewRef(exception),
                      PyException_GetTraceback(exception));
        return Status::Error;
      }
      PyObject* value = PyObject_GetAttrString(exception, "value");
      replace(3, Py_NewRef(Py_None));
      return push_result(value);
    }
    default:
      return Status::Other;
  }
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
    if (!kSendKeepsReceiver) Py_DECREF(pop());
    push(result);
    pc = i.jump;
    return Status::Next;
  }
  push(result);
  return Status::Next;
}

}  // namespace fl::python::capture
#endif
