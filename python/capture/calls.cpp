// Calls, functions, exceptions, with, match.
#include "run.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {

PyObject* Run::call_object(PyObject* f, PyObject* const* args, size_t positional, PyObject* kw) {
  return world ? world->call(f, args, positional, kw) : PyObject_Vectorcall(f, args, positional, kw);
}

Status Run::calls(const Instruction& i) {
  switch (i.op) {
    case Op::CallKw: {
      PyObject* names = keywords = pop();  // of a constant
      const Status s = call(i);
      Py_DECREF(names);
      return s;
    }
    case Op::Call:
      return call(i);
    case Op::CallFunctionEx:
      return call_ex(i);
    case Op::MakeFunction:
      return make_function(i);
    case Op::SetFunctionAttribute:
      return set_function_attribute(i);
    case Op::LoadBuildClass: {
      PyObject* o = PyDict_GetItemString(frame->f_builtins, "__build_class__");
      return push_result(Py_XNewRef(o));
    }
    default:
      return Status::Other;
  }
}

Status Run::call(const Instruction& i) {
  PyObject* kw = std::exchange(keywords, nullptr);
  const bool has_self = (kNullBelow ? peek(i.arg + 2) : peek(i.arg + 1)) != nullptr;
  const int total = i.arg + (has_self ? 1 : 0);
  PyObject* f = kNullBelow && !has_self ? peek(i.arg + 1) : peek(i.arg + 2);
  const size_t positional = static_cast<size_t>(total) - (kw ? static_cast<size_t>(PyTuple_GET_SIZE(kw)) : 0);
  PyObject* result = call_object(f, sp - total, positional, kw);
  for (int k = 0; k < i.arg + 2; ++k) Py_XDECREF(pop());
  return push_result(result);
}

namespace {

/// What f(*args) and f(**kwargs) took from an instance: a tuple; sets a TypeError that names the function.
PyObject* as_tuple(PyObject* f, PyObject* args) {
  if (!PyTuple_CheckExact(args) && !Py_TYPE(args)->tp_iter && !PySequence_Check(args)) {
    PyObject* text = _PyObject_FunctionStr(f);
    if (text)
      PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", text,
                   Py_TYPE(args)->tp_name);
    Py_XDECREF(text);
    return nullptr;
  }
  return PySequence_Tuple(args);
}

}  // namespace

Status Run::call_ex(const Instruction& i) {
  const bool has_keywords = i.arg & 1;
  const int operands = 2 + has_keywords;
  PyObject *f = kNullBelow ? peek(operands) : peek(operands + 1), *given = peek(operands - 1);
  PyObject* args = world && !world->may_use(given) ? nullptr : checked(as_tuple(f, given));
  if (!args) return Status::Error;
  PyObject* result = nullptr;
  if (!world) {
    result = PyObject_Call(f, args, has_keywords ? peek(1) : nullptr);
  } else {
    std::vector<PyObject*> values(PySequence_Fast_ITEMS(args),
                                  PySequence_Fast_ITEMS(args) + PyTuple_GET_SIZE(args));
    const size_t positional = values.size();
    PyObject* names = nullptr;
    if (has_keywords && PyDict_Check(peek(1)) && PyDict_GET_SIZE(peek(1)) > 0) {
      names = PyTuple_New(PyDict_GET_SIZE(peek(1)));
      PyObject *key, *value;
      for (Py_ssize_t at = 0, k = 0; PyDict_Next(peek(1), &at, &key, &value); ++k) {
        PyTuple_SET_ITEM(names, k, Py_NewRef(key));
        values.push_back(value);
      }
    }
    values.push_back(nullptr);
    result = world->call(f, values.data(), positional, names);
    Py_XDECREF(names);
  }
  Py_DECREF(args);
  for (int k = 0; k <= operands; ++k) Py_XDECREF(pop());  // with the null
  return push_result(result);
}

