#include "flambeau/loop/lower_node.h"

#include <algorithm>
#include <limits>

#include "flambeau/loop/nodes.h"

namespace fl::loop {
namespace {

// How a tensor argument is read at a point of the broadcast result: which output dimension indexes each of
// its own.
struct BroadcastArg {
  int arg;
  std::vector<int> dims;  // -1: the dimension has size 1
};

Lowered pointwise_of_scalar(const InferCtx& in, const std::vector<TensorSpec>& outs) {
  const OpInfo& op = in.op();
  const ElementwiseTypes types = promote_types(in, static_cast<Promote>(op.infer.data));
  const DType compute = compute_dtype(types.compute);
  const bool condition_first = static_cast<Promote>(op.infer.data) == Promote::Where;
  const int n = outs[0].dim();
  struct Operand {
    bool tensor;
    BroadcastArg source;
    DType dtype;
  };
  std::vector<Operand> operands;
  for (int a = 0; a < op.arg_count(); ++a) {
    const ArgType t = op.schema.args[a].type;
    const bool is_value = t == ArgType::Tensor || t == ArgType::OptTensor || t == ArgType::Number ||
                          t == ArgType::OptNumber || t == ArgType::Float;
    if (!is_value || !in.has(a)) continue;
    Operand o{in.is_tensor(a) && (t == ArgType::Tensor || t == ArgType::OptTensor), {a, {}}, compute};
    if (condition_first && a == 0) o.dtype = DType::Bool;
    if (o.tensor) {
      const TensorSpec& s = in.spec(a);
      for (int d = 0; d < s.dim(); ++d) o.source.dims.push_back(s.sizes[d].same_as(1) ? -1 : n - s.dim() + d);
    }
    operands.push_back(std::move(o));
  }
  FL_CHECK(static_cast<int>(operands.size()) == op.scalar.arity(), InternalError,
           "the scalar function of {} takes {} values, but the call has {}", op.name(), op.scalar.arity(),
           operands.size());
  Lowered out;
  out.kind = Lowered::Kind::Pointwise;
  for (SymInt s : outs[0].sizes) out.sizes.push_back(s.expr());
  out.body = [operands, scalar = op.scalar](BodyOps& b, std::span<const Expr> i, std::span<const Expr>) {
    SmallVector<Val, 4> values;
    for (const Operand& o : operands) {
      if (o.tensor) {
        Index index;
        for (int d : o.source.dims) index.push_back(d < 0 ? Expr(0) : i[d]);
        values.push_back(b.cast(b.load(o.source.arg, index), o.dtype));
      } else {
        values.push_back(b.number(o.source.arg, o.dtype));
      }
    }
    return std::vector<Val>{scalar(b, values.data())};
  };
  return out;
}

}  // namespace

Lowered lower_node(const graph::Graph& g, const graph::Node& n) {
  const OpInfo& op = *n.op;
  auto spec = [](void* graph, GraphRef r) -> const TensorSpec& {
    return static_cast<const graph::Graph*>(graph)->spec(r);
  };
  const InferCtx in(op, n.args.data(), spec, const_cast<graph::Graph*>(&g));
  if (op.lower) return op.lower(LowerCtx(in, n.outs));
  FL_CHECK(op.scalar, NotImplementedError,
           "the operator {} has no lowering: it is neither a primitive nor a composite of primitives",
           op.name());
  return pointwise_of_scalar(in, n.outs);
}

namespace {

// Results may be combined again with the same operation.
bool is_splittable(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
    case ReduceOp::Min:
    case ReduceOp::Max:
    case ReduceOp::Any:
    case ReduceOp::All:
      return true;
    default:
      return false;
  }
}

Val identity(BodyOps& b, ReduceOp op, DType d) {
  const bool floating = is_floating(d);
  const double infinity = std::numeric_limits<double>::infinity();
  const int bits = static_cast<int>(size_of(d)) * 8;
  const int64_t high =
      info(d).is_signed ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) : (int64_t{1} << bits) - 1;
  switch (op) {
    case ReduceOp::Prod:
    case ReduceOp::All:
      return b.constant(d, 1);
    case ReduceOp::Min:
      return floating ? b.constant(d, infinity) : b.constant(d, d == DType::Bool ? 1 : high);
    case ReduceOp::Max:
      return floating ? b.constant(d, -infinity) : b.constant(d, info(d).is_signed ? -high - 1 : int64_t{0});
    default:
      return b.constant(d, 0);
  }
}

