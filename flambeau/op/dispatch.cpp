#include "flambeau/op/dispatch.h"

#include "flambeau/op/autocast.h"
#include "flambeau/op/op.h"
#include "flambeau/tensor/generator.h"
#include "flambeau/tensor/number_fits.h"

namespace fl {
namespace {

Backend* g_backend = nullptr;
AutogradFn g_autograd = nullptr;
thread_local DispatchState g_state;

template <class F>
void each_tensor(const Value* args, int count, F&& f) {
  for (int i = 0; i < count; ++i) {
    if (args[i].is_tensor()) {
      f(args[i].tensor());
    } else if (args[i].tag() == Value::Tag::TensorList) {
      for (const Tensor& t : args[i].tensors())
        if (t.defined()) f(t);
    }
  }
}

bool any_requires_grad(const OpInfo& op, const Value* args) {
  bool found = false;
  each_tensor(args, op.arg_count(), [&](const Tensor& t) { found = found || t.impl()->autograd; });
  return found;
}

bool any_without_data(const OpInfo& op, const Value* args) {
  bool found = false;
  each_tensor(args, op.arg_count(), [&](const Tensor& t) { found = found || !t.has_data(); });
  return found;
}

bool returns_view_list(const OpInfo& op) {
  return op.return_count() == 1 && op.schema.returns[0].type == ArgType::TensorList &&
         op.schema.returns[0].alias;
}

void check_types(const OpInfo& op, const Value* args) {
  for (int i = 0; i < op.arg_count(); ++i)
    if (op.schema.args[i].type == ArgType::Tensor && !args[i].is_tensor()) {
      FL_CHECK(op.is(Tag::Elementwise | Tag::Composite) && args[i].is_number(), TypeError,
               "{}(): argument '{}' (position {}) must be Tensor, not {}", op.schema.name,
               op.schema.args[i].name, i + 1, args[i].describe());
      if (op.is(Tag::CastsInPlace) && args[0].is_tensor())
        check_fits(args[i].scalar(), args[0].tensor().dtype());
    }
}

Device device_of(const OpInfo& op, const Value* args) {
  Device d{};
  each_tensor(args, op.arg_count(), [&](const Tensor& t) {
    if (t.device().type != DeviceType::CPU) d = t.device();
  });
  for (int i = 0; i < op.arg_count(); ++i)
    if (args[i].tag() == Value::Tag::Device) d = args[i].device();
  return d;
}

// A view of args[0] with each inferred spec.
void make_views(const OpInfo& op, Value* args, Value* outs) {
  const Tensor& base = args[0].tensor();
  std::vector<TensorSpec> specs = op.infer.function(InferCtx(op, args), op.infer.data);
  if (op.schema.returns[0].type == ArgType::TensorList) {
    std::vector<Tensor> list;
    for (const TensorSpec& s : specs) list.emplace_back(s, base.storage());
    outs[0] = Value(std::move(list));
  } else {
    outs[0] = Value(Tensor(specs[0], base.storage()));
  }
  if (base.impl()->inference && outs[0].is_tensor()) outs[0].tensor().impl()->inference = true;
}

void make_fake_outputs(const OpInfo& op, Value* args, Value* outs) {
  std::vector<TensorSpec> specs = infer_outputs(op, args);
  if (op.return_count() == 1 && op.schema.returns[0].type == ArgType::TensorList) {
    std::vector<Tensor> list;
    for (const TensorSpec& s : specs) list.push_back(fake_tensor(s));
    outs[0] = Value(std::move(list));
    return;
  }
  FL_CHECK(op.return_count() == 0 || op.schema.returns[0].type == ArgType::Tensor, UnsupportedError,
           "{} gives a value that depends on elements, but its input has none (meta or traced tensor)",
           op.name());
  for (size_t i = 0; i < specs.size(); ++i) outs[i] = Value(fake_tensor(specs[i]));
}

void check_overlap(const OpInfo& op, const Tensor& out, const Value* args) {
  const TensorSpec& s = out.spec();
  if (s.numel().same_as(0)) return;
  for (int d = 0; d < s.dim(); ++d)
    FL_CHECK(!(s.strides[d].same_as(0) && !known_true(sym::Relation::Le, s.sizes[d], 1)), RuntimeError,
             "unsupported operation: more than one element of the written-to tensor refers to a single "
             "memory location. Please clone() the tensor before performing the operation.");
  if (!is_non_overlapping_and_dense(s)) return;
  // Partial overlap of two dense tensors in one storage.
  each_tensor(args, op.arg_count(), [&](const Tensor& t) {
    if (t.is_same(out) || !(t.storage() == out.storage())) return;
    const TensorSpec& o = t.spec();
    if (o.offset.is_symbolic() || s.offset.is_symbolic() || !is_non_overlapping_and_dense(o)) return;
    const SymInt n = s.numel(), m = o.numel();
    if (n.is_symbolic() || m.is_symbolic() || n.same_as(0) || m.same_as(0)) return;
    const bool same = o.offset.same_as(s.offset) && n.same_as(m);
    const bool apart = o.offset + m <= s.offset || s.offset + n <= o.offset;
    FL_CHECK(same || apart, RuntimeError,
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
             "single memory location. Please clone() the tensor before performing the operation.");
  });
}

/// Results whose sizes depend on elements: they have to be made before the targets can be checked.
std::vector<Value> results_by_elements(const OpInfo& functional, Value* args, bool fake) {
  if (fake || g_state.tracer) return {};
  StateGuard<bool> below(&DispatchState::below_autograd, true);
  std::vector<Value> made(std::max(functional.return_count(), 1));
  dispatch(functional, args, made.data());
  return made;
}

/// The specs of a mutating call's results; `made` has the results themselves where only they tell.
std::vector<TensorSpec> specs_of_results(const OpInfo& functional, Value* args, bool fake,
                                         std::vector<Value>& made) {
  try {
    return infer_outputs(functional, args);
  } catch (const UnsupportedError&) {
    made = results_by_elements(functional, args, fake);
    if (made.empty()) throw;
  }
  std::vector<TensorSpec> specs;
  for (const Value& v : made) specs.push_back(v.tensor().spec());
  return specs;
}

void copy_into(const Tensor& target, const Tensor& result) {
  static const OpInfo& copy = require_operator("copy(");
  Value args[] = {Value(target), Value(result), Value(false)};
  g_backend->run_into(copy, args, &target);
}

// op_ and out= forms: shapes checked, then the functional operator's results are written into the given
// tensors.
void run_mutating(const OpInfo& op, Value* args, Value* outs) {
  FL_CHECK(op.functional, NotImplementedError, "the mutating operator {} has no functional form", op.name());
  const OpInfo& f = *op.functional;
  const int count = f.return_count();
  const bool in_place = op.arg_count() == f.arg_count();
  Tensor targets[8];
  for (int i = 0; i < count; ++i) targets[i] = in_place ? args[0].tensor() : args[f.arg_count() + i].tensor();
  const bool fake = any_without_data(op, args) || g_state.shapes_only;
  std::vector<Value> made;
  const std::vector<TensorSpec> specs = specs_of_results(f, args, fake, made);
  for (int i = 0; i < count; ++i) {
    Tensor& t = targets[i];
    const TensorSpec& s = specs[i];
    const bool casts = f.is(Tag::CastsInPlace);
    FL_CHECK(casts || category(s.dtype) <= category(t.dtype()), RuntimeError,
             "result type {} can't be cast to the desired output type {}", name(s.dtype), name(t.dtype()));
    bool equal = t.sizes().size() == s.sizes.size();
    for (size_t d = 0; equal && d < s.sizes.size(); ++d) equal = t.sizes()[d] == s.sizes[d];
    if (!equal && !in_place && t.numel() == SymInt(0)) {
      // An empty out= tensor takes the result's sizes.
      TensorSpec resized = s;
      resized.dtype = t.dtype();
      resized.offset = t.offset();
      if (!fake)
        t.storage()->resize((resized.numel().expect_int() + resized.offset.expect_int()) *
                            size_of(t.dtype()));
      t.impl()->spec = resized;
      equal = true;
    }
    FL_CHECK(equal, RuntimeError,
             "output with shape {} doesn't match the broadcast shape {}; the {} form of {} cannot change its "
             "sizes",
             to_string(t.sizes()), to_string(s.sizes), in_place ? "in-place" : "out=", f.name());
    check_overlap(op, t, args);
  }
  if (!made.empty()) {
    for (int i = 0; i < count; ++i) copy_into(targets[i], made[i].tensor());
  } else if (!fake) {
    g_backend->run_into(f, args, targets);
  }
  for (int i = 0; i < count; ++i) {
    targets[i].storage()->bump_version();
    outs[i] = Value(targets[i]);
  }
}

/// full_like(meta tensor, device="cpu"): an operator without gradient that is told a device takes sizes alone
/// from its tensor, so one with memory stands in for it.
void give_memory(const OpInfo& op, Value* args) {
  if (!op.is(Tag::NonDifferentiable) || !args[0].is_tensor() || args[0].tensor().has_data()) return;
  for (int i = 0; i < op.arg_count(); ++i) {
    if (args[i].tag() != Value::Tag::Device || args[i].device().type == DeviceType::Meta) continue;
    if (args[0].tensor().device().type != DeviceType::Meta) return;  // traced
    TensorSpec spec = args[0].tensor().spec();
    spec.device = args[i].device();
    args[0] = Value(empty_strided_tensor(spec));
    return;
  }
}

void run(const OpInfo& op, Value* args, Value* outs) {
  if (op.mutates()) return run_mutating(op, args, outs);
  if (op.arg_count() > 0 && !g_state.shapes_only) give_memory(op, args);
  if (op.is_view() && op.infer) return make_views(op, args, outs);
  if (g_state.shapes_only || any_without_data(op, args) || device_of(op, args).type == DeviceType::Meta)
    return make_fake_outputs(op, args, outs);
  FL_ASSERT(g_backend, "no backend is installed");
  g_backend->run(op, args, outs);
  if (g_state.inference && outs[0].is_tensor()) outs[0].tensor().impl()->inference = true;
}

}  // namespace

DispatchState& dispatch_state() { return g_state; }
void install_backend(Backend* b) { g_backend = b; }
Backend& backend() {
  FL_ASSERT(g_backend, "no backend is installed");
  return *g_backend;
}
void install_autograd(AutogradFn f) { g_autograd = f; }

Tensor fake_tensor(const TensorSpec& spec) {
  Tensor t(spec, Storage::without_data(spec.device));
  t.impl()->wrapped_number = spec.wrapped_number;
  return t;
}

void dispatch(const OpInfo& op, Value* args, Value* outs) {
  check_types(op, args);
  if (autocast_state().any() && !g_state.below_autograd) return dispatch_autocast(op, args, outs);
  dispatch_as_given(op, args, outs);
}

void dispatch_as_given(const OpInfo& op, Value* args, Value* outs) {
  const bool above = !g_state.below_autograd && g_autograd;
  if (op.is(Tag::Composite) && op.decompose) {
    if (above && returns_view_list(op)) return g_autograd(op, args, outs);
    return op.decompose(args, outs);
  }
  // Views and changes are noted in every mode: what they may do later depends on the mode that they came
  // from.
  if (above && (op.is_view() || (!g_state.inference && (op.mutates() || any_requires_grad(op, args)))))
    return g_autograd(op, args, outs);
  dispatch_below_autograd(op, args, outs);
}

void dispatch_below_autograd(const OpInfo& op, Value* args, Value* outs) {
  if (g_state.tracer) return g_state.tracer->record(op, args, outs);
  run(op, args, outs);
}

namespace {
/// Shapes alone draw no numbers.
struct NoDraws : RandomHook {
  PhiloxSlot reserve(Generator&, SymInt) override { return {0, 0, 0}; }
};
}  // namespace

std::vector<TensorSpec> infer_outputs(const OpInfo& op, const Value* args) {
  if (op.infer) return op.infer.function(InferCtx(op, args), op.infer.data);
  if (op.functional) return infer_outputs(*op.functional, args);
  FL_CHECK(op.decompose, InternalError, "the operator {} has neither a shape rule nor a decomposition",
           op.name());
  StateGuard<Tracer*> no_tracer(&DispatchState::tracer, nullptr);
  StateGuard<bool> shapes(&DispatchState::shapes_only, true);
  StateGuard<bool> below(&DispatchState::below_autograd, true);
  NoDraws no_draws;
  RandomHook::Scope hook(&no_draws);
  std::vector<Value> outs(std::max(op.return_count(), 1));
  op.decompose(args, outs.data());
  std::vector<TensorSpec> specs;
  each_tensor(outs.data(), op.return_count(), [&](const Tensor& t) { specs.push_back(t.spec()); });
  return specs;
}

std::vector<Value> call(const OpInfo& op, std::vector<Value> args) {
  FL_CHECK(static_cast<int>(args.size()) <= op.arg_count(), TypeError,
           "{}() takes {} arguments but {} were given", op.name(), op.arg_count(), args.size());
  for (int i = static_cast<int>(args.size()); i < op.arg_count(); ++i) {
    const Argument& a = op.schema.args[i];
    FL_CHECK(a.default_value, TypeError, "{}() missing required argument '{}' (position {})", op.name(),
             a.name, i + 1);
    args.push_back(*a.default_value);
  }
  std::vector<Value> outs(std::max(op.return_count(), 1));
  dispatch(op, args.data(), outs.data());
  outs.resize(op.return_count());
  return outs;
}

}  // namespace fl
