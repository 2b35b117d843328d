#include "flambeau/graph/pass/fold_identities.h"

#include "flambeau/base/error.h"
#include "flambeau/graph/analysis/escape.h"
#include "flambeau/graph/analysis/purity.h"
#include "flambeau/graph/infer.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {
namespace {

/// Runs a body only to see whether it gives an operand back. Operands are values 0, 1, ...
class Probe : public BodyOps {
 public:
  explicit Probe(std::vector<DType> operands) : dtypes_(std::move(operands)) {}

  Val emit(ScalarOp op, DType dtype, Val a, Val, Val) override {
    return op == ScalarOp::Cast && dtype == a.dtype ? a : made(dtype);
  }
  Val constant(DType dtype, Literal) override { return made(dtype); }
  Val index(const sym::Expr&) override { return made(DType::Int64); }
  Val load(int arg, std::span<const Expr> index, Val mask, int item) override {
    bool same_place = mask.id < 0 && item == 0 && index.size() == point.size();
    for (size_t d = 0; same_place && d < index.size(); ++d) same_place = index[d] == point[d];
    return same_place ? Val{.id = arg, .dtype = compute_dtype(dtypes_[arg])} : made(DType::Float32);
  }
  Expr indirect(Val, const Expr&, std::string_view, Val* valid) override {
    if (valid) *valid = made(DType::Bool);
    return {};
  }
  Expr as_index(Val) override { return {}; }
  Val number(int, DType dtype) override { return made(dtype); }

  std::vector<Expr> point;  ///< where the output's element is

 private:
  static Val made(DType dtype) { return Val{.id = 1000, .dtype = dtype}; }
  std::vector<DType> dtypes_;
};

const TensorSpec& spec_in_graph(void* graph, GraphRef r) { return static_cast<const Graph*>(graph)->spec(r); }

// The argument whose elements an elementwise body returns unchanged, or -1.
int operand_of_scalar(const Node& n) {
  std::vector<int> arg_of_operand;
  for (int i = 0; i < n.op->arg_count(); ++i) {
    const ArgType t = n.op->schema.args[i].type;
    if (t == ArgType::Tensor || t == ArgType::OptTensor || t == ArgType::Number) arg_of_operand.push_back(i);
  }
  if (n.op->scalar.arity() != static_cast<int>(arg_of_operand.size())) return -1;
  Probe probe({});
  std::vector<Val> operands;
  for (int i = 0; i < n.op->scalar.arity(); ++i)
    operands.push_back({.id = i, .dtype = compute_dtype(n.spec().dtype)});
  const Val result = n.op->scalar(probe, operands.data());
  return result.id < n.op->scalar.arity() ? arg_of_operand[result.id] : -1;
}

int operand_of_lowered(const Graph& g, const Node& n) {
  if (n.args.empty() || n.args[0].tag() != Value::Tag::GraphRef) return -1;
  const InferCtx infer(*n.op, n.args.data(), spec_in_graph, const_cast<Graph*>(&g));
  const Lowered l = n.op->lower(LowerCtx(infer, n.outs));
  if (l.kind != Lowered::Kind::Pointwise || !l.body) return -1;
  std::vector<DType> dtypes;
  for (const Value& a : n.args)
    dtypes.push_back(a.tag() == Value::Tag::GraphRef ? g.spec(a.graph_ref()).dtype : DType::Float32);
  Probe probe(std::move(dtypes));
  for (int d = 0; d < n.spec().dim(); ++d) probe.point.push_back(sym::Expr::symbol(fmt::format("i{}", d)));
  const std::vector<Val> results = l.body(probe, probe.point, {});
  return results.size() == 1 && results[0].id < n.op->arg_count() ? results[0].id : -1;
}

// The value that the call copies; a node of -1 if it does anything else.
GraphRef copied_value(const Graph& g, const Node& n) {
  // Lowering is asked only where a copy is possible at all.
  bool possible = false;
  for (const Value& a : n.args)
    if (a.tag() == Value::Tag::GraphRef) possible = possible || same_spec(g, n.spec(), g.spec(a.graph_ref()));
  if (!possible) return {};
  int operand = -1;
  if (n.op->scalar)
    operand = operand_of_scalar(n);
  else if (n.op->lower)
    operand = operand_of_lowered(g, n);
  if (operand < 0 || n.args[operand].tag() != Value::Tag::GraphRef) return {};
  return n.args[operand].graph_ref();
}

}  // namespace

int fold_identities(Graph& g) {
  if (!is_functional(g)) return 0;
  const std::vector<char> escapes = escaping_nodes(g);
  int removed = 0;
  for (Node& n : g.calls()) {
    if (n.outs.size() != 1) continue;
    GraphRef source;
    if (n.op->is_view())
      source = n.args[0].graph_ref();
    else if (!escapes[n.id])
      source = copied_value(g, n);
    if (source.node < 0 || !same_spec(g, n.spec(), g.spec(source)) ||
        n.spec().wrapped_number != g.spec(source).wrapped_number)
      continue;
    g.replace_uses(n.ref(), source);
    g.erase(n.id);
    ++removed;
  }
  return removed;
}

}  // namespace fl::graph
