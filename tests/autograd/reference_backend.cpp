#include "reference_backend.h"

#include <cstring>

#include "flambeau/autograd/autograd.h"
#include "flambeau/loop/evaluate.h"
#include "flambeau/op/op.h"

namespace fl::testing {
namespace {

using loop::ScalarBits;

int64_t offset_of(const TensorSpec& s, std::span<const Expr> index) {
  int64_t at = s.offset.expect_int();
  for (size_t d = 0; d < index.size(); ++d) at += index[d].value() * s.strides[d].expect_int();
  return at;
}
char* address(const Tensor& t, int64_t offset) {
  return static_cast<char*>(t.storage()->data()) + offset * size_of(t.dtype());
}
ScalarBits convert(const ScalarBits& v, DType from, DType to) {
  return from == to ? v : loop::evaluate(ScalarOp::Cast, to, from, v);
}
Literal literal(const Scalar& s) {
  if (s.is_complex()) return Literal(s.to_complex());
  return s.is_float() ? Literal(s.to_double()) : Literal(s.to_int());
}

class Evaluator final : public BodyOps {
 public:
  Evaluator(const OpInfo& op, const Value* args) : op_(op), args_(args) {}
  Val push(DType d, ScalarBits b) {
    values_.push_back(b);
    return {static_cast<int32_t>(values_.size()) - 1, d};
  }
  const ScalarBits& bits(Val v) const { return values_[v.id]; }
  void clear() { values_.clear(); }

  Val emit(ScalarOp op, DType dtype, Val a, Val b, Val c) override {
    const ScalarBits none;
    auto get = [&](Val v) { return v.id < 0 ? none : values_[v.id]; };
    if (op == ScalarOp::Select)
      return push(b.dtype, loop::evaluate(op, b.dtype, b.dtype, get(a), get(b), get(c)));
    const DType result = loop::result_dtype(op, dtype, a.dtype, b.id < 0 ? a.dtype : b.dtype);
    return push(result, loop::evaluate(op, result, a.dtype, get(a), get(b), get(c)));
  }
  Val constant(DType dtype, Literal value) override { return push(dtype, ScalarBits::of(dtype, value)); }
  Val index(const Expr& e) override { return push(DType::Int64, ScalarBits::of(e.value())); }
  Val load(int arg, std::span<const Expr> index, Val mask, int item) override {
    const Tensor& t = args_[arg].is_tensor() ? args_[arg].tensor() : args_[arg].tensors()[item];
    ScalarBits v;
    if (mask.id < 0 || bits(mask).get<bool>())
      std::memcpy(v.bytes, address(t, offset_of(t.spec(), index)), size_of(t.dtype()));
    const DType computed = compute_dtype(t.dtype());
    return push(computed, convert(v, t.dtype(), computed));
  }
  Expr indirect(Val v, const Expr& size, std::string_view name, Val* valid) override {
    int64_t i = bits(v).get<int64_t>();
    const int64_t n = size.value();
    FL_CHECK(i >= -n && i < n, IndexError, "index {} of {} is out of range for size {}", i, name, n);
    if (valid) *valid = push(DType::Bool, ScalarBits::of(true));
    return i < 0 ? i + n : i;
  }
  Expr as_index(Val v) override { return bits(v).get<int64_t>(); }
  Val number(int arg, DType dtype) override { return constant(dtype, literal(args_[arg].scalar())); }

 private:
  const OpInfo& op_;
  const Value* args_;
  std::vector<ScalarBits> values_;
};

/// Calls f with every index of the sizes, in row-major order.
template <class F>
void each_index(const std::vector<int64_t>& sizes, F&& f) {
  int64_t count = 1;
  for (int64_t s : sizes) count *= s;
  for (int64_t n = 0; n < count; ++n) {
    std::vector<Expr> index(sizes.size());
    int64_t rest = n;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) index[d] = rest % sizes[d];
    f(std::span<const Expr>(index));
  }
}
std::vector<int64_t> numbers(const std::vector<Expr>& e) {
  std::vector<int64_t> r;
  for (const Expr& x : e) r.push_back(x.value());
  return r;
}
std::vector<int64_t> numbers(IntList l) {
  std::vector<int64_t> r;
  for (SymInt x : l) r.push_back(x.expect_int());
  return r;
}

void store(Evaluator& ev, const Tensor& out, std::span<const Expr> index, Val v) {
  const ScalarBits b = convert(ev.bits(v), v.dtype, out.dtype());
  std::memcpy(address(out, offset_of(out.spec(), index)), b.bytes, size_of(out.dtype()));
}

void run_elementwise(const OpInfo& op, const Value* args, const std::vector<Tensor>& outs) {
  Evaluator ev(op, args);
  const Tensor& out = outs[0];
  DType compute = promote_types(InferCtx(op, args), Promote::Default).compute;
  if (is_integral(compute, true) && is_floating(out.dtype())) compute = DType::Float32;
  compute = compute_dtype(compute);
  each_index(numbers(out.sizes()), [&](std::span<const Expr> i) {
    ev.clear();
    std::vector<Val> in;
    for (int a = 0; a < op.arg_count(); ++a) {
      const ArgType type = op.schema.args[a].type;
      if (type == ArgType::Number || args[a].is_number()) {
        if (type <= ArgType::OptTensorList || type == ArgType::Number) in.push_back(ev.number(a, compute));
        continue;
      }
      if (!args[a].is_tensor()) continue;
      const Tensor& t = args[a].tensor();
      std::vector<Expr> at(i.end() - t.dim(), i.end());
      for (int d = 0; d < t.dim(); ++d)
        if (t.sizes()[d] == SymInt(1)) at[d] = 0;
      const Val v = ev.load(a, at, {}, 0);
      in.push_back(t.dtype() == DType::Bool && a == 0 && op.infer.data == static_cast<int>(Promote::Where)
                       ? v
                       : ev.cast(v, compute));
    }
    store(ev, out, i, op.scalar(ev, in.data()));
  });
}

ScalarOp combine_op(ReduceOp r) {
  switch (r) {
    case ReduceOp::Sum:
      return ScalarOp::Add;
    case ReduceOp::Prod:
      return ScalarOp::Mul;
    case ReduceOp::Min:
      return ScalarOp::Minimum;
    case ReduceOp::Max:
      return ScalarOp::Maximum;
    case ReduceOp::Any:
      return ScalarOp::Or;
    case ReduceOp::All:
      return ScalarOp::And;
    default:
      FL_RAISE(NotImplementedError, "the reference backend has no such reduction");
  }
}

void run_reduction(Evaluator& ev, const Lowered& l, const std::vector<Tensor>& outs) {
  const ScalarOp op = combine_op(l.reduce);
  each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
    ev.clear();
    Val total;
    each_index(numbers(l.reduce_sizes), [&](std::span<const Expr> r) {
      const Val v = l.body(ev, i, r)[0];
      total = total.id < 0 ? v : ev.emit(op, v.dtype, total, v, {});
    });
    if (total.id < 0)
      total = ev.constant(compute_dtype(outs[0].dtype()),
                          Literal(l.reduce == ReduceOp::Prod || l.reduce == ReduceOp::All ? 1 : 0));
    const std::vector<Val> results{total};
    const std::vector<Val> values = l.finish ? l.finish(ev, i, results) : results;
    for (size_t k = 0; k < values.size(); ++k) store(ev, outs[k], i, values[k]);
  });
}

