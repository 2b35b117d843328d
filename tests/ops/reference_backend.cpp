#include "reference_backend.h"

#include <algorithm>
#include <numeric>

#include "evaluator.h"
#include "flambeau/loop/reduce.h"

namespace fl::testing {
namespace {

std::vector<int64_t> numbers(const std::vector<Expr>& e) {
  std::vector<int64_t> out;
  for (const Expr& x : e) out.push_back(x.value());
  return out;
}
std::vector<int64_t> numbers(const Sizes& sizes) {
  std::vector<int64_t> out;
  for (SymInt s : sizes) out.push_back(s.expect_int());
  return out;
}

/// Calls f with every index, in row-major order.
template <class F>
void each_index(const std::vector<int64_t>& sizes, F f) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  for (int64_t n = 0; n < count; ++n) {
    std::vector<Expr> index(sizes.size());
    int64_t rest = n;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) index[d] = rest % sizes[d];
    f(std::span<const Expr>(index));
  }
}

void store(Evaluator& e, const Tensor& out, std::span<const Expr> index, Val v) {
  const ScalarBits b = converted(e.bits(v), v.dtype, out.dtype());
  std::memcpy(element(out, index), b.bytes, size_of(out.dtype()));
}

void run_elementwise(const OpInfo& op, const Value* args, const Tensor& out) {
  Evaluator e(args);
  const auto promote = static_cast<Promote>(op.infer.data);
  const DType compute = compute_dtype(promote_types(InferCtx(op, args), promote).compute);
  each_index(numbers(out.sizes()), [&](std::span<const Expr> i) {
    e.clear();
    std::vector<Val> in;
    for (int a = 0; a < op.arg_count(); ++a) {
      const ArgType type = op.schema.args[a].type;
      if (args[a].is_number() && (type == ArgType::Tensor || type == ArgType::Number)) {
        in.push_back(e.number(a, compute));
      } else if (args[a].is_tensor()) {
        const Tensor& t = args[a].tensor();
        std::vector<Expr> at(i.end() - t.dim(), i.end());
        for (int d = 0; d < t.dim(); ++d)
          if (t.sizes()[d].same_as(1)) at[d] = 0;
        const Val v = e.load(a, at, {}, 0);
        const DType wanted = promote == Promote::Where && a == 0 ? DType::Bool : compute;
        in.push_back(e.push(wanted, converted(e.bits(v), v.dtype, wanted)));
      }
    }
    store(e, out, i, op.scalar(e, in.data()));
  });
}

std::vector<Val> copied(Evaluator& e, const std::vector<std::pair<DType, ScalarBits>>& state) {
  std::vector<Val> out;
  for (const auto& [dtype, bits] : state) out.push_back(e.push(dtype, bits));
  return out;
}

/// The state survives the values of a point.
std::vector<std::pair<DType, ScalarBits>> taken(Evaluator& e, const std::vector<Val>& values) {
  std::vector<std::pair<DType, ScalarBits>> out;
  for (const Val v : values) out.emplace_back(v.dtype, e.bits(v));
  return out;
}

DType operand_dtype(Evaluator& e, const Lowered& l, std::span<const Expr> i,
                    const std::vector<Tensor>& outs) {
  int64_t points = 1;
  for (const Expr& s : l.reduce_sizes) points *= s.value();
  if (points == 0) return compute_dtype(outs[0].dtype());
  const std::vector<Expr> first(l.reduce_sizes.size(), Expr(0));
  return l.body(e, i, first)[0].dtype;
}

void run_reduction(Evaluator& e, const Lowered& l, const std::vector<Tensor>& outs) {
  each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
    e.clear();
    auto state = taken(e, loop::reduce_identity(e, l.reduce, operand_dtype(e, l, i, outs)));
    each_index(numbers(l.reduce_sizes), [&](std::span<const Expr> r) {
      e.clear();
      const std::vector<Val> operands = l.body(e, i, r);
      state = taken(e, loop::reduce_step(e, l.reduce, copied(e, state), operands));
    });
    e.clear();
    const std::vector<Val> results = loop::reduce_result(e, l.reduce, copied(e, state));
    const std::vector<Val> values = l.finish ? l.finish(e, i, results) : results;
    for (size_t k = 0; k < outs.size(); ++k) store(e, outs[k], i, values[k]);
  });
}

