// What executable.cpp and recorded_runs.cpp share.
#pragma once
#include "flambeau/base/small_vector.h"
#include "flambeau/runtime/executable.h"

namespace fl::runtime {

struct Executable::CompiledStep {
  std::shared_ptr<const codegen::Launchable> kernel;
  std::vector<int> buffers;                // of a kernel
  std::vector<int> sizes;                  // table entries of a kernel's sizes
  std::vector<std::pair<int, int>> loose;  // which of them are entries of loose_
  bool is_variable = false;                // there are such, or elements given by value
  std::vector<int> operands, results;      // buffers of a library call
  std::vector<Value> args;                 // with GraphRef{operand}
};

struct Executable::SizePlan {
  std::vector<int64_t> key;  // of layout_symbols_
  std::vector<int64_t> values;
  std::vector<std::vector<int64_t>> kernel_sizes;  // by step
  std::vector<PreparedCall> calls;                 // by step
  std::vector<int64_t> temporary_offset;           // by buffer, bytes; -1 elsewhere
  int64_t arena_bytes = 0;
  std::unique_ptr<RecordedRuns> recorded;
  SizePlan* next = nullptr;
};

/// One call.
struct Executable::Run {
  Run(const SizePlan& plan, std::span<const Tensor> inputs, std::span<const Tensor> targets, size_t buffers,
      size_t numbers)
      : plan(plan),
        inputs(inputs),
        targets(targets),
        loose(numbers),
        address(buffers, nullptr),
        made(buffers) {}

  const SizePlan& plan;
  std::span<const Tensor> inputs, targets;
  SmallVector<int64_t, 32> loose;
  SmallVector<char*, 64> address;     // by buffer
  SmallVector<Ref<Storage>, 8> made;  // by buffer: of outputs
  SmallVector<Tensor, 2> brought;     // inputs from other devices
  Ref<Storage> arena;
};

/// A recorded kernel whose arguments differ from run to run.
struct Executable::VariableLaunch {
  int number;  // of the recording
  size_t step;
};

}  // namespace fl::runtime