void copy_elements(const Tensor& from, const Tensor& to) {
  each_index(numbers(to.sizes()), [&](std::span<const Expr> i) {
    ScalarBits v;
    std::memcpy(v.bytes, address(from, offset_of(from.spec(), i)), size_of(from.dtype()));
    const ScalarBits r = convert(v, from.dtype(), to.dtype());
    std::memcpy(address(to, offset_of(to.spec(), i)), r.bytes, size_of(to.dtype()));
  });
}

void run_scatter(Evaluator& ev, const Lowered& l, const Value* args, const std::vector<Tensor>& outs) {
  copy_elements(args[l.input].tensor(), outs[0]);
  FL_CHECK(l.mode == StoreMode::Set || l.mode == StoreMode::Add, NotImplementedError,
           "the reference backend only sets and adds");
  each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
    ev.clear();
    const Lowered::Update u = l.update(ev, i);
    if (u.mask.id >= 0 && !ev.bits(u.mask).get<bool>()) return;
    Val v = u.value;
    if (l.mode == StoreMode::Add) {
      ScalarBits old;
      std::memcpy(old.bytes, address(outs[0], offset_of(outs[0].spec(), u.index)), size_of(outs[0].dtype()));
      const DType d = compute_dtype(outs[0].dtype());
      v = ev.add(ev.push(d, convert(old, outs[0].dtype(), d)), ev.cast(v, d));
    }
    store(ev, outs[0], u.index, v);
  });
}

class ReferenceBackend final : public Backend {
 public:
  void run(const OpInfo& op, Value* args, Value* outs) override {
    if (!op.is_primitive()) return op.decompose(args, outs);
    const std::vector<TensorSpec> specs = infer_outputs(op, args);
    std::vector<Tensor> results;
    for (const TensorSpec& s : specs) results.push_back(empty_strided_tensor(s));
    if (op.scalar) {
      run_elementwise(op, args, results);
    } else {
      FL_CHECK(op.lower, NotImplementedError, "the reference backend cannot run {}", op.name());
      const InferCtx infer(op, args);
      run_lowered(op, args, op.lower(LowerCtx(infer, specs)), results);
    }
    for (size_t i = 0; i < results.size(); ++i) outs[i] = Value(results[i]);
  }

  void run_into(const OpInfo& functional, Value* args, const Tensor* outs) override {
    std::vector<Value> results(functional.return_count());
    run(functional, args, results.data());
    for (size_t i = 0; i < results.size(); ++i) copy_elements(results[i].tensor(), outs[i]);
  }

 private:
  static void run_lowered(const OpInfo& op, const Value* args, const Lowered& l,
                          const std::vector<Tensor>& outs) {
    Evaluator ev(op, args);
    switch (l.kind) {
      case Lowered::Kind::Pointwise:
        each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
          ev.clear();
          const std::vector<Val> v = l.body(ev, i, {});
          for (size_t k = 0; k < v.size(); ++k) store(ev, outs[k], i, v[k]);
        });
        return;
      case Lowered::Kind::Reduction:
        return run_reduction(ev, l, outs);
      case Lowered::Kind::Scatter:
        return run_scatter(ev, l, args, outs);
      default:
        FL_RAISE(NotImplementedError, "the reference backend cannot run {}", op.name());
    }
  }
};

}  // namespace

void set_up() {
  static ReferenceBackend backend;
  install_backend(&backend);
  enable_autograd();
}

}  // namespace fl::testing