Status Run::make_function(const Instruction& i) {
  PyObject* made = pop();
  auto* f = reinterpret_cast<PyFunctionObject*>(PyFunction_New(made, frame->f_globals));
  Py_DECREF(made);
  if (!f) return Status::Error;
  if (i.arg & 8) f->func_closure = pop();
  if (i.arg & 4) f->func_annotations = pop();
  if (i.arg & 2) f->func_kwdefaults = pop();
  if (i.arg & 1) f->func_defaults = pop();
  if (world) world->note_made(reinterpret_cast<PyObject*>(f));
  push(reinterpret_cast<PyObject*>(f));
  return Status::Next;
}

// value, function -> function
Status Run::set_function_attribute(const Instruction& i) {
  PyObject* o = pop();
  auto* f = reinterpret_cast<PyFunctionObject*>(o);
  PyObject*& field = i.arg == 8   ? f->func_closure
                     : i.arg == 4 ? f->func_annotations
                     : i.arg == 2 ? f->func_kwdefaults
                                  : f->func_defaults;
  Py_XSETREF(field, pop());
  push(o);
  return Status::Next;
}

namespace {

/// The exception that is being handled, borrowed.
PyObject* handled(PyThreadState* thread) {
  for (_PyErr_StackItem* item = thread->exc_info; item; item = item->previous_item)
    if (item->exc_value && item->exc_value != Py_None) return item->exc_value;
  return nullptr;
}

/// raise a from b: an exception of a class or an instance; new reference.
PyObject* instance_of(PyObject* o) {
  if (PyExceptionInstance_Check(o)) return Py_NewRef(o);
  if (!PyExceptionClass_Check(o)) return nullptr;
  PyObject* made = PyObject_CallNoArgs(o);
  if (made && !PyExceptionInstance_Check(made)) {
    PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", o,
                 reinterpret_cast<PyObject*>(Py_TYPE(made)));
    Py_CLEAR(made);
  }
  return made;
}

}  // namespace

Status Run::raise(const Instruction& i) {
  if (i.arg == 0) {
    PyObject* now = handled(thread);
    if (!now) {
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
      return Status::Error;
    }
    PyErr_Restore(Py_NewRef(Py_TYPE(now)), Py_NewRef(now), PyException_GetTraceback(now));
    return Status::Error;
  }
  PyObject* cause = i.arg == 2 ? pop() : nullptr;
  PyObject* o = pop();
  PyObject* exception = instance_of(o);
  Py_DECREF(o);
  if (!exception && !PyErr_Occurred())
    PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
  if (exception && cause) {
    PyObject* from = cause == Py_None ? nullptr : instance_of(cause);
    if (!from && cause != Py_None) {
      if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "exception causes must derive from BaseException");
      Py_CLEAR(exception);
    } else {
      PyException_SetCause(exception, from);
    }
  }
  Py_XDECREF(cause);
  if (exception) {
    if (world && world->place_of(exception) >= 0) {  // it would get a traceback and a context
      world->stop("raising an exception from outside is not captured");
      Py_DECREF(exception);
      return Status::Error;
    }
    if (world) world->note_raised(exception);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    Py_DECREF(exception);
  }
  checked(nullptr);
  return Status::Error;
}

