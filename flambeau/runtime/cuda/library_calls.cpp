#include "flambeau/runtime/cuda/library_calls.h"

#include "flambeau/runtime/by_definition.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/graph.h"
#include "flambeau/runtime/cuda/library_routines.h"

namespace fl::runtime::cuda {
namespace {

/// Bytes from the first element of an operand to the end of the last.
size_t extent(const OperandLayout& l) {
  int64_t last = 0;
  for (size_t d = 0; d < l.sizes.size(); ++d) {
    if (l.sizes[d] == 0) return 0;
    last += (l.sizes[d] - 1) * l.strides[d];
  }
  return static_cast<size_t>((last + 1) * size_of(l.dtype));
}

bool has_gaps(const OperandLayout& l) {
  int64_t elements = 1;
  for (int64_t s : l.sizes) elements *= s;
  return static_cast<size_t>(elements * size_of(l.dtype)) < extent(l);
}

struct HostCall {
  struct Operand {
    size_t bytes, offset;
    bool has_gaps;
  };
  std::vector<Operand> operands, results;
  size_t total = 0;
  PreparedCall routine;
  std::string name;
  int device;

  std::vector<Operand> place(const std::vector<OperandLayout>& layouts) {
    std::vector<Operand> out;
    for (const OperandLayout& l : layouts) {
      out.push_back({extent(l), total, has_gaps(l)});
      total += (out.back().bytes + 63) / 64 * 64;
    }
    return out;
  }

  void run(void* const* from, void* const* to) const {
    if (recording()) refuse_in_recording(fmt::format("{} runs on the CPU", name));
    const Stream s = current_stream(device);
    const auto block = std::make_unique<char[]>(total + 64);
    char* memory = block.get() + (64 - reinterpret_cast<uintptr_t>(block.get()) % 64) % 64;
    std::vector<void*> inputs, outputs;
    for (size_t k = 0; k < operands.size(); ++k) {
      inputs.push_back(memory + operands[k].offset);
      copy_bytes(s, inputs.back(), from[k], operands[k].bytes);
    }
    for (size_t k = 0; k < results.size(); ++k) {
      outputs.push_back(memory + results[k].offset);
      // What lies between the result's elements stays as it is.
      if (results[k].has_gaps) copy_bytes(s, outputs.back(), to[k], results[k].bytes);
    }
    synchronize(s);
    routine(inputs.data(), outputs.data());
    for (size_t k = 0; k < results.size(); ++k) copy_bytes(s, to[k], outputs[k], results[k].bytes);
    synchronize(s);
  }
};

bool is_attention(const OpInfo& op) { return op.schema.name.starts_with("_attention"); }

}  // namespace

PreparedCall prepare_on_host(const CallArguments& call, int device) {
  auto host = std::make_shared<HostCall>();
  host->device = device;
  host->name = call.op.name();
  host->operands = host->place(call.operands);
  host->results = host->place(call.results);
  host->routine = prepare_library_call(call);
  return [host](void* const* operands, void* const* results) { host->run(operands, results); };
}

PreparedCall prepare_call(const CallArguments& call, int device) {
  PreparedCall routine;
  if (call.op.library == LibraryCall::Matmul) routine = prepare_cuda_matmul(call, device);
  if (is_convolution(call.op.library)) routine = prepare_cuda_convolution(call, device);
  if (call.op.library == LibraryCall::Join) routine = prepare_cuda_join(call, device);
  if (call.op.library == LibraryCall::HostRoutine && is_attention(call.op))
    routine = prepare_cuda_attention(call, device);
  if (routine) return routine;
  return call.op.decompose ? prepare_by_definition(call, {DeviceType::CUDA, static_cast<int8_t>(device)})
                           : prepare_on_host(call, device);
}

bool has_routine(const OpInfo& op, const Value* args) {
  return is_attention(op) && has_cuda_attention(op, args);
}

}  // namespace fl::runtime::cuda
