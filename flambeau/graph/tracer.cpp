#include "flambeau/graph/tracer.h"

#include <atomic>

#include "flambeau/base/error.h"
#include "flambeau/graph/call_results.h"
#include "flambeau/op/op.h"
#include "flambeau/sym/shape_env.h"

namespace fl::graph {
namespace {

std::atomic<uint64_t> g_next_tracer{1};

bool same_expressions(const Sizes& a, const Sizes& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].same_as(b[i])) return false;
  return true;
}

bool same_expressions(const TensorSpec& a, const TensorSpec& b) {
  return a.dtype == b.dtype && a.offset.same_as(b.offset) && same_expressions(a.sizes, b.sizes) &&
         same_expressions(a.strides, b.strides);
}

/// Sizes 0 and 1 are numbers in a trace: rules tell empty and broadcast dimensions by that. An expression
/// that is one of them for the example becomes it, with a guard.
void settle_small_sizes(TensorSpec& spec) {
  const sym::ShapeEnv* env = sym::ShapeEnv::active();
  if (!env) return;
  for (SymInt& size : spec.sizes) {
    if (!size.is_symbolic() || known_true(sym::Relation::Le, 2, size)) continue;
    if (size.expr().is_symbol() && size.expr().lower() == 1) continue;  // see TraceOptions::one_varies
    if (env->hint(size.expr()) && size < SymInt(2)) size = size.guard_int();
  }
}

}  // namespace

/// What a traced tensor carries.
struct GraphTracer::Note : RefCounted {
  uint64_t tracer;
  GraphRef ref;
  Note(uint64_t t, GraphRef r) : tracer(t), ref(r) {}
};

GraphTracer::GraphTracer(Graph& g) : graph_(g), id_(g_next_tracer++) {}

void GraphTracer::bind(const Tensor& t, GraphRef r) {
  t.impl()->trace = make_ref<Note>(id_, r);
  auto& aliases = by_storage_[t.storage().get()];
  // The storage stays alive with the tracer, so that its address is not used again.
  if (aliases.empty()) kept_.push_back(t);
  aliases.push_back({t.spec(), r});
}

Tensor GraphTracer::tensor_for(GraphRef r) {
  Tensor t = fake_tensor(graph_.spec(r));
  bind(t, r);
  return t;
}

// Copies of a handle carry its note; a handle that was made anew from the same memory is found by it.
GraphRef GraphTracer::lookup(const Tensor& t) const {
  if (t.impl()->trace)
    if (auto* note = dynamic_cast<Note*>(t.impl()->trace.get()); note && note->tracer == id_)
      return note->ref;
  auto it = by_storage_.find(t.storage().get());
  if (it != by_storage_.end())
    for (const Alias& a : it->second)
      if (same_expressions(a.spec, t.spec())) return a.ref;
  return {};
}

Tensor GraphTracer::capture(const Tensor& real) {
  FL_RAISE(UnsupportedError,
           "a tensor of shape {} that is no value of the graph was used in a traced function",
           to_string(real.sizes()));
}

Tensor GraphTracer::stand_in(const Tensor& t) {
  if (knows(t)) return t;
  auto it = stand_ins_.find(t.impl());
  if (it != stand_ins_.end()) return it->second;
  FL_CHECK(t.has_data(), UnsupportedError,
           "a tensor without elements (shape {}) that was not made in this trace was used in it",
           to_string(t.sizes()));
  Tensor fake = capture(t);
  adopt(t, fake);
  return fake;
}

void GraphTracer::adopt(const Tensor& real, const Tensor& fake) {
  kept_.push_back(real);
  stand_ins_.insert_or_assign(real.impl(), fake);
}

void GraphTracer::written(const Tensor&, const Tensor&) {}

GraphRef GraphTracer::ref_of(const Tensor& t) { return lookup(stand_in(t)); }

