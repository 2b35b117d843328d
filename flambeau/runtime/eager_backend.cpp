// The backend of eager calls on the CPU: kernels compiled once for each kind of call.
#include <deque>

#include "flambeau/autograd/autograd.h"
#include "flambeau/op/op.h"
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

class EagerBackend : public Backend {
 public:
  explicit EagerBackend(const OpTable& table) {
    for (size_t k = 0; k < table.all().size(); ++k) caches_.emplace_back();
  }

  void run(const OpInfo& op, Value* args, Value* outs) override {
    if (op.library == LibraryCall::Nonzero) {
      outs[0] = Value(nonzero_positions(args[0].tensor()));
      return;
    }
    if (!op.is_primitive() && !op.is(Tag::Fused)) {
      FL_CHECK(op.decompose, NotImplementedError, "the operator {} has no kernel for the CPU", op.name());
      StateGuard<bool> below(&DispatchState::below_autograd, true);
      op.decompose(args, outs);
      return;
    }
    if (op.scalar && cache(op).flat.run(op, args, nullptr, outs)) return;
    give(cache(op).programs.run(op, args, {}), op, outs);
  }

  void run_into(const OpInfo& op, Value* args, const Tensor* targets) override {
    const int count = op.return_count();
    if (count == 1 && op.scalar && cache(op).flat.run(op, args, targets, nullptr)) return;
    const bool stores_once = op.library == LibraryCall::None || op.library == LibraryCall::Join;
    bool direct = op.is_primitive() && stores_once;
    for (int o = 0; direct && o < count; ++o)
      direct = targets[o].numel().expect_int() > 0 && !overlaps_input(op, args, targets[o]) &&
               writes_exactly(op, args, targets[o]);
    if (direct) {
      cache(op).programs.run(op, args, {targets, static_cast<size_t>(count)});
      return;
    }
    std::vector<Value> results(count);
    run(op, args, results.data());
    static const OpInfo& copy = find_op("copy");
    for (int o = 0; o < count; ++o) {
      Value copy_args[] = {Value(targets[o]), std::move(results[o]), Value(false)};
      if (cache(copy).flat.run(copy, copy_args, &targets[o], nullptr)) continue;
      cache(copy).programs.run(copy, copy_args, {&targets[o], 1});
    }
  }

 private:
  // The result's own dtype rounds first; only then it may be converted to the target's.
  static bool writes_exactly(const OpInfo& op, const Value* args, const Tensor& target) {
    return op.is(Tag::CastsInPlace) || infer_outputs(op, args)[0].dtype == target.dtype();
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
  install_backend(&backend);
  enable_autograd();
}

}  // namespace fl
