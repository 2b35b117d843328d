// Instructions, table of exceptions and live locals of a code object. Knows how each version of CPython
// writes an instruction; numbers and sizes of caches are those that the running one tells.
#include "instruction.h"

#if FLAMBEAU_CAPTURE
#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "object.h"

namespace fl::python::capture {
namespace {

struct Named {
  const char* name;
  Op op;
};
/// All versions' names. JUMP, POP_JUMP and the like get their targets from target_of().
constexpr Named kNames[] = {
    {"NOP", Op::Nop},
    {"RESUME", Op::Nop},
    {"LOAD_FAST", Op::LoadFast},
    {"LOAD_FAST_CHECK", Op::LoadFast},
    {"LOAD_FAST_AND_CLEAR", Op::LoadFastAndClear},
    {"LOAD_FAST_LOAD_FAST", Op::LoadFastLoadFast},
    {"STORE_FAST", Op::StoreFast},
    {"STORE_FAST_LOAD_FAST", Op::StoreFastLoadFast},
    {"STORE_FAST_STORE_FAST", Op::StoreFastStoreFast},
    {"DELETE_FAST", Op::DeleteFast},
    {"LOAD_CONST", Op::LoadConst},
    {"POP_TOP", Op::PopTop},
    {"PUSH_NULL", Op::PushNull},
    {"COPY", Op::Copy},
    {"SWAP", Op::Swap},
    {"MAKE_CELL", Op::MakeCell},
    {"COPY_FREE_VARS", Op::CopyFreeVars},
    {"LOAD_CLOSURE", Op::LoadClosure},
    {"LOAD_DEREF", Op::LoadDeref},
    {"LOAD_CLASSDEREF", Op::LoadClassDeref},
    {"LOAD_FROM_DICT_OR_DEREF", Op::LoadFromDictOrDeref},
    {"STORE_DEREF", Op::StoreDeref},
    {"DELETE_DEREF", Op::DeleteDeref},
    {"JUMP_FORWARD", Op::Jump},
    {"JUMP_BACKWARD", Op::Jump},
    {"JUMP_BACKWARD_NO_INTERRUPT", Op::Jump},
    {"POP_JUMP_IF_FALSE", Op::PopJumpIfFalse},
    {"POP_JUMP_IF_TRUE", Op::PopJumpIfTrue},
    {"POP_JUMP_IF_NONE", Op::PopJumpIfNone},
    {"POP_JUMP_IF_NOT_NONE", Op::PopJumpIfNotNone},
    {"POP_JUMP_FORWARD_IF_FALSE", Op::PopJumpIfFalse},
    {"POP_JUMP_FORWARD_IF_TRUE", Op::PopJumpIfTrue},
    {"POP_JUMP_FORWARD_IF_NONE", Op::PopJumpIfNone},
    {"POP_JUMP_FORWARD_IF_NOT_NONE", Op::PopJumpIfNotNone},
    {"POP_JUMP_BACKWARD_IF_FALSE", Op::PopJumpIfFalse},
    {"POP_JUMP_BACKWARD_IF_TRUE", Op::PopJumpIfTrue},
    {"POP_JUMP_BACKWARD_IF_NONE", Op::PopJumpIfNone},
    {"POP_JUMP_BACKWARD_IF_NOT_NONE", Op::PopJumpIfNotNone},
    {"JUMP_IF_FALSE_OR_POP", Op::JumpIfFalseOrPop},
    {"JUMP_IF_TRUE_OR_POP", Op::JumpIfTrueOrPop},
    {"GET_ITER", Op::GetIter},
    {"FOR_ITER", Op::ForIter},
    {"RETURN_VALUE", Op::ReturnValue},
    {"RETURN_CONST", Op::ReturnConst},
    {"RETURN_GENERATOR", Op::ReturnGenerator},
    {"YIELD_VALUE", Op::YieldValue},
    {"GET_YIELD_FROM_ITER", Op::GetYieldFromIter},
    {"SEND", Op::Send},
    {"END_SEND", Op::EndSend},
    {"CLEANUP_THROW", Op::CleanupThrow},
    {"UNARY_POSITIVE", Op::UnaryPositive},
    {"UNARY_NEGATIVE", Op::UnaryNegative},
    {"UNARY_INVERT", Op::UnaryInvert},
    {"UNARY_NOT", Op::UnaryNot},
    {"TO_BOOL", Op::ToBool},
    {"BINARY_OP", Op::BinaryOp},
    {"COMPARE_OP", Op::CompareOp},
    {"IS_OP", Op::IsOp},
    {"CONTAINS_OP", Op::ContainsOp},
    {"BINARY_SUBSCR", Op::BinarySubscr},
    {"BINARY_SLICE", Op::BinarySlice},
    {"STORE_SUBSCR", Op::StoreSubscr},
    {"STORE_SLICE", Op::StoreSlice},
    {"DELETE_SUBSCR", Op::DeleteSubscr},
    {"LOAD_ATTR", Op::LoadAttr},
    {"LOAD_METHOD", Op::LoadMethod},
    {"LOAD_SUPER_ATTR", Op::LoadSuperAttr},
    {"STORE_ATTR", Op::StoreAttr},
    {"DELETE_ATTR", Op::DeleteAttr},
    {"LOAD_GLOBAL", Op::LoadGlobal},
    {"STORE_GLOBAL", Op::StoreGlobal},
    {"DELETE_GLOBAL", Op::DeleteGlobal},
    {"LOAD_NAME", Op::LoadName},
    {"LOAD_LOCALS", Op::LoadLocals},
    {"LOAD_FROM_DICT_OR_GLOBALS", Op::LoadFromDictOrGlobals},
    {"STORE_NAME", Op::StoreName},
    {"IMPORT_NAME", Op::ImportName},
    {"IMPORT_FROM", Op::ImportFrom},
    {"LIST_APPEND", Op::ListAppend},
    {"SET_ADD", Op::SetAdd},
    {"MAP_ADD", Op::MapAdd},
    {"LIST_EXTEND", Op::ListExtend},
    {"SET_UPDATE", Op::SetUpdate},
    {"DICT_UPDATE", Op::DictUpdate},
    {"DICT_MERGE", Op::DictMerge},
    {"LIST_TO_TUPLE", Op::ListToTuple},
    {"UNPACK_SEQUENCE", Op::UnpackSequence},
    {"UNPACK_EX", Op::UnpackEx},
    {"FORMAT_VALUE", Op::FormatValue},
    {"CONVERT_VALUE", Op::ConvertValue},
    {"FORMAT_SIMPLE", Op::FormatSimple},
    {"FORMAT_WITH_SPEC", Op::FormatWithSpec},
    {"BUILD_TUPLE", Op::BuildTuple},
    {"BUILD_LIST", Op::BuildList},
    {"BUILD_SET", Op::BuildSet},
    {"BUILD_MAP", Op::BuildMap},
    {"BUILD_CONST_KEY_MAP", Op::BuildConstKeyMap},
    {"BUILD_SLICE", Op::BuildSlice},
    {"BUILD_STRING", Op::BuildString},
    {"KW_NAMES", Op::KwNames},
    {"PRECALL", Op::Precall},
    {"CALL", Op::Call},
    {"CALL_KW", Op::CallKw},
    {"CALL_FUNCTION_EX", Op::CallFunctionEx},
    {"MAKE_FUNCTION", Op::MakeFunction},
    {"SET_FUNCTION_ATTRIBUTE", Op::SetFunctionAttribute},
    {"LOAD_BUILD_CLASS", Op::LoadBuildClass},
    {"PUSH_EXC_INFO", Op::PushExcInfo},
    {"POP_EXCEPT", Op::PopExcept},
    {"CHECK_EXC_MATCH", Op::CheckExcMatch},
    {"RERAISE", Op::Reraise},
    {"RAISE_VARARGS", Op::RaiseVarargs},
    {"LOAD_ASSERTION_ERROR", Op::LoadAssertionError},
    {"BEFORE_WITH", Op::BeforeWith},
    {"WITH_EXCEPT_START", Op::WithExceptStart},
    {"GET_LEN", Op::GetLen},
    {"MATCH_MAPPING", Op::MatchMapping},
    {"MATCH_SEQUENCE", Op::MatchSequence},
    {"MATCH_KEYS", Op::MatchKeys},
    {"MATCH_CLASS", Op::MatchClass},
};

/// What this version of CPython says of its instructions, by their numbers.
struct Table {
  struct Entry {
    Op op = Op::Unknown;
    int cache = 0;  ///< units of cache after it
    bool backward = false;
    std::string name = "?";
  };
  std::array<Entry, 256> at;
  int extended = -1, intrinsic = -1;

