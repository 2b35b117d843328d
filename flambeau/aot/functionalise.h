// Removes changes in place and shared memory from a graph. Tests: tests/aot/functionalise_test.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "flambeau/graph/graph.h"

namespace fl::aot {

/// One view operator with its arguments (the first is left open); output: which of several.
struct ViewStep {
  const OpInfo* op = nullptr;
  std::vector<Value> args;
  int output = 0;
};

/// What an output of the original graph is in terms of the functional one.
struct OutputRecipe {
  enum class Kind : uint8_t {
    Value,   ///< the output of the same number
    Input,   ///< a view (no steps: the tensor itself) of an input, after the changes were copied to it
    Output,  ///< a view (no steps: the tensor itself) of another output
  } kind = Kind::Value;
  int32_t input = -1;  ///< node id of the input
  int output = -1;     ///< number of the output
  std::vector<ViewStep> steps;
};

/// An input whose elements changed.
struct Mutation {
  int32_t input;  ///< node id
  int output;     ///< number of the output with its final value
};

struct FunctionalInfo {
  std::vector<OutputRecipe> outputs;  ///< one for each output of the original graph
  std::vector<Mutation> mutations;    ///< in order of the inputs
};

/// Afterwards no call has a side effect. A changed view is written into its base by the view's write_back,
/// and other views of the base are made again where they are read. New outputs follow the original ones: the
/// final values of changed inputs, then bases that several outputs are views of; an original output that is
/// replayed from another tensor becomes None. Only the first `replayed` outputs are; the others are plain
/// values. Inputs may not share memory with each other. Raises UnsupportedError on a change through a view
/// that has no write_back, NotImplementedError on a mutating operator without functional form.
FunctionalInfo functionalise(graph::Graph& g, size_t replayed = SIZE_MAX);

}  // namespace fl::aot