void run_scan(Evaluator& e, const Lowered& l, const std::vector<Tensor>& outs) {
  std::vector<int64_t> lines = numbers(l.sizes);
  const int64_t length = lines[l.scan_dim];
  lines[l.scan_dim] = length > 0 ? 1 : 0;
  each_index(lines, [&](std::span<const Expr> line) {
    std::vector<std::pair<DType, ScalarBits>> state;
    for (int64_t p = 0; p < length; ++p) {
      e.clear();
      std::vector<Expr> i(line.begin(), line.end());
      i[l.scan_dim] = p;
      const Expr at[] = {Expr(p)};
      const std::vector<Val> operands = l.body(e, i, at);
      if (p == 0) state = taken(e, loop::reduce_identity(e, l.reduce, operands[0].dtype));
      state = taken(e, loop::reduce_step(e, l.reduce, copied(e, state), operands));
      const std::vector<Val> results = loop::reduce_result(e, l.reduce, copied(e, state));
      const std::vector<Val> values = l.finish ? l.finish(e, i, results) : results;
      for (size_t k = 0; k < outs.size(); ++k) store(e, outs[k], i, values[k]);
    }
  });
}

void copy_elements(const Tensor& from, const Tensor& to) {
  each_index(numbers(to.sizes()), [&](std::span<const Expr> i) {
    const ScalarBits v = converted(read(from, i), from.dtype(), to.dtype());
    std::memcpy(element(to, i), v.bytes, size_of(to.dtype()));
  });
}

ScalarOp combination(StoreMode mode) {
  switch (mode) {
    case StoreMode::Mul:
      return ScalarOp::Mul;
    case StoreMode::Min:
      return ScalarOp::Minimum;
    case StoreMode::Max:
      return ScalarOp::Maximum;
    default:
      return ScalarOp::Add;
  }
}

void run_scatter(Evaluator& e, const Lowered& l, const Value* args, const Tensor& out) {
  copy_elements(args[l.input].tensor(), out);
  const DType dtype = compute_dtype(out.dtype());
  each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
    e.clear();
    const Lowered::Update u = l.update(e, i);
    if (u.mask.id >= 0 && !e.bits(u.mask).get<bool>()) return;
    Val v = u.value;
    if (l.mode != StoreMode::Set) {
      const Val old = e.push(dtype, converted(read(out, u.index), out.dtype(), dtype));
      v = e.emit(combination(l.mode), dtype, old, e.cast(v, dtype), {});
    }
    store(e, out, u.index, v);
  });
}

void run_lowered(const OpInfo& op, const Value* args, const std::vector<TensorSpec>& specs,
                 const std::vector<Tensor>& outs) {
  const InferCtx infer(op, args);
  const Lowered l = op.lower(LowerCtx(infer, specs));
  Evaluator e(args);
  switch (l.kind) {
    case Lowered::Kind::Pointwise:
      return each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
        e.clear();
        const std::vector<Val> values = l.body(e, i, {});
        for (size_t k = 0; k < outs.size(); ++k) store(e, outs[k], i, values[k]);
      });
    case Lowered::Kind::Reduction:
      return run_reduction(e, l, outs);
    case Lowered::Kind::Scan:
      return run_scan(e, l, outs);
    case Lowered::Kind::Scatter:
      return run_scatter(e, l, args, outs[0]);
    case Lowered::Kind::View:
      return each_index(numbers(l.sizes), [&](std::span<const Expr> i) {
        e.clear();
        store(e, outs[0], i, e.load(l.input, l.map(i), {}, 0));
      });
  }
}

/// The order of sorting: nan after everything else.
bool comes_before(Evaluator& e, Val a, Val b) {
  const auto holds = [&](Val v) { return e.bits(v).get<bool>(); };
  if (a.dtype == DType::Bool) return !holds(a) && holds(b);
  if (holds(e.is_nan(a))) return false;
  return holds(e.is_nan(b)) || holds(e.lt(a, b));
}

