// A lowered graph: buffers and the flat list of kernels and library calls that fill them.
//
//   program(b0: f32[s0, 1024] in, b1: f32[s0, 1024] out)
//     kernel fused_exp_sum(b0, b2)
//     library mm(b2, b3) -> b1
//
// Sizes are expressions over symbols whose values come from the inputs of a call. runtime/ compiles and runs
// programs.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/loop/ir.h"
#include "flambeau/op/op_def.h"

namespace fl::loop {

/// Memory for one value. Strides and offset in elements, from the start of the buffer's memory (Input: from
/// the storage's start, so that the tensor's own offset applies).
struct ProgramBuffer {
  enum class Kind : uint8_t {
    Input,      ///< tensor number `index` of the call
    Output,     ///< freshly allocated for each call; at least one output reads it
    Temporary,  ///< in the arena
    View,  ///< other strides of buffer number `index`, for library calls; offset from that buffer's start
  };
  Kind kind = Kind::Temporary;
  int index = -1;
  DType dtype = DType::Float32;
  std::vector<Expr> sizes, strides;
  Expr offset = 0;
  /// Elements to allocate (Output and Temporary): 1 + the largest index, 0 if any size is 0.
  Expr elements = 0;
  /// Input of one element that stays in host memory while the program runs on another device.
  bool by_value = false;
  std::string name;  ///< of the graph value, for dumps
};

/// One kernel on buffers: kernel.buffers[k] is buffers[k] of the program, at its start plus its offset.
struct KernelStep {
  std::shared_ptr<const Kernel> kernel;
  std::vector<int> buffers;
};

/// A call of a routine of runtime/ or of a library: the operator's arguments with GraphRef{buffer, 0} in the
/// place of tensors; results are written into `outs`, whose layout is the program's choice.
struct LibraryStep {
  const OpInfo* op = nullptr;
  std::vector<Value> args;
  std::vector<int> outs;
};

using Step = std::variant<KernelStep, LibraryStep>;

/// An output of the program: a strided view of a buffer, a number, or nothing.
struct ProgramOutput {
  enum class Kind : uint8_t { Tensor, Number, None };
  Kind kind = Kind::Tensor;
  int buffer = -1;
  TensorSpec spec;  ///< sizes, strides and offset (from the buffer's start) of the result
  Expr number = 0;
};

/// Where a symbol's value comes from in a call.
struct SymbolSource {
  Expr symbol;
  enum class Kind : uint8_t { Size, Stride, Offset, Number } kind = Kind::Size;
  int input = -1;  ///< tensor number (Size, Stride, Offset) or number number (Number) of the call
  int dim = -1;
};

struct Program {
  std::string name;
  Device device;  ///< where all buffers are
  std::vector<ProgramBuffer> buffers;
  std::vector<Step> steps;
  std::vector<ProgramOutput> outputs;
  std::vector<SymbolSource> symbols;
  int tensor_inputs = 0, number_inputs = 0;

  std::string str() const;
};

/// Whether the routine of a convolution computes the same bits for images of any layout, and is quickest with
/// channels last: what the images may be laid out for. None: all values have the graph's strides.
using LayoutRule = bool (*)(const graph::Graph& g, const graph::Node& call);

struct LowerOptions {
  bool fuse = true;  ///< false: one kernel for each operator
  std::string name = "program";
  LayoutRule takes_channels_last = nullptr;
};

/// Where a graph runs: on the GPU that any of its values is on, else on the CPU. Nothing where values are on
/// several GPUs, or have no memory (meta).
std::optional<Device> device_of(const graph::Graph& g);

/// Lowers a functional graph of primitives (see graph/pass decompose, aot functionalise). Tensor inputs in
/// order are the call's tensors; Size and Random inputs its numbers. Raises NotImplementedError naming the
/// operator that has no lowering. Every value is computed on
/// device_of(g), whatever device the graph gives it; inputs are there too, but those of one element
/// (by_value).
Program lower(const graph::Graph& g, const LowerOptions& options = {});

}  // namespace fl::loop
