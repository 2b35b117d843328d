#include "flambeau/runtime/flat_kernels.h"

#include "flambeau/graph/graph.h"
#include "flambeau/loop/program.h"
#include "flambeau/runtime/device_runtime.h"
#include "flambeau/sym/shape_env.h"

namespace fl::runtime {

struct FlatKernels::Entry {
  uint64_t key;
  std::shared_ptr<const codegen::Launchable> kernel;
  DType dtype;               // of the result
  SmallVector<int, 6> from;  // for each buffer of the kernel: argument number, -1: the result
  Entry* next;
};

namespace {

constexpr int kMaxArgs = 5;

bool is_flat_input(const Tensor& t) { return t.dim() > 0 && t.is_contiguous(); }

}  // namespace

FlatKernels::~FlatKernels() {
  for (Entry* e = entries_.load(); e;) {
    Entry* next = e->next;
    delete e;
    e = next;
  }
}

bool FlatKernels::run(const OpInfo& op, const Value* args, Device device, const Tensor* target, Value* outs) {
  const int count = op.arg_count();
  if (count > kMaxArgs) return false;
  const Tensor* like = nullptr;
  // Eight bits for each argument: its dtype, or the kind of number.
  uint64_t key = target ? 0x10u + static_cast<uint64_t>(target->dtype()) : 1u;
  for (int i = 0; i < count; ++i) {
    const Value& v = args[i];
    key <<= 8;
    switch (v.tag()) {
      case Value::Tag::Tensor: {
        const Tensor& t = v.tensor();
        if (!is_flat_input(t) || t.impl()->wrapped_number) return false;
        if (!like) {
          like = &t;
        } else if (!(like->sizes() == t.sizes())) {
          return false;
        }
        key |= 0x40u + static_cast<uint64_t>(t.dtype());
        break;
      }
      case Value::Tag::Bool:
        if (op.schema.args[i].type == ArgType::Bool) {
          key |= 0x90u + v.to_bool();
          break;
        }
        [[fallthrough]];
      case Value::Tag::Int:
      case Value::Tag::Float:
      case Value::Tag::None:
        key |= 0x80u + static_cast<uint64_t>(v.tag());
        break;
      default:
        return false;
    }
  }
  if (!like) return false;
  if (target) {
    if (!is_flat_input(*target) || !(target->sizes() == like->sizes())) return false;
    for (int i = 0; i < count; ++i)
      if (args[i].is_tensor() && args[i].tensor().storage() == target->storage() &&
          !args[i].tensor().offset().same_as(target->offset()))
        return false;
  }
  // Eight bits more for the device.
  const bool on_host = device.type == DeviceType::CPU;
  if (!on_host) key |= (0x80u + static_cast<uint64_t>(device.index)) << 56;
  const SymInt numel = like->numel();
  if (numel.is_symbolic() || numel < SymInt(2)) return false;

  const Entry* entry = nullptr;
  for (const Entry* e = entries_.load(std::memory_order_acquire); e; e = e->next)
    if (e->key == key) {
      entry = e;
      break;
    }
  if (!entry) entry = compile(op, args, key, *like, target);
  if (!entry->kernel) return false;

  Tensor result;
  if (!target) {
    TensorSpec spec;
    spec.sizes = like->sizes();
    spec.strides = like->strides();
    spec.dtype = entry->dtype;
    spec.device = like->device();
    for (size_t d = 0; d < spec.sizes.size(); ++d)
      if (spec.sizes[d].same_as(1)) {
        spec.strides = contiguous_strides(spec.sizes);
        break;
      }
    result = Tensor(spec, make_ref<Storage>(numel.expect_int() * size_of(entry->dtype), spec.device));
  }
  union Number {
    double d;
    int64_t i;
  } numbers[kMaxArgs];
  void* pointers[kMaxArgs + 1];
  for (size_t k = 0; k < entry->from.size(); ++k) {
    const int a = entry->from[k];
    if (a < 0) {
      pointers[k] = target ? target->data() : result.data();
    } else if (args[a].is_tensor()) {
      pointers[k] = args[a].tensor().data();
    } else {
      if (args[a].tag() == Value::Tag::Float)
        numbers[a].d = args[a].to_double();
      else
        numbers[a].i = args[a].sym_int().expect_int();
      pointers[k] = &numbers[a];
    }
  }
  const int64_t n = numel.expect_int();
  if (!on_host) runtime_of(device).enter(device);
  entry->kernel->launch({pointers, &n, nullptr});
  if (!target) outs[0] = Value(std::move(result));
  return true;
}

const FlatKernels::Entry* FlatKernels::compile(const OpInfo& op, const Value* args, uint64_t key,
                                               const Tensor& like, const Tensor* target) {
  std::lock_guard lock(mutex_);
  for (const Entry* e = entries_.load(); e; e = e->next)
    if (e->key == key) return e;
  graph::Graph g;
  g.shape_env = std::make_shared<sym::ShapeEnv>();
  sym::ShapeEnv::Scope scope(g.shape_env.get());
  const sym::Expr n = g.shape_env->create_symbol(like.numel().expect_int());
  std::vector<Value> call_args;
  std::vector<int> from;  // input number -> argument
  for (int i = 0; i < op.arg_count(); ++i) {
    const Value& v = args[i];
    TensorSpec s;
    if (v.is_tensor()) {
      s = make_spec(Sizes{SymInt(n)}, v.tensor().dtype(), v.tensor().device());
    } else {
      const ArgType t = op.schema.args[i].type;
      const bool value =
          t == ArgType::Tensor || t == ArgType::Number || t == ArgType::OptNumber || t == ArgType::Float;
      if (!value || v.is_none()) {
        call_args.push_back(v);
        continue;
      }
      const bool floating = v.tag() == Value::Tag::Float;
      s = make_spec({}, floating ? DType::Float64 : v.tag() == Value::Tag::Bool ? DType::Bool : DType::Int64);
      s.wrapped_number = true;
    }
    from.push_back(i);
    call_args.emplace_back(g.add_input(graph::InputKind::Input, s, "x").ref());
  }
  auto entry = std::make_unique<Entry>();
  entry->key = key;
  const InferCtx in(
      op, call_args.data(),
      [](void* graph, GraphRef r) -> const TensorSpec& { return static_cast<graph::Graph*>(graph)->spec(r); },
      &g);
  std::vector<TensorSpec> outs = op.infer.function(in, op.infer.data);
  entry->dtype = outs[0].dtype;
  // A result that is not written as it is (converted to the target's dtype, or not of the operands' size)
  // goes another way.
  const bool exact =
      outs[0].dim() == 1 && (!target || target->dtype() == outs[0].dtype || op.is(Tag::CastsInPlace));
  if (exact) {
    if (target) outs[0].dtype = target->dtype();
    graph::Node& call = g.append(op, std::move(call_args), std::move(outs));
    g.set_outputs({Value(call.ref())});
    const loop::Program p = loop::lower(g, {.name = op.name()});
    const auto* step = p.steps.size() == 1 ? std::get_if<loop::KernelStep>(&p.steps[0]) : nullptr;
    if (step && step->kernel->sizes.size() == 1) {
      entry->kernel = runtime_of(p.device).compile({step->kernel.get(), 1}, p.device)[0];
      for (int b : step->buffers) {
        const loop::ProgramBuffer& buffer = p.buffers[b];
        entry->from.push_back(buffer.kind == loop::ProgramBuffer::Kind::Input ? from[buffer.index] : -1);
      }
    }
  }
  entry->next = entries_.load();
  Entry* out = entry.release();
  entries_.store(out, std::memory_order_release);
  return out;
}

}  // namespace fl::runtime