// Keeps the loads of a body off memory where a mask is false.
class MaskedOps : public BodyOps {
 public:
  MaskedOps(BodyOps& b, Val mask) : b_(b), mask_(mask) {}
  Val emit(ScalarOp op, DType dtype, Val x, Val y, Val z) override { return b_.emit(op, dtype, x, y, z); }
  Val constant(DType dtype, Literal value) override { return b_.constant(dtype, value); }
  Val index(const Expr& e) override { return b_.index(e); }
  Val load(int arg, std::span<const Expr> index, Val mask, int item) override {
    return b_.load(arg, index, mask.id < 0 ? mask_ : b_.bit_and(mask, mask_), item);
  }
  Expr indirect(Val index, const Expr& size, std::string_view name, Val* valid) override {
    return b_.indirect(b_.select(mask_, index, b_.constant(index.dtype, 0)), size, name, valid);
  }
  Expr as_index(Val v) override { return b_.as_index(v); }
  Val number(int arg, DType dtype) override { return b_.number(arg, dtype); }

 private:
  BodyOps& b_;
  Val mask_;
};

}  // namespace

namespace {

int floor_log2(int64_t v) { return v < 2 ? 0 : 63 - __builtin_clzll(static_cast<uint64_t>(v)); }
int ceil_log2(int64_t v) { return v < 2 ? 0 : floor_log2(v - 1) + 1; }

// Runs a body for the indices at which it reads arguments.
class IndexOps : public BodyOps {
 public:
  IndexOps(const graph::Graph& g, const graph::Node& n) : g_(g), n_(n) {}
  std::vector<Expr> accesses;
  Val emit(ScalarOp op, DType dtype, Val a, Val, Val) override {
    const bool boolean = op >= ScalarOp::Eq && op <= ScalarOp::Le;
    const bool typed = op == ScalarOp::Cast || op == ScalarOp::Bitcast || op == ScalarOp::Select || a.id < 0;
    if (op == ScalarOp::Real || op == ScalarOp::Imag || (op == ScalarOp::Abs && is_complex(a.dtype)))
      return {next_++, real_dtype(a.dtype)};
    if (op == ScalarOp::Complex) return {next_++, complex_dtype(a.dtype)};
    return {next_++, boolean ? DType::Bool : typed ? dtype : a.dtype};
  }
  Val constant(DType dtype, Literal) override { return {next_++, dtype}; }
  Val index(const Expr&) override { return {next_++, DType::Int64}; }
  Val load(int arg, std::span<const Expr> index, Val, int item) override {
    const Value& v = n_.args[arg];
    if (v.is_number()) return {next_++, v.scalar().is_float() ? DType::Float64 : v.scalar().default_dtype()};
    const TensorSpec& s = g_.spec(v.tag() == Value::Tag::GraphRefList ? v.graph_refs()[item] : v.graph_ref());
    Expr flat = 0;
    for (size_t d = 0; d < index.size(); ++d) flat += index[d] * s.strides[d].expr();
    accesses.push_back(flat);
    return {next_++, compute_dtype(s.dtype)};
  }
  Expr indirect(Val, const Expr&, std::string_view, Val* valid) override {
    *valid = {next_++, DType::Bool};
    return Expr::symbol(fmt::format("%{}", next_++));
  }
  Expr as_index(Val) override { return Expr::symbol(fmt::format("%{}", next_++)); }
  Val number(int, DType dtype) override { return {next_++, dtype}; }

 private:
  const graph::Graph& g_;
  const graph::Node& n_;
  int32_t next_ = 0;
};

Index variables(char letter, const std::vector<Expr>& sizes) {
  Index out;
  for (size_t k = 0; k < sizes.size(); ++k)
    out.push_back(sizes[k].is_const(1) ? Expr(0) : loop_variable(letter, static_cast<int>(k)));
  return out;
}

std::optional<Expr> stride_of(const Expr& access, const Expr& variable) {
  auto a = sym::affine_in(access, variable);
  return a ? std::optional(a->first) : std::nullopt;
}

}  // namespace

int size_class(int64_t size) { return floor_log2(size) * 2 + (ceil_log2(size) != floor_log2(size)); }

std::vector<Expr> direct_accesses(const graph::Graph& g, const graph::Node& n, const Lowered& l) {
  IndexOps ops(g, n);
  l.body(ops, variables('i', l.sizes), variables('r', l.reduce_sizes));
  return ops.accesses;
}

