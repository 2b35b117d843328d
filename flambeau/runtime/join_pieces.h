// A join's call as copies.
#pragma once
#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {

/// One tensor and its part of the result.
struct JoinPiece {
  int operand;
  int64_t offset;  ///< of the part, in bytes
  OperandLayout to, from;
};

/// The pieces in order. Raises RuntimeError where they do not fit.
std::vector<JoinPiece> join_pieces(const CallArguments& call);

}  // namespace fl::runtime