void run_sort(Evaluator& e, const Value* args, const std::vector<Tensor>& outs) {
  const Tensor& self = args[0].tensor();
  std::vector<int64_t> lines = numbers(self.sizes());
  const int64_t dim = wrap_dim(args[2].to_int(), self.dim());
  const int64_t length = lines.empty() ? 1 : lines[dim];
  if (!lines.empty()) lines[dim] = length > 0 ? 1 : 0;
  const bool descending = args[3].to_bool();
  each_index(lines, [&](std::span<const Expr> line) {
    std::vector<Expr> i(line.begin(), line.end());
    const auto at = [&](int64_t k) {
      if (!i.empty()) i[dim] = k;
      return std::span<const Expr>(i);
    };
    std::vector<int64_t> order(length);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      e.clear();
      const Val x = e.load(0, at(a), {}, 0), y = e.load(0, at(b), {}, 0);
      return descending ? comes_before(e, y, x) : comes_before(e, x, y);
    });
    for (int64_t k = 0; k < length; ++k) {
      e.clear();
      const Val x = e.load(0, at(order[k]), {}, 0);
      store(e, outs[0], at(k), x);
      store(e, outs[1], at(k), e.constant(DType::Int64, order[k]));
    }
  });
}

Tensor nonzero_rows(const Tensor& self) {
  std::vector<std::vector<int64_t>> columns(self.sizes().size());
  int64_t count = 0;
  each_index(numbers(self.sizes()), [&](std::span<const Expr> i) {
    if (!converted(read(self, i), self.dtype(), DType::Bool).get<bool>()) return;
    ++count;
    for (size_t d = 0; d < i.size(); ++d) columns[d].push_back(i[d].value());
  });
  // A dimension's positions lie together, as in PyTorch.
  std::vector<int64_t> all;
  for (const auto& c : columns) all.insert(all.end(), c.begin(), c.end());
  const Tensor by_dimension = tensor_from<int64_t>(all, Sizes{self.dim(), count});
  TensorSpec s = by_dimension.spec();
  std::swap(s.sizes[0], s.sizes[1]);
  s.strides = {SymInt(1), SymInt(count)};
  return Tensor(s, by_dimension.storage());
}

class ReferenceBackend final : public Backend {
 public:
  Backend* routines = nullptr;

  void run(const OpInfo& op, Value* args, Value* outs) override {
    if (!op.is_primitive()) return op.decompose(args, outs);
    if (op.library == LibraryCall::Nonzero) {
      outs[0] = Value(nonzero_rows(args[0].tensor()));
      return;
    }
    if (op.library == LibraryCall::HostRoutine && routines) return routines->run(op, args, outs);
    const std::vector<TensorSpec> specs = infer_outputs(op, args);
    std::vector<Tensor> results;
    for (const TensorSpec& s : specs) results.push_back(empty_strided_tensor(s));
    compute(op, args, specs, results);
    for (size_t k = 0; k < results.size(); ++k) outs[k] = Value(results[k]);
  }

  void run_into(const OpInfo& functional, Value* args, const Tensor* outs) override {
    std::vector<Value> results(functional.return_count());
    if (functional.is(Tag::Composite))
      functional.decompose(args, results.data());
    else
      run(functional, args, results.data());
    for (size_t k = 0; k < results.size(); ++k) copy_elements(results[k].tensor(), outs[k]);
  }

 private:
  static void compute(const OpInfo& op, const Value* args, const std::vector<TensorSpec>& specs,
                      const std::vector<Tensor>& outs) {
    if (op.scalar) return run_elementwise(op, args, outs[0]);
    if (op.library == LibraryCall::Sort) {
      Evaluator e(args);
      return run_sort(e, args, outs);
    }
    FL_CHECK(op.lower, NotImplementedError, "the reference backend cannot run {}", op.name());
    run_lowered(op, args, specs, outs);
  }
};

}  // namespace

Backend& reference_backend(Backend* routines) {
  static ReferenceBackend backend;
  if (routines) backend.routines = routines;
  return backend;
}

}  // namespace fl::testing
