// The instructions of CPython in one form for all of its versions, and what else is read from a code object.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <string>
#include <vector>

namespace fl::python::capture {

/// Named as CPython names them. Where versions write the same thing in several ways, code_info.cpp chooses
/// one: jumps know their target, a bit of an argument that changes what is done is an instruction of its own.
enum class Op : uint8_t {
  Unknown,  ///< one that only CPython runs
  // locals, constants, the stack
  Nop,
  LoadFast,
  LoadFastAndClear,  ///< the local, or a null if it is not bound, which it isn't afterwards
  LoadFastLoadFast,  ///< slots arg >> 4 and arg & 15, here and below
  StoreFast,
  StoreFastLoadFast,
  StoreFastStoreFast,
  DeleteFast,
  LoadConst,
  PopTop,
  PushNull,
  Copy,
  Swap,
  MakeCell,
  CopyFreeVars,
  LoadClosure,
  LoadDeref,
  LoadClassDeref,       ///< the namespace of the class first
  LoadFromDictOrDeref,  ///< a mapping on the stack first
  StoreDeref,
  DeleteDeref,
  // jumps, iteration, generators
  Jump,
  PopJumpIfFalse,
  PopJumpIfTrue,
  PopJumpIfNone,
  PopJumpIfNotNone,
  JumpIfFalseOrPop,
  JumpIfTrueOrPop,
  GetIter,
  ForIter,  ///< at the end drops the iterator and jumps
  ReturnValue,
  ReturnConst,
  ReturnGenerator,
  YieldValue,
  GetYieldFromIter,
  Send,
  EndSend,
  CleanupThrow,
  // operators
  UnaryPositive,
  UnaryNegative,
  UnaryInvert,
  UnaryNot,
  ToBool,
  BinaryOp,
  CompareOp,  ///< arg & 7; with 8 the result is made a bool
  IsOp,
  ContainsOp,
  BinarySubscr,
  BinarySlice,
  StoreSubscr,
  StoreSlice,
  DeleteSubscr,
  // attributes, names, imports
  LoadAttr,
  LoadMethod,
  LoadSuperAttr,  ///< of super(type, self) on the stack; name arg >> 2, as a method with 1, written so with 2
  StoreAttr,
  DeleteAttr,
  LoadGlobal,  ///< name arg >> 1; with 1 a null beside it, as a call wants it
  StoreGlobal,
  DeleteGlobal,
  LoadName,
  LoadLocals,
  LoadFromDictOrGlobals,
  StoreName,
  ImportName,
  ImportFrom,
  // containers and text
  ListAppend,
  SetAdd,
  MapAdd,
  ListExtend,
  SetUpdate,
  DictUpdate,
  DictMerge,
  ListToTuple,
  UnpackSequence,
  UnpackEx,
  FormatValue,
  ConvertValue,
  FormatSimple,
  FormatWithSpec,
  BuildTuple,
  BuildList,
  BuildSet,
  BuildMap,
  BuildConstKeyMap,
  BuildSlice,
  BuildString,
  // calls and functions
  KwNames,  ///< this and the next prepare a call: there is no stop between them and it
  Precall,
  Call,
  CallKw,  ///< names of keywords on the stack
  CallFunctionEx,
  MakeFunction,
  SetFunctionAttribute,
  LoadBuildClass,
  // exceptions, with, match
  PushExcInfo,
  PopExcept,
  CheckExcMatch,
  Reraise,
  RaiseVarargs,
  LoadAssertionError,
  StopIterationError,
  BeforeWith,
  WithExceptStart,
  GetLen,
  MatchMapping,
  MatchSequence,
  MatchKeys,
  MatchClass,
};

/// One instruction with its argument; prefixes are a part of it.
struct Instruction {
  Op op = Op::Unknown;
  uint8_t code = 0;  ///< CPython's number
  int32_t arg = 0;
  int32_t next = 0;   ///< the code unit after it and its cache; 0: no instruction starts here
  int32_t jump = -1;  ///< where it may jump to
};
/// CPython's name.
std::string name_of(const Instruction& i);
/// Whether only CPython runs it well: RERAISE says that an earlier instruction raised.
inline bool is_left_to_cpython(Op op) {
  return op == Op::Unknown || op == Op::ReturnGenerator || op == Op::Reraise;
}

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
/// Kept as long as the code.
const CodeInfo& code_info(PyCodeObject* code);

}  // namespace fl::python::capture
#endif