Status Run::exceptions(const Instruction& i) {
  _PyErr_StackItem* info_now = thread->exc_info;
  switch (i.op) {
    case Op::PushExcInfo: {
      PyObject* exception = pop();
      push(info_now->exc_value ? info_now->exc_value : Py_NewRef(Py_None));
      Py_INCREF(exception);
      info_now->exc_value = exception;
      push(exception);
      return Status::Next;
    }
    case Op::PopExcept: {
      PyObject* old = info_now->exc_value;
      info_now->exc_value = pop();
      Py_XDECREF(old);
      return Status::Next;
    }
    case Op::CheckExcMatch: {
      PyObject* right = peek(1);
      const auto is_class = [](PyObject* o) { return PyExceptionClass_Check(o); };
      bool fine = is_class(right);
      if (PyTuple_Check(right)) {
        fine = true;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(right); ++k)
          fine = fine && is_class(PyTuple_GET_ITEM(right, k));
      }
      if (!fine) {
        PyErr_SetString(PyExc_TypeError,
                        "catching classes that do not inherit from BaseException is not allowed");
        return Status::Error;
      }
      const int r = PyErr_GivenExceptionMatches(peek(2), right);
      return replace(1, PyBool_FromLong(r));
    }
    case Op::Reraise: {
      // For the line that tracebacks show; the handler is that of this instruction.
      if (i.arg) set_running(frame, static_cast<int>(PyLong_AsLong(peek(i.arg + 1))));
      PyObject* value = pop();
      PyErr_Restore(Py_NewRef(Py_TYPE(value)), value, PyException_GetTraceback(value));
      return Status::Error;
    }
    case Op::RaiseVarargs:
      return raise(i);
    case Op::StopIterationError:
      return stop_iteration_error();
    case Op::LoadAssertionError:
      return push_new(PyExc_AssertionError);
    case Op::BeforeWith:
      return enter_with();
    case Op::WithExceptStart: {
      PyObject *value = peek(1), *exit = peek(4);
      PyObject* traceback = PyException_GetTraceback(value);
      PyObject* args[] = {nullptr, reinterpret_cast<PyObject*>(Py_TYPE(value)), value,
                          traceback ? traceback : Py_None, nullptr};
      PyObject* r = call_object(exit, args + 1, 3, nullptr);
      Py_XDECREF(traceback);
      return push_result(r);
    }
    default:
      return Status::Other;
  }
}

// What leaves a generator as StopIteration is an error.
Status Run::stop_iteration_error() {
  PyObject* exception = peek(1);
  if (!PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) return Status::Next;
  PyObject* error = PyObject_CallFunction(PyExc_RuntimeError, "s", "generator raised StopIteration");
  if (!error) return Status::Error;
  PyException_SetCause(error, Py_NewRef(exception));
  PyException_SetContext(error, Py_NewRef(exception));
  return replace(1, error);
}

Status Run::enter_with() {
  PyObject* manager = peek(1);
  static PyObject *enter_name = PyUnicode_InternFromString("__enter__"),
                  *exit_name = PyUnicode_InternFromString("__exit__");
  const auto special = [&](PyObject* which) -> PyObject* {
    if (!_PyType_Lookup(Py_TYPE(manager), which)) {
      PyErr_Format(PyExc_TypeError,
                   which == enter_name
                       ? "'%.200s' object does not support the context manager protocol"
                       : "'%.200s' object does not support the context manager protocol (missed __exit__ "
                         "method)",
                   Py_TYPE(manager)->tp_name);
      return nullptr;
    }
    return get_attribute(manager, which);
  };
  PyObject* enter = special(enter_name);
  if (!enter) return Status::Error;
  PyObject* exit = special(exit_name);
  if (!exit) {
    Py_DECREF(enter);
    return Status::Error;
  }
  peek(1) = exit;
  Py_DECREF(manager);
  PyObject* nothing[] = {nullptr, nullptr};
  PyObject* r = call_object(enter, nothing + 1, 0, nullptr);
  Py_DECREF(enter);
  return push_result(r);
}

Status Run::patterns(const Instruction& i) {
  switch (i.op) {
    case Op::GetLen: {
      if (world && !world->may_use(peek(1))) return Status::Error;
      const Py_ssize_t n = checked(static_cast<int>(PyObject_Length(peek(1))));
      return n < 0 ? Status::Error : push_result(PyLong_FromSsize_t(n));
    }
    case Op::MatchMapping:
      return push_new(Py_TYPE(peek(1))->tp_flags & Py_TPFLAGS_MAPPING ? Py_True : Py_False);
    case Op::MatchSequence:
      return push_new(Py_TYPE(peek(1))->tp_flags & Py_TPFLAGS_SEQUENCE ? Py_True : Py_False);
    case Op::MatchKeys:
      return match_keys();
    case Op::MatchClass:
      return match_class(i);
    default:
      return Status::Other;
  }
}