  Table() {
    const nb::module_ opcode = nb::module_::import_("opcode");
    const nb::object caches = opcode.attr("_inline_cache_entries");
    const bool by_name = PyDict_Check(caches.ptr());
    std::unordered_map<std::string_view, Op> known;
    for (const Named& n : kNames) known[n.name] = n.op;
    for (auto [key, number] : nb::cast<nb::dict>(opcode.attr("opmap"))) {
      const long code = PyLong_AsLong(number.ptr());
      if (code >= 256) continue;  // only the compiler has it
      Entry& e = at[static_cast<size_t>(code)];
      e.name = text_of(key);
      if (auto it = known.find(e.name); it != known.end()) e.op = it->second;
      e.backward = e.name.find("BACKWARD") != std::string::npos;
      const nb::object units = by_name ? nb::object(caches.attr("get")(key, 0)) : caches[number];
      e.cache = static_cast<int>(PyLong_AsLong(units.ptr()));
      if (e.name == "EXTENDED_ARG") extended = static_cast<int>(code);
      if (e.name == "CALL_INTRINSIC_1") intrinsic = static_cast<int>(code);
    }
  }
};
const Table& table() {
  static const auto* t = new Table;
  return *t;
}

/// CALL_INTRINSIC_1 by its argument.
Op intrinsic(int arg) {
  switch (arg) {
    case 3:
      return Op::StopIterationError;
    case 5:
      return Op::UnaryPositive;
    case 6:
      return Op::ListToTuple;
    default:
      return Op::Unknown;
  }
}

int target_of(const Instruction& i, bool backward) {
  switch (i.op) {
    case Op::Jump:
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfTrue:
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone:
    case Op::JumpIfFalseOrPop:
    case Op::JumpIfTrueOrPop:
    case Op::Send:
      return backward ? i.next - i.arg : i.next + i.arg;
    case Op::ForIter:
      return i.next + i.arg + kAfterLoop;
    default:
      return -1;
  }
}

/// Puts what a version packs into an argument into the form that all have in common.
void unpack_argument(Instruction& i) {
#if PY_VERSION_HEX >= 0x030c0000
  if (i.op == Op::LoadAttr) {
    if (i.arg & 1) i.op = Op::LoadMethod;
    i.arg >>= 1;
  }
#endif
#if PY_VERSION_HEX >= 0x030d0000
  if (i.op == Op::CompareOp) i.arg = i.arg >> 5 | (i.arg & 16 ? 8 : 0);
#elif PY_VERSION_HEX >= 0x030c0000
  if (i.op == Op::CompareOp) i.arg >>= 4;
#endif
  if (i.code == table().intrinsic) i.op = intrinsic(i.arg);
}

void read_instructions(PyCodeObject* code, CodeInfo& info) {
  const Table& t = table();
  PyObject* bytes = PyCode_GetCode(code);  // without what the interpreter has put in while it ran
  const auto* p = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes));
  const int count = static_cast<int>(PyBytes_GET_SIZE(bytes) / 2);
  info.at.resize(static_cast<size_t>(count) + 1);
  for (int unit = 0; unit < count;) {
    const int start = unit;
    int arg = p[2 * unit + 1];
    for (; p[2 * unit] == t.extended; ++unit) arg = arg << 8 | p[2 * unit + 3];
    const Table::Entry& e = t.at[p[2 * unit]];
    Instruction i{e.op, p[2 * unit], arg, unit + 1 + e.cache};
    i.jump = target_of(i, e.backward);
    unpack_argument(i);
    info.at[static_cast<size_t>(start)] = info.at[static_cast<size_t>(unit)] = i;
    unit = i.next;
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

/// Whether control never comes to the instruction after one.
bool ends(Op op) {
  return op == Op::ReturnValue || op == Op::ReturnConst || op == Op::Reraise || op == Op::RaiseVarargs ||
         op == Op::Jump;
}

/// From what is live after an instruction to what is live before it.
void pass(const Instruction& i, std::vector<bool>& live) {
  const auto arg = static_cast<size_t>(i.arg);
  switch (i.op) {
    case Op::StoreFast:
      live[arg] = false;
      break;
    case Op::LoadFast:
    case Op::LoadFastAndClear:
    case Op::DeleteFast:
    case Op::MakeCell:
    case Op::LoadClosure:
    case Op::LoadDeref:
    case Op::StoreDeref:
    case Op::DeleteDeref:
    case Op::LoadClassDeref:
    case Op::LoadFromDictOrDeref:
      live[arg] = true;
      break;
    case Op::LoadFastLoadFast:
      live[arg >> 4] = live[arg & 15] = true;
      break;
    case Op::StoreFastLoadFast:
      live[arg & 15] = true;
      live[arg >> 4] = false;
      break;
    case Op::StoreFastStoreFast:
      live[arg >> 4] = live[arg & 15] = false;
      break;
    default:
      break;
  }
}

bool mentions(PyCodeObject* code, const char* name) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_names); ++k)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, k), name) == 0) return true;
  return false;
}

