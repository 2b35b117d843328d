// Arguments of a library call by the names of the operator's schema.
#pragma once
#include <string_view>

#include "flambeau/runtime/library_calls.h"

namespace fl::runtime {

/// A call that is being prepared.
struct CallArguments {
  const OpInfo& op;
  const std::vector<Value>& args;
  const std::vector<OperandLayout>& operands;
  const std::vector<OperandLayout>& results;

  /// The argument, its default where the call gives fewer; null where the schema has no such name.
  const Value* find(std::string_view name) const;
  /// Position in `operands` of a tensor argument; -1 where the schema has no such name or it is None.
  int operand(std::string_view name) const;
  /// The same; raises InternalError instead of -1.
  int required_operand(std::string_view name) const;
  const OperandLayout& result(size_t index) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  /// A list with one entry for each of `count` dimensions; a list of one stands for all.
  std::vector<int64_t> integers(std::string_view name, int count, int64_t otherwise) const;
};

/// The routines, one a file: library_matmul.cpp, library_convolution.cpp, library_sort.cpp, library_join.cpp.
PreparedCall prepare_matmul(const CallArguments& call);
PreparedCall prepare_convolution(const CallArguments& call);
PreparedCall prepare_sort(const CallArguments& call);
PreparedCall prepare_join(const CallArguments& call);

}  // namespace fl::runtime