// subject, keys -> subject, keys, values or None
Status Run::match_keys() {
  PyObject *subject = peek(2), *keys = peek(1);
  if (world && !world->may_use(subject)) return Status::Error;
  PyObject* values = PyTuple_New(PyTuple_GET_SIZE(keys));
  for (Py_ssize_t k = 0; values && k < PyTuple_GET_SIZE(keys); ++k) {
    PyObject* key = PyTuple_GET_ITEM(keys, k);
    PyObject* item = checked(PyMapping_HasKey(subject, key) ? PyObject_GetItem(subject, key) : nullptr);
    if (!item && PyErr_Occurred()) {
      Py_DECREF(values);
      return Status::Error;
    }
    if (item)
      PyTuple_SET_ITEM(values, k, item);
    else
      Py_SETREF(values, nullptr);
  }
  return values ? push_result(values) : push_new(Py_None);
}

// subject, class, keyword names -> a tuple of attributes or None
Status Run::match_class(const Instruction& i) {
  PyObject *names = peek(1), *type = peek(2), *subject = peek(3);
  if (!PyType_Check(type)) {
    PyErr_Format(PyExc_TypeError, "called match pattern must be a class");
    return Status::Error;
  }
  const int is = PyObject_IsInstance(subject, type);
  if (is < 0) return Status::Error;
  if (!is) {
    replace(3, Py_NewRef(Py_None));
    return Status::Next;
  }
  std::vector<PyObject*> found;
  const auto drop = [&] {
    for (PyObject* o : found) Py_DECREF(o);
  };
  const auto take = [&](PyObject* attribute) {  // 1, 0: no such attribute, -1: error
    PyObject* o = get_attribute(subject, attribute);
    if (!o && PyErr_ExceptionMatches(PyExc_AttributeError) && !(world && world->stopped())) {
      PyErr_Clear();
      return 0;
    }
    if (o) found.push_back(o);
    return o ? 1 : -1;
  };
  int state = 1;
  if (i.arg > 0) {
    static PyObject* match_args = PyUnicode_InternFromString("__match_args__");
    PyObject* positional = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), match_args)
                               ? get_attribute(type, match_args)
                               : nullptr;
    if (!positional && PyErr_Occurred()) return Status::Error;
    if (!positional) {
      const bool self = reinterpret_cast<PyTypeObject*>(type)->tp_flags & _Py_TPFLAGS_MATCH_SELF;
      if (i.arg > (self ? 1 : 0)) {
        PyErr_Format(PyExc_TypeError, "%s() accepts %d positional sub-pattern%s (%d given)",
                     reinterpret_cast<PyTypeObject*>(type)->tp_name, self ? 1 : 0, self ? "" : "s", i.arg);
        return Status::Error;
      }
      found.push_back(Py_NewRef(subject));
    } else if (!PyTuple_CheckExact(positional) || PyTuple_GET_SIZE(positional) < i.arg) {
      PyErr_Format(PyExc_TypeError, "%s() accepts %zd positional sub-patterns (%d given)",
                   reinterpret_cast<PyTypeObject*>(type)->tp_name,
                   PyTuple_CheckExact(positional) ? PyTuple_GET_SIZE(positional) : Py_ssize_t{0}, i.arg);
      Py_DECREF(positional);
      return Status::Error;
    } else {
      for (int k = 0; k < i.arg && state == 1; ++k) state = take(PyTuple_GET_ITEM(positional, k));
      Py_DECREF(positional);
    }
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names) && state == 1; ++k)
    state = take(PyTuple_GET_ITEM(names, k));
  if (state != 1) {
    drop();
    if (state < 0) return Status::Error;
    replace(3, Py_NewRef(Py_None));
    return Status::Next;
  }
  PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(found.size()));
  for (size_t k = 0; k < found.size(); ++k) PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(k), found[k]);
  return replace(3, out);
}

}  // namespace fl::python::capture
#endif