bool shows_locals(PyCodeObject* code) {
  for (const char* name : {"locals", "eval", "exec", "vars", "dir", "_getframe", "currentframe"})
    if (mentions(code, name)) return true;
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
      std::vector<bool> live(locals, false);
      if (!ends(i.op)) join(live, i.next);
      join(live, i.jump);
      pass(i, live);
      for (const Handler& h : info.handlers)
        if (static_cast<int>(unit) >= h.start && static_cast<int>(unit) < h.end) join(live, h.target);
      if (live != info.live[unit]) {
        info.live[unit] = std::move(live);
        changed = true;
      }
    }
  }
  // super() reads the first argument. Cells belong to functions as well, which may read them at any time:
  // they are never dropped.
  const bool has_super = locals > 0 && mentions(code, "super");
  for (auto& live : info.live) {
    if (has_super) live[0] = true;
    for (size_t k = 0; k < locals; ++k)
      if (PyBytes_AS_STRING(code->co_localspluskinds)[k] & (CO_FAST_CELL | CO_FAST_FREE)) live[k] = true;
  }
}

}  // namespace

std::string name_of(const Instruction& i) { return table().at[i.code].name; }

const CodeInfo& code_info(PyCodeObject* code) {
  static const Py_ssize_t index = new_code_field([](void* info) { delete static_cast<CodeInfo*>(info); });
  void* known = code_field(code, index);
  if (!known) {
    auto info = std::make_unique<CodeInfo>();
    read_instructions(code, *info);
    read_handlers(code, *info);
    find_live(code, *info);
    known = info.release();
    set_code_field(code, index, known);
  }
  return *static_cast<const CodeInfo*>(known);
}

void rewind_generator(PyObject* o) {
  auto* generator = reinterpret_cast<PyGenObject*>(o);
  if (!waits(generator)) return;
  auto* f = reinterpret_cast<Frame*>(generator->gi_iframe);
  const CodeInfo& info = code_info(code_of(f));
  int unit = 0;
  while (info.at[static_cast<size_t>(unit)].op != Op::ReturnGenerator) ++unit;
  set_next(f, unit + 1);
  generator->gi_frame_state = FRAME_CREATED;
}

}  // namespace fl::python::capture
#endif