// The argument as the graph holds it; *fake: as the shape rules get it.
Value GraphTracer::graph_argument(const OpInfo& op, int i, Value* fake) {
  if (fake->tag() == Value::Tag::TensorList) {
    std::vector<Tensor> fakes;
    std::vector<GraphRef> refs;
    for (const Tensor& t : fake->tensors()) {
      fakes.push_back(t.defined() ? stand_in(t) : t);
      refs.push_back(t.defined() ? lookup(fakes.back()) : GraphRef{});
    }
    *fake = Value(std::move(fakes));
    return Value(std::move(refs));
  }
  if (!fake->is_tensor()) return *fake;
  const Tensor t = fake->tensor();
  // Numbers that a decomposition got as tensors become numbers again.
  if (t.impl()->wrapped_number && t.has_data() && op.is(Tag::Elementwise) && !op.schema.args[i].mutated)
    return Value(t.item());
  const Tensor standing = t.impl()->wrapped_number && !knows(t) ? number_tensor(t) : stand_in(t);
  *fake = Value(standing);
  return Value(lookup(standing));
}

// A number in the place of a tensor whose elements are moved rather than computed with.
Tensor GraphTracer::number_tensor(const Tensor& t) {
  Tensor made = call(find_op("full"), {Value(IntList()), Value(t.item()), Value(t.dtype())})[0].tensor();
  made.impl()->wrapped_number = true;
  return made;
}

void GraphTracer::run_on_fakes(const OpInfo& op, Value* args, Value* outs) {
  StateGuard<Tracer*> no_tracer(&DispatchState::tracer, nullptr);
  StateGuard<bool> shapes(&DispatchState::shapes_only, true);
  dispatch_below_autograd(op, args, outs);
}

// A composite that draws from a generator is expanded at once, while the trace answers draws; so is one whose
// sizes follow from elements, so that the graph has the primitive that gives them.
bool GraphTracer::expand_random(const OpInfo& op, Value* args, Value* outs) {
  const OpInfo& f = op.functional ? *op.functional : op;
  if (!f.is(Tag::Random | Tag::DataDependent) || f.is_primitive() || !f.decompose) return false;
  StateGuard<bool> below(&DispatchState::below_autograd, true);
  f.decompose(args, outs);
  if (!op.mutates()) return true;
  int written = 0;
  for (int i = 0; i < op.arg_count() && written < f.return_count(); ++i)
    if (op.schema.args[i].mutated) {
      outs[written] = call(find_op("copy_"), {args[i], outs[written]})[0];
      ++written;
    }
  return true;
}

void GraphTracer::record(const OpInfo& op, Value* args, Value* outs) {
  if (expand_random(op, args, outs)) return;
  FL_CHECK(!op.is(Tag::DataDependent) || op.library == LibraryCall::Nonzero, UnsupportedError,
           "{} gives sizes or a number that depend on the elements of a tensor, which a graph cannot hold; "
           "move the call out of the compiled function, or run the function without fullgraph",
           op.name());
  std::vector<Value> fakes(args, args + op.arg_count());
  std::vector<Value> graph_args;
  graph_args.reserve(fakes.size());
  for (int i = 0; i < op.arg_count(); ++i) graph_args.push_back(graph_argument(op, i, &fakes[i]));
  run_on_fakes(op, fakes.data(), outs);

  std::vector<Tensor> results = flat_results(op, outs);
  std::vector<TensorSpec> specs;
  for (const Tensor& t : results) {
    if (!op.mutates()) settle_small_sizes(t.impl()->spec);
    specs.push_back(t.spec());
  }
  Node& n = graph_.insert(before_, op, std::move(graph_args), std::move(specs));
  if (op.mutates()) {
    for (int i = 0; i < op.arg_count(); ++i)
      if (op.schema.args[i].mutated) written(args[i].tensor(), fakes[i].tensor());
    // The results are the tensors that were written.
    int count = 0;
    for (int i = 0; i < op.arg_count() && count < op.return_count(); ++i)
      if (op.schema.args[i].mutated) outs[count++] = args[i];
  } else {
    for (size_t i = 0; i < results.size(); ++i) bind(results[i], n.ref(static_cast<int>(i)));
  }
  recorded(n);
}

}  // namespace fl::graph
