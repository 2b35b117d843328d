// Instructions, table of exceptions and live locals of a code object.
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <cstring>
#include <unordered_map>

namespace fl::python::capture {
namespace {

/// Units of cache after an instruction.
int cache_units(uint8_t op) {
  switch (op) {
    case LOAD_METHOD:
      return 10;
    case LOAD_GLOBAL:
      return 5;
    case LOAD_ATTR:
    case STORE_ATTR:
    case CALL:
    case BINARY_SUBSCR:
      return 4;
    case COMPARE_OP:
      return 2;
    case BINARY_OP:
    case STORE_SUBSCR:
    case UNPACK_SEQUENCE:
    case PRECALL:
      return 1;
    default:
      return 0;
  }
}

void read_instructions(PyCodeObject* code, CodeInfo& info) {
  PyObject* bytes = PyCode_GetCode(code);  // without what the interpreter has put in while it ran
  const auto* p = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes));
  const int count = static_cast<int>(PyBytes_GET_SIZE(bytes) / 2);
  info.at.resize(static_cast<size_t>(count) + 1);
  for (int unit = 0; unit < count;) {
    const int start = unit;
    int arg = p[2 * unit + 1];
    for (; p[2 * unit] == EXTENDED_ARG; ++unit) arg = arg << 8 | p[2 * unit + 3];
    const uint8_t op = p[2 * unit];
    const int next = unit + 1 + cache_units(op);
    info.at[static_cast<size_t>(start)] = info.at[static_cast<size_t>(unit)] = {op, arg, next};
    unit = next;
  }
  Py_DECREF(bytes);
}

void read_handlers(PyCodeObject* code, CodeInfo& info) {
  const auto* p = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const uint8_t* end = p + PyBytes_GET_SIZE(code->co_exceptiontable);
  auto number = [&p] {
    int value = *p & 63;
    while (*p++ & 64) value = value << 6 | (*p & 63);
    return value;
  };
  while (p < end) {
    Handler h{};
    h.start = number();
    h.end = h.start + number();
    h.target = number();
    const int depth = number();
    h.depth = depth >> 1;
    h.keeps_place = depth & 1;
    info.handlers.push_back(h);
  }
}

/// Where control may go after the instruction that starts at a unit; -1: nowhere.
struct Ways {
  int next, jump;
};
Ways ways(const Instruction& i) {
  switch (i.op) {
    case RETURN_VALUE:
    case RERAISE:
    case RAISE_VARARGS:
      return {-1, -1};
    case JUMP_FORWARD:
      return {-1, i.next + i.arg};
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
      return {-1, i.next - i.arg};
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case FOR_ITER:
    case SEND:
      return {i.next, i.next + i.arg};
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
      return {i.next, i.next - i.arg};
    default:
      return {i.next, -1};
  }
}

bool shows_locals(PyCodeObject* code) {
  static constexpr const char* kReaders[] = {"locals", "eval",      "exec",        "vars",
                                             "dir",    "_getframe", "currentframe"};
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_names); ++k)
    for (const char* name : kReaders)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, k), name) == 0) return true;
  return false;
}

void find_live(PyCodeObject* code, CodeInfo& info) {
  const auto locals = static_cast<size_t>(code->co_nlocalsplus);
  const size_t units = info.at.size();
  info.live.assign(units, std::vector<bool>(locals, false));
  if (shows_locals(code)) {
    info.live.assign(units, std::vector<bool>(locals, true));
    return;
  }
  const auto join = [&](std::vector<bool>& into, int unit) {
    if (unit < 0 || unit >= static_cast<int>(units)) return;
    for (size_t k = 0; k < locals; ++k)
      if (info.live[static_cast<size_t>(unit)][k]) into[k] = true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t unit = units; unit-- > 0;) {
      const Instruction& i = info.at[unit];
      if (!i.next) continue;
      const Ways w = ways(i);
      std::vector<bool> live(locals, false);
      join(live, w.next);
      join(live, w.jump);
      const auto arg = static_cast<size_t>(i.arg);
      switch (i.op) {
        case STORE_FAST:
          live[arg] = false;
          break;
        case LOAD_FAST:
        case DELETE_FAST:
        case MAKE_CELL:
        case LOAD_CLOSURE:
        case LOAD_DEREF:
        case STORE_DEREF:
        case DELETE_DEREF:
        case LOAD_CLASSDEREF:
          live[arg] = true;
          break;
        default:
          break;
      }
      for (const Handler& h : info.handlers)
        if (static_cast<int>(unit) >= h.start && static_cast<int>(unit) < h.end) join(live, h.target);
      if (live != info.live[unit]) {
        info.live[unit] = std::move(live);
        changed = true;
      }
    }
  }
  // Cells belong to functions as well, which may read them at any time: they are never dropped.
  for (auto& live : info.live)
    for (size_t k = 0; k < locals; ++k)
      if (PyBytes_AS_STRING(code->co_localspluskinds)[k] & (CO_FAST_CELL | CO_FAST_FREE)) live[k] = true;
}

}  // namespace

const CodeInfo& code_info(PyCodeObject* code) {
  static auto* known =
      new std::unordered_map<PyCodeObject*, std::unique_ptr<CodeInfo>>;  // under Python's lock
  std::unique_ptr<CodeInfo>& info = (*known)[code];
  if (!info) {
    Py_INCREF(code);
    info = std::make_unique<CodeInfo>();
    read_instructions(code, *info);
    read_handlers(code, *info);
    find_live(code, *info);
  }
  return *info;
}

void rewind_generator(PyObject* o) {
  auto* generator = reinterpret_cast<PyGenObject*>(o);
  if (generator->gi_frame_state != FRAME_SUSPENDED) return;
  auto* f = reinterpret_cast<Frame*>(generator->gi_iframe);
  const CodeInfo& info = code_info(code_of(f));
  int unit = 0;
  while (info.at[static_cast<size_t>(unit)].op != RETURN_GENERATOR) ++unit;
  set_running(f, unit);
  generator->gi_frame_state = FRAME_CREATED;
}

}  // namespace fl::python::capture
#endif
