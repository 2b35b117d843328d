#include "flambeau/runtime/library_calls.h"

#include <algorithm>

#include "flambeau/library/library.h"
#include "flambeau/runtime/by_definition.h"
#include "flambeau/runtime/call_arguments.h"
#include "flambeau/runtime/routine.h"

namespace fl::runtime {

const Value* CallArguments::find(std::string_view name) const {
  const std::vector<Argument>& declared = op.schema.args;
  const auto found = std::ranges::find(declared, name, &Argument::name);
  if (found == declared.end()) return nullptr;
  const size_t position = found - declared.begin();
  if (position < args.size()) return &args[position];
  return found->default_value ? &*found->default_value : nullptr;
}

int CallArguments::operand(std::string_view name) const {
  const Value* value = find(name);
  if (!value || value->is_none()) return -1;
  const int index = value->graph_ref().node;
  FL_ASSERT(index < static_cast<int>(operands.size()), "{}: operand {} of {}", op.name(), index,
            operands.size());
  return index;
}

int CallArguments::required_operand(std::string_view name) const {
  const int index = operand(name);
  FL_ASSERT(index >= 0, "{} has no tensor argument '{}'", op.schema.text, name);
  return index;
}

const OperandLayout& CallArguments::result(size_t index) const {
  FL_ASSERT(index < results.size(), "{}: result {} of {}", op.name(), index, results.size());
  return results[index];
}

int64_t CallArguments::integer(std::string_view name, int64_t otherwise) const {
  const Value* value = find(name);
  return value && !value->is_none() ? value->sym_int().expect_int() : otherwise;
}

bool CallArguments::flag(std::string_view name, bool otherwise) const {
  const Value* value = find(name);
  return value && !value->is_none() ? value->to_bool() : otherwise;
}

std::vector<int64_t> CallArguments::integers(std::string_view name, int count, int64_t otherwise) const {
  std::vector<int64_t> result(count, otherwise);
  const Value* value = find(name);
  if (!value || value->is_none()) return result;
  if (value->tag() == Value::Tag::Int) {
    std::ranges::fill(result, value->sym_int().expect_int());
    return result;
  }
  const IntList list = value->ints();
  const int given = static_cast<int>(list.size());
  FL_CHECK(given == count || given == 1, RuntimeError,
           "{} expects '{}' to have {} entries (or 1 for all), got {}", op.name(), name, count, given);
  for (int i = 0; i < count; ++i) result[i] = list[given == 1 ? 0 : i].expect_int();
  return result;
}

PreparedCall prepare_library_call(const CallArguments& call) {
  const OpInfo& op = call.op;
  switch (op.library) {
    case LibraryCall::Matmul:
      return prepare_matmul(call);
    case LibraryCall::Convolution:
    case LibraryCall::ConvolutionInput:
    case LibraryCall::ConvolutionWeight:
      return prepare_convolution(call);
    case LibraryCall::Sort:
      return prepare_sort(call);
    case LibraryCall::Nonzero:
      FL_RAISE(NotImplementedError, "{}: the number of results depends on elements; it runs eagerly only",
               op.name());
    case LibraryCall::Join:
      return prepare_join(call);
    case LibraryCall::HostRoutine:
      return op.decompose ? prepare_by_definition(call, Device{}) : find_routine(op.name())(call);
    case LibraryCall::None:
      break;
  }
  FL_RAISE(InternalError, "{} is not a library call", op.name());
}

}  // namespace fl::runtime
