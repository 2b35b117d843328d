#include "flambeau/base/error.h"
#include "flambeau/graph/graph.h"
#include "flambeau/graph/infer.h"
#include "flambeau/graph/text.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {
namespace {

using Tag = Value::Tag;

bool is_number(Tag t) { return t == Tag::Int || t == Tag::Float || t == Tag::Bool || t == Tag::Complex; }

// Whether an argument of a graph may have this content.
bool fits(ArgType type, Tag tag) {
  switch (type) {
    case ArgType::Tensor:
      return tag == Tag::GraphRef || is_number(tag);
    case ArgType::OptTensor:
      return tag == Tag::GraphRef || tag == Tag::None || is_number(tag);
    case ArgType::TensorList:
    case ArgType::OptTensorList:
      return tag == Tag::GraphRefList;
    case ArgType::Int:
    case ArgType::SymInt:
      return tag == Tag::Int || tag == Tag::Bool;
    case ArgType::OptInt:
    case ArgType::OptSymInt:
      return tag == Tag::Int || tag == Tag::None;
    case ArgType::IntList:
      return tag == Tag::IntList;
    case ArgType::OptIntList:
      return tag == Tag::IntList || tag == Tag::None;
    case ArgType::Float:
      return tag == Tag::Float || tag == Tag::Int || tag == Tag::Bool;
    case ArgType::OptFloat:
      return tag == Tag::Float || tag == Tag::Int || tag == Tag::None;
    case ArgType::OptFloatList:
      return tag == Tag::FloatList || tag == Tag::None;
    case ArgType::Bool:
      return tag == Tag::Bool;
    case ArgType::OptBool:
      return tag == Tag::Bool || tag == Tag::None;
    case ArgType::BoolList:
      return tag == Tag::BoolList;
    case ArgType::Number:
      return is_number(tag);
    case ArgType::OptNumber:
      return is_number(tag) || tag == Tag::None;
    case ArgType::Str:
      return tag == Tag::Str;
    case ArgType::OptStr:
      return tag == Tag::Str || tag == Tag::None;
    case ArgType::DType:
      return tag == Tag::DType;
    case ArgType::OptDType:
      return tag == Tag::DType || tag == Tag::None;
    case ArgType::OptDevice:
      return tag == Tag::Device || tag == Tag::None;
    case ArgType::MemoryFormat:
      return tag == Tag::MemoryFormat;
    case ArgType::OptMemoryFormat:
      return tag == Tag::MemoryFormat || tag == Tag::None;
    case ArgType::OptGenerator:
      return tag == Tag::None || tag == Tag::Generator;
  }
  return false;
}

bool same_list(const Graph& g, const Sizes& a, const Sizes& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_number(g, a[i], b[i])) return false;
  return true;
}

void verify_args(const Graph& g, const Node& n, const std::vector<char>& defined) {
  FL_ASSERT(n.args.size() == n.op->schema.args.size(), "%{} = {}: {} arguments, got {}", n.name, n.op->name(),
            n.op->schema.args.size(), n.args.size());
  for (size_t i = 0; i < n.args.size(); ++i) {
    const Argument& a = n.op->schema.args[i];
    FL_ASSERT(fits(a.type, n.args[i].tag()), "%{} = {}: argument '{}' has to be {}, got {} ({})", n.name,
              n.op->name(), a.name, name(a.type), name(n.args[i].tag()), to_text(g, n.args[i]));
    for_each_ref(n.args[i], [&](GraphRef r) {
      FL_ASSERT(g.has_node(r.node) && defined[r.node], "%{} = {}: '{}' is used before it is defined", n.name,
                n.op->name(), to_text(g, Value(r)));
      FL_ASSERT(r.index >= 0 && r.index < static_cast<int>(g.node(r.node).outs.size()),
                "%{} = {}: '%{}' has {} outputs, got number {}", n.name, n.op->name(), g.node(r.node).name,
                g.node(r.node).outs.size(), r.index);
    });
  }
}

void verify_specs(const Graph& g, const Node& n) {
  if (n.op->is(fl::Tag::DataDependent)) return;  // every call of the rule gives another symbol
  const std::vector<TensorSpec> inferred = infer_specs(g, *n.op, n.args);
  FL_ASSERT(inferred.size() == n.outs.size(), "%{} = {}: {} outputs by its rule, got {}", n.name,
            n.op->name(), inferred.size(), n.outs.size());
  for (size_t i = 0; i < inferred.size(); ++i)
    FL_ASSERT(same_spec(g, inferred[i], n.outs[i]), "%{} = {}: output {} is {} by its rule, got {}", n.name,
              n.op->name(), i, to_text(inferred[i]), to_text(n.outs[i]));
}

}  // namespace

bool same_number(const Graph& g, SymInt a, SymInt b) {
  if (known_equal(a, b)) return true;
  return g.shape_env && g.shape_env->simplify(a.expr()) == g.shape_env->simplify(b.expr());
}

bool same_spec(const Graph& g, const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype || a.device != b.device || !same_list(g, a.sizes, b.sizes)) return false;
  bool empty = false;
  for (SymInt s : a.sizes) empty = empty || s.same_as(0);
  if (empty) return true;
  // The stride of a dimension of one element moves nothing.
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (!a.sizes[d].same_as(1) && !same_number(g, a.strides[d], b.strides[d])) return false;
  return same_number(g, a.offset, b.offset);
}

void verify(const Graph& g) {
  for (const Node& n : g.calls()) n.checked = false;
  verify_changes(g);
}

void verify_changes(const Graph& g) {
  std::vector<char> defined(static_cast<size_t>(g.id_limit()), 0);
  for (int32_t id : g.inputs()) defined[id] = 1;
  sym::ShapeEnv::Scope scope(g.shape_env ? g.shape_env.get() : sym::ShapeEnv::active());
  for (const Node& n : g.calls()) {
    verify_args(g, n, defined);
    if (!n.checked) verify_specs(g, n);
    n.checked = true;
    defined[n.id] = 1;
  }
  for (const Value& o : g.outputs()) {
    FL_ASSERT(o.is_none() || o.tag() == Tag::Int || o.tag() == Tag::GraphRef,
              "an output of a graph is a tensor, an integer or None, got {}", to_text(g, o));
    for_each_ref(o, [&](GraphRef r) {
      FL_ASSERT(
          g.has_node(r.node) && defined[r.node] && r.index < static_cast<int>(g.node(r.node).outs.size()),
          "output {} is not defined", to_text(g, o));
    });
  }
}

}  // namespace fl::graph
