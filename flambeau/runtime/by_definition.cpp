#include "flambeau/runtime/by_definition.h"

#include "flambeau/op/op.h"
#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {
namespace {

struct Definition {
  const OpInfo* op;
  std::vector<Value> args;
  std::vector<OperandLayout> operands, results;
  Device device;

  void run(void* const* from, void* const* to) const {
    const StateGuard<bool> below(&DispatchState::below_autograd, true),
        shapes(&DispatchState::shapes_only, false);
    const StateGuard<Tracer*> tracer(&DispatchState::tracer, nullptr);
    const auto operand = [&](GraphRef r) { return tensor_on(device, operands[r.node], from[r.node]); };
    std::vector<Value> given, made(op->return_count());
    for (const Value& v : args)
      given.push_back(v.tag() == Value::Tag::GraphRef ? Value(operand(v.graph_ref())) : v);
    op->decompose(given.data(), made.data());
    static const OpInfo& copy = require_operator("copy(");
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor target = tensor_on(device, results[k], to[k]);
      Value copied[] = {Value(target), made[k], Value(false)};
      backend().run_into(copy, copied, &target);
    }
  }
};

}  // namespace

Tensor tensor_on(Device device, const OperandLayout& layout, void* data) {
  TensorSpec spec;
  for (const int64_t size : layout.sizes) spec.sizes.push_back(size);
  for (const int64_t stride : layout.strides) spec.strides.push_back(stride);
  spec.dtype = layout.dtype;
  spec.device = device;
  const int64_t bytes = spec.storage_bytes().expect_int();
  return Tensor(spec, make_ref<Storage>(
                          data, bytes, device, [](void*) {}, nullptr));
}

PreparedCall prepare_by_definition(const CallArguments& call, Device device) {
  FL_ASSERT(call.op.decompose, "{} has no decomposition", call.op.name());
  auto definition = std::make_shared<const Definition>(
      Definition{&call.op, call.args, call.operands, call.results, device});
  return [definition](void* const* operands, void* const* results) { definition->run(operands, results); };
}

}  // namespace fl::runtime
