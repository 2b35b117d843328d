#include "flambeau/loop/lower_node.h"

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

int64_t split_count(ReduceOp op, int64_t outputs, int64_t points) {
  return is_splittable(op) && outputs <= 512 && points >= 4096 ? 16 : 1;
}

SplitReduction split_reduction(const Lowered& l, int64_t pieces,
                               const std::function<int64_t(const Expr&)>& hint) {
  size_t cut = 0;
  for (size_t k = 1; k < l.reduce_sizes.size(); ++k)
    if (hint(l.reduce_sizes[k]) > hint(l.reduce_sizes[cut])) cut = k;
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
