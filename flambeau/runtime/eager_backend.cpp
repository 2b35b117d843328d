// The backend of eager calls: kernels compiled once for each kind of call and device.
#include <deque>

#include "flambeau/autograd/autograd.h"
#include "flambeau/op/op.h"
#include "flambeau/runtime/cuda/runtime.h"
#include "flambeau/runtime/device_runtime.h"
#include "flambeau/runtime/eager_call.h"
#include "flambeau/runtime/flat_kernels.h"

namespace fl::runtime {
namespace {

struct OperatorCache {
  FlatKernels flat;
  EagerPrograms programs;
};

bool same_place(const Tensor& a, const Tensor& b) {
  return a.offset().same_as(b.offset()) && a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Whether writing the target while reading an argument could read what was already written.
bool overlaps_input(const OpInfo& op, const Value* args, const Tensor& target) {
  auto meets = [&](const Tensor& t) {
    return t.defined() && t.storage() == target.storage() && !(op.scalar && same_place(t, target));
  };
  for (int i = 0; i < op.arg_count(); ++i) {
    if (args[i].is_tensor() && meets(args[i].tensor())) return true;
    if (args[i].tag() == Value::Tag::TensorList)
      for (const Tensor& t : args[i].tensors())
        if (meets(t)) return true;
  }
  return false;
}

// Where a call runs. A GPU takes tensors of its own, and 0-dim ones of the CPU as numbers; what is told a
// device reads sizes alone.
Device place_of(const OpInfo& op, const Value* args) {
  Device device;
  const Tensor* first = nullptr;
  const auto meet = [&](const Tensor& t) {
    if (!t.defined() || (t.dim() == 0 && t.device().type == DeviceType::CPU)) return;
    if (!first) {
      first = &t;
      device = t.device();
    }
    FL_CHECK(
        t.device() == device, RuntimeError,
        "Expected all tensors to be on the same device, but found at least two devices, {} and {}! (in {})",
        device.str(), t.device().str(), op.name());
  };
  for (int i = 0; i < op.arg_count(); ++i)
    if (args[i].tag() == Value::Tag::Device) return args[i].device();
  for (int i = 0; i < op.arg_count(); ++i) {
    if (args[i].is_tensor()) meet(args[i].tensor());
    if (args[i].tag() == Value::Tag::TensorList)
      for (const Tensor& t : args[i].tensors()) meet(t);
  }
  return device;
}

// _to_copy(self, dtype, device, ...) to another device.
bool moves(const OpInfo& op, const Value* args) {
  static const OpInfo& to_copy = require_operator("_to_copy(");
  return &op == &to_copy && args[2].tag() == Value::Tag::Device &&
         args[2].device() != args[0].tensor().device();
}

// copy(self, src) with src on another device.
bool copies_from_elsewhere(const OpInfo& op, const Value* args) {
  static const OpInfo& copy = require_operator("copy(");
  if (&op != &copy || !args[0].is_tensor() || !args[1].is_tensor()) return false;
  const Tensor& source = args[1].tensor();
  return source.device() != args[0].tensor().device() &&
         (source.dim() > 0 || source.device().type != DeviceType::CPU);
}

class EagerBackend : public Backend {
 public:
  explicit EagerBackend(const OpTable& table) {
    for (size_t k = 0; k < table.all().size(); ++k) caches_.emplace_back();
  }

  void run(const OpInfo& op, Value* args, Value* outs) override {
    if (moves(op, args)) {
      outs[0] = Value(move(op, args));
      return;
    }
    if (copies_from_elsewhere(op, args)) {
      const Tensor& source = args[1].tensor();
      args[1] = Value(moved(source, source.dtype(), args[0].tensor().device()));
    }
    if (is_composite(op)) {  // whose parts look where their arguments are
      FL_CHECK(op.decompose, NotImplementedError, "the operator {} has no kernel", op.name());
      StateGuard<bool> below(&DispatchState::below_autograd, true);
      op.decompose(args, outs);
      return;
    }
    const Device device = place_of(op, args);
    if (op.library == LibraryCall::Nonzero) {
      const Tensor& t = args[0].tensor();
      const bool on_host = device.type == DeviceType::CPU;
      const Tensor positions = nonzero_positions(on_host ? t : moved(t, t.dtype(), Device{}));
      outs[0] = Value(on_host ? positions : moved(positions, DType::Int64, device));
      return;
    }
    if (op.scalar && cache(op).flat.run(op, args, device, nullptr, outs)) return;
    give(cache(op).programs.run(op, args, device, {}), op, outs);
  }

  void run_into(const OpInfo& op, Value* args, const Tensor* targets) override {
    const int count = op.return_count();
    if (copies_from_elsewhere(op, args)) return move_into(targets[0], args[1].tensor(), args[2].to_bool());
    if (is_composite(op)) return run_and_copy(op, args, targets);
    const Device device = place_of(op, args);
    for (int o = 0; o < count; ++o) check_target(op, device, targets[o]);
    if (count == 1 && op.scalar && cache(op).flat.run(op, args, device, targets, nullptr)) return;
    const bool stores_once = op.library == LibraryCall::None || op.library == LibraryCall::Join;
    bool direct = op.is_primitive() && stores_once;
    for (int o = 0; direct && o < count; ++o)
      direct = targets[o].numel().expect_int() > 0 && !overlaps_input(op, args, targets[o]) &&
               writes_exactly(op, args, targets[o]);
    if (direct) {
      cache(op).programs.run(op, args, device, {targets, static_cast<size_t>(count)});
      return;
    }
    run_and_copy(op, args, targets);
  }

 private:
  static bool is_composite(const OpInfo& op) { return !op.is_primitive() && !op.is(Tag::Fused); }

  static void check_target(const OpInfo& op, Device device, const Tensor& target) {
    FL_CHECK(target.device() == device || (device.type == DeviceType::CPU && target.dim() == 0), RuntimeError,
             "{} computes on {}, but the tensor for its result is on {}", op.name(), device.str(),
             target.device().str());
  }

  void run_and_copy(const OpInfo& op, Value* args, const Tensor* targets) {
    static const OpInfo& copy = find_op("copy");
    std::vector<Value> results(static_cast<size_t>(op.return_count()));
    run(op, args, results.data());
    for (size_t o = 0; o < results.size(); ++o) {
      check_target(op, results[o].tensor().device(), targets[o]);
      Value copy_args[] = {Value(targets[o]), std::move(results[o]), Value(false)};
      const Device device = place_of(copy, copy_args);
      if (cache(copy).flat.run(copy, copy_args, device, &targets[o], nullptr)) continue;
      cache(copy).programs.run(copy, copy_args, device, {&targets[o], 1});
    }
  }

  // The result's own dtype rounds first; only then it may be converted to the target's.
  static bool writes_exactly(const OpInfo& op, const Value* args, const Tensor& target) {
    return op.is(Tag::CastsInPlace) || infer_outputs(op, args)[0].dtype == target.dtype();
  }

  // As _to_copy: dtype and layout are as it says.
  Tensor move(const OpInfo& op, const Value* args) {
    const Tensor& t = args[0].tensor();
    const TensorSpec spec = infer_outputs(op, args)[0];
    const Tensor there =
        moved(t, spec.dtype, spec.device, args[4].tag() == Value::Tag::Bool && args[4].to_bool());
    if (there.strides() == spec.strides) return there;
    const Tensor out = empty_strided_tensor(spec);
    Value copy_args[] = {Value(out), Value(there), Value(false)};
    run_into(find_op("copy"), copy_args, &out);
    return out;
  }

  static void give(std::vector<Value> results, const OpInfo& op, Value* outs) {
    if (op.return_count() == 1 && op.schema.returns[0].type == ArgType::TensorList) {
      std::vector<Tensor> list;
      for (Value& v : results) list.push_back(v.tensor());
      outs[0] = Value(std::move(list));
      return;
    }
    for (size_t o = 0; o < results.size(); ++o) outs[o] = std::move(results[o]);
  }

  OperatorCache& cache(const OpInfo& op) { return caches_[static_cast<size_t>(op.id)]; }

  std::deque<OperatorCache> caches_;
};

}  // namespace
}  // namespace fl::runtime

namespace fl {

void start_runtime(const OpTable& table) {
  static runtime::EagerBackend backend(table);
#ifdef FLAMBEAU_CUDA
  runtime::cuda::install();
#endif
  install_backend(&backend);
  enable_autograd();
}

}  // namespace fl