CanonicalReduction canonical_reduction(const graph::Graph& g, const graph::Node& n, Lowered l,
                                       const std::function<int64_t(const Expr&)>& hint) {
  CanonicalReduction out;
  const std::vector<Expr> accesses = direct_accesses(g, n, l);
  struct Dim {
    Expr size;
    std::vector<size_t> members;  // outermost first
    int log;
  };
  std::vector<Dim> dims;
  for (size_t k = 0; k < l.reduce_sizes.size(); ++k)
    if (!l.reduce_sizes[k].is_const(1))
      dims.push_back({l.reduce_sizes[k], {k}, floor_log2(hint(l.reduce_sizes[k]))});
  auto stride = [&](const Expr& access, const Dim& d) {
    return stride_of(access, loop_variable('r', static_cast<int>(d.members.back())));
  };
  // Positions move by dense strides as sizes do, so that their order is the same for all sizes of one layout.
  auto key = [&](const Dim& d) {
    int64_t sum = 0;
    for (const Expr& a : accesses) {
      auto s = stride(a, d);
      sum += s ? std::abs(hint(*s)) : 0;
    }
    return sum;
  };
  std::stable_sort(dims.begin(), dims.end(), [&](const Dim& a, const Dim& b) { return key(a) > key(b); });
  for (size_t k = dims.size(); k-- > 1;) {
    Dim &a = dims[k - 1], &b = dims[k];
    const bool one = std::all_of(accesses.begin(), accesses.end(), [&](const Expr& e) {
      auto x = stride(e, a), y = stride(e, b);
      return x && y && *x == *y * b.size;
    });
    if (!one) continue;
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    a.size = a.size * b.size;
    a.log += b.log;
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(k));
  }
  int along_outer = 0, along_inner = 0;
  for (const Expr& a : accesses) {
    for (size_t k = 0; k < l.sizes.size(); ++k)
      if (auto s = stride_of(a, loop_variable('i', static_cast<int>(k))); s && s->is_const(1)) ++along_outer;
    if (!dims.empty())
      if (auto s = stride(a, dims.back()); s && s->is_const(1)) ++along_inner;
  }
  out.columns = l.window || (along_outer > 0 && along_outer >= along_inner);
  for (const Dim& d : dims) out.logs.push_back(d.log);
  for (const Expr& s : l.sizes) out.output_log += ceil_log2(hint(s));
  out.lowered = l;
  out.lowered.reduce_sizes.clear();
  std::vector<std::vector<size_t>> members;
  for (const Dim& d : dims) {
    out.lowered.reduce_sizes.push_back(d.size);
    members.push_back(d.members);
  }
  if (dims.empty()) {
    out.lowered.reduce_sizes.push_back(Expr(1));
    out.logs.push_back(0);
  }
  out.lowered.body = [body = l.body, sizes = l.reduce_sizes, members](BodyOps& b, std::span<const Expr> i,
                                                                      std::span<const Expr> r) {
    Index point(sizes.size(), Expr(0));
    for (size_t d = 0; d < members.size(); ++d) {
      Expr rest = r[d];
      for (size_t k = members[d].size(); k-- > 0;) {
        const size_t m = members[d][k];
        point[m] = k == 0 ? rest : sym::mod(rest, sizes[m]);
        if (k > 0) rest = sym::floordiv(rest, sizes[m]);
      }
    }
    return body(b, i, point);
  };
  return out;
}

int64_t split_count(const CanonicalReduction& r, const MachineShape& machine) {
  int points = 0, longest = 0;
  for (int l : r.logs) {
    points += l;
    longest = std::max(longest, l);
  }
  const CutRule& rule = r.columns ? machine.columns : machine.rows;
  if (!is_splittable(r.lowered.reduce) || r.output_log > rule.few_outputs || points < rule.many_points)
    return 1;
  if (!rule.fewer_pieces) return int64_t{1} << rule.pieces;
  const int pieces = std::min({rule.pieces - r.output_log, points - rule.least_points, longest - 1});
  return int64_t{1} << std::max(pieces, 0);
}

SplitReduction split_reduction(const CanonicalReduction& r, int64_t pieces) {
  const Lowered& l = r.lowered;
  const size_t cut = static_cast<size_t>(std::max_element(r.logs.begin(), r.logs.end()) - r.logs.begin());
  const Expr size = l.reduce_sizes[cut], chunk = sym::ceildiv(size, Expr(pieces));
  SplitReduction out;
  out.partial = l;
  out.partial.finish = nullptr;
  out.partial.sizes.insert(out.partial.sizes.begin(), Expr(pieces));
  out.partial.reduce_sizes[cut] = chunk;
  const bool even = sym::exact_divide(size, Expr(pieces)).has_value();
  out.partial.body = [body = l.body, op = l.reduce, cut, size, chunk, even](
                         BodyOps& b, std::span<const Expr> i, std::span<const Expr> r) {
    Index point(r.begin(), r.end());
    point[cut] = i[0] * chunk + r[cut];
    if (even) return body(b, i.subspan(1), point);
    const Val inside = b.lt(b.index(point[cut]), b.index(size));
    MaskedOps masked(b, inside);
    std::vector<Val> v = body(masked, i.subspan(1), point);
    v[0] = b.select(inside, v[0], identity(b, op, v[0].dtype));
    return v;
  };
  out.combine = l;
  out.combine.reduce_sizes = {Expr(pieces)};
  out.combine.body = [](BodyOps& b, std::span<const Expr> i, std::span<const Expr> r) {
    Index at{r[0]};
    at.insert(at.end(), i.begin(), i.end());
    return std::vector<Val>{b.load(kPartialResults, at)};
  };
  return out;
}

}  // namespace fl::loop
