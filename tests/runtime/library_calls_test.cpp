#include "flambeau/runtime/call_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "flambeau/op/op.h"

namespace fl::runtime {
namespace {

std::vector<std::string> names_read(LibraryCall call) {
  switch (call) {
    case LibraryCall::Matmul:
      return {"self", "mat2"};
    case LibraryCall::Convolution:
      return {"input",    "weight",     "bias",           "stride", "padding",
              "dilation", "transposed", "output_padding", "groups"};
    case LibraryCall::ConvolutionInput:
      return {"grad_output", "weight", "stride", "padding", "dilation", "transposed", "groups"};
    case LibraryCall::ConvolutionWeight:
      return {"grad_output", "input", "stride", "padding", "dilation", "transposed", "groups"};
    case LibraryCall::Sort:
      return {"self", "dim", "descending"};
    case LibraryCall::Nonzero:
      return {"self"};
    case LibraryCall::Join:
      return {"tensors", "dim"};
    case LibraryCall::HostRoutine:  // each routine has its own
    case LibraryCall::None:
      break;
  }
  return {};
}

/// The routines find arguments by name: a schema that calls one otherwise would lose it.
TEST(RuntimeLibraryCalls, OperatorsHaveTheArgumentsThatRoutinesRead) {
  for (const OpInfo& op : op_table().all()) {
    if (op.functional) continue;
    for (const std::string& name : names_read(op.library))
      EXPECT_NE(std::ranges::find(op.schema.args, name, &Argument::name), op.schema.args.end())
          << op.schema.text << " has no " << name;
  }
}

TEST(RuntimeLibraryCalls, OperatorsWithoutARoutineAreRefused) {
  OpInfo op;
  op.schema = parse_schema("nonzero(Tensor self) -> Tensor");
  op.library = LibraryCall::Nonzero;
  const std::vector<OperandLayout> in = {{DType::Float32, {3}, {1}}};
  EXPECT_THROW(prepare_library_call({op, {GraphRef{0, 0}}, in, {}}), NotImplementedError);
  op.library = LibraryCall::None;
  EXPECT_THROW(prepare_library_call({op, {GraphRef{0, 0}}, in, {}}), InternalError);
}

}  // namespace
}  // namespace fl::runtime
