#include <algorithm>
#include <bit>
#include <set>

#include "flambeau/base/error.h"
#include "flambeau/loop/evaluate.h"
#include "flambeau/loop/ir.h"
#include "flambeau/loop/reduce.h"

namespace fl::loop {
namespace {

bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }

// Whether op computes on operands of this dtype.
bool is_defined(ScalarOp op, DType d) {
  const bool is_bool = d == DType::Bool, integral = is_integral(d), complex = is_complex(d);
  const bool floating = is_floating(d) && !is_half(d);
  switch (op) {
    case ScalarOp::Cast:
    case ScalarOp::Select:
      return true;
    case ScalarOp::Bitcast:
      return !complex;
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::Sub:
    case ScalarOp::Div:
      return integral || floating || complex;
    case ScalarOp::Add:
    case ScalarOp::Mul:
    case ScalarOp::Eq:
    case ScalarOp::Ne:
      return is_bool || integral || floating || complex;
    case ScalarOp::Minimum:
    case ScalarOp::Maximum:
    case ScalarOp::Lt:
    case ScalarOp::Le:
      return is_bool || integral || floating;
    case ScalarOp::Rem:
    case ScalarOp::Pow:
    case ScalarOp::Fma:
      return integral || floating;
    case ScalarOp::Not:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
      return is_bool || integral;
    case ScalarOp::Shl:
    case ScalarOp::Shr:
      return integral;
    case ScalarOp::Mulhi:
      return d == DType::Int32;
    case ScalarOp::Real:
    case ScalarOp::Imag:
      return complex;
    case ScalarOp::Constant:
    case ScalarOp::Index:
    case ScalarOp::Load:
      return false;
    default:
      return floating;
  }
}

bool is_reducible(ReduceOp op, DType d) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      return !is_half(d);
    case ReduceOp::Any:
    case ReduceOp::All:
      return d == DType::Bool;
    case ReduceOp::Welford:
    case ReduceOp::OnlineSoftmax:
      return is_floating(d) && !is_half(d);
    default:
      return !is_half(d) && !is_complex(d);
  }
}

class Verifier {
 public:
  explicit Verifier(const Kernel& k) : k_(k) {}

  void run() {
    names();
    loops(k_.outer, "an outer loop");
    for (const Stage& stage : k_.stages) check(stage);
  }

 private:
  [[noreturn]] void fail(const std::string& line, const std::string& why) const {
    FL_RAISE(ValueError, "kernel {}: {}: {}", k_.name, line, why);
  }
  void names() const {
    std::set<std::string> seen;
    for (const Buffer& b : k_.buffers) {
      if (!seen.insert(b.name).second) fail("buffer " + b.name, "another buffer has this name");
      if (b.by_value && b.written) fail("buffer " + b.name, "what is given by value is only read");
    }
    if (k_.lanes < 1 || k_.lanes > kMostReduceLanes || !std::has_single_bit(static_cast<unsigned>(k_.lanes)))
      fail("vector", fmt::format("expected a power of two up to {} as the number of lanes, got {}",
                                 kMostReduceLanes, k_.lanes));
    for (const Expr& s : k_.sizes)
      if (!s.is_symbol() || value_of(s) >= 0) fail("size " + s.str(), "expected the symbol of a size");
  }
  void loops(const std::vector<Range>& ranges, std::string_view what) {
    for (const Range& r : ranges) {
      const std::string line = fmt::format("for {} < {}", r.variable.str(), r.size.str());
      if (!r.variable.is_symbol()) fail(line, fmt::format("{} needs a symbol as its variable", what));
      expression(r.size, line);
      const auto taken = [&](const Expr& e) { return e.name() == r.variable.name(); };
      if (std::any_of(variables_.begin(), variables_.end(), taken) ||
          std::any_of(k_.sizes.begin(), k_.sizes.end(), taken))
        fail(line, fmt::format("{} already has a meaning here", r.variable.str()));
      variables_.push_back(r.variable);
    }
  }
  void expression(const Expr& e, const std::string& line) const {
    for (const Expr& s : sym::symbols_of(e)) {
      if (const int32_t id = value_of(s); id >= 0) {
        use(id, line);
        if (k_.insts[id].dtype != DType::Int64)
          fail(line, fmt::format("%{} is {} in an index expression, which takes int64", id,
                                 name(k_.insts[id].dtype)));
      } else if (std::find(variables_.begin(), variables_.end(), s) == variables_.end() &&
                 std::find(k_.sizes.begin(), k_.sizes.end(), s) == k_.sizes.end()) {
        fail(line, fmt::format("{} is neither a size nor a variable of an enclosing loop", s.str()));
      }
    }
  }
  void use(int32_t id, const std::string& line) const {
    if (id < 0 || static_cast<size_t>(id) >= k_.insts.size()) fail(line, fmt::format("there is no %{}", id));
    if (!visible_.count(id)) fail(line, fmt::format("%{} is not visible here", id));
  }
  void boolean(int32_t id, const std::string& line, std::string_view what) const {
    use(id, line);
    if (k_.insts[id].dtype != DType::Bool)
      fail(line, fmt::format("the {} %{} is {}, expected bool", what, id, name(k_.insts[id].dtype)));
  }
  const Buffer& buffer(int32_t slot, const std::string& line) const {
    if (slot < 0 || static_cast<size_t>(slot) >= k_.buffers.size())
      fail(line, fmt::format("there is no buffer {}", slot));
    return k_.buffers[slot];
  }
  DType type(int32_t id) const { return k_.insts[id].dtype; }

  void check(const Stage& stage) {
    const size_t outer_count = variables_.size();
    const std::set<int32_t> outside = visible_;
    loops(stage.inner, "an inner loop");
    if (!stage.scans.empty() && stage.inner.size() != 1)
      fail("scan", fmt::format("a stage with a scan has one inner loop, got {}", stage.inner.size()));
    if (!stage.reductions.empty() && stage.inner.empty()) fail("reduce", "the stage has no inner loop");
    for (int32_t id : stage.insts) {
      check(stage, id);
      if (!visible_.insert(id).second) fail(fmt::format("%{}", id), "defined twice");
    }
    for (size_t n = 0; n < stage.reductions.size(); ++n)
      reduction(stage.reductions[n], InstKind::Reduced, n, "reduce");
    for (const Assert& a : stage.asserts) {
      const std::string line = fmt::format("check %{}", a.condition);
      boolean(a.condition, line, "condition");
      use(a.value, line);
    }
    for (const Store& s : stage.stores) store(s);
    if (!stage.inner.empty()) visible_ = outside;
    for (const Reduction& r : stage.reductions) visible_.insert(r.results.begin(), r.results.end());
    variables_.resize(outer_count);
  }
  void store(const Store& s) const {
    const Buffer& b = buffer(s.buffer, "store");
    const std::string line = fmt::format("store {}[{}] = %{}", b.name, s.index.str(), s.value);
    if (!b.written) fail(line, fmt::format("{} is declared as read only", b.name));
    use(s.value, line);
    expression(s.index, line);
    if (type(s.value) != b.dtype)
      fail(line, fmt::format("the value is {}, the buffer {}", name(type(s.value)), name(b.dtype)));
    if (s.mask >= 0) boolean(s.mask, line, "mask");
    if ((s.mode == StoreMode::Min || s.mode == StoreMode::Max) && is_complex(b.dtype))
      fail(line, "complex numbers have no order");
  }
  void reduction(const Reduction& r, InstKind kind, size_t number, std::string_view word) {
    const std::string line = fmt::format("{} {}", word, name(r.op));
    if (static_cast<int>(r.operands.size()) != operand_count(r.op))
      fail(line, fmt::format("expected {} operands, got {}", operand_count(r.op), r.operands.size()));
    if (static_cast<int>(r.results.size()) != result_count(r.op))
      fail(line, fmt::format("expected {} results, got {}", result_count(r.op), r.results.size()));
    for (int32_t id : r.operands) use(id, line);
    if (!is_reducible(r.op, type(r.operands[0])))
      fail(line, fmt::format("not defined for {}", name(type(r.operands[0]))));
    if (r.operands.size() == 2 && type(r.operands[1]) != DType::Int64)
      fail(line,
           fmt::format("the position %{} is {}, expected int64", r.operands[1], name(type(r.operands[1]))));
    const auto dtypes = state_dtypes(r.op, type(r.operands[0]));
    for (size_t n = 0; n < r.results.size(); ++n) {
      if (r.results[n] < 0 || static_cast<size_t>(r.results[n]) >= k_.insts.size())
        fail(line, fmt::format("there is no %{}", r.results[n]));
      const Inst& i = k_.insts[r.results[n]];
      if (i.kind != kind || i.a != static_cast<int32_t>(number) || i.b != static_cast<int32_t>(n) ||
          i.dtype != dtypes[n])
        fail(line, fmt::format("%{} is not its result number {}", r.results[n], n));
    }
  }

  void check(const Stage& stage, int32_t id) {
    if (id < 0 || static_cast<size_t>(id) >= k_.insts.size())
      fail("stage", fmt::format("there is no %{}", id));
    const Inst& i = k_.insts[id];
    std::string line = fmt::format("%{}", id);
    switch (i.kind) {
      case InstKind::Constant:
        return;
      case InstKind::Param:
        if (i.slot < 0 || static_cast<size_t>(i.slot) >= k_.params.size())
          fail(line, fmt::format("there is no parameter {}", i.slot));
        if (k_.params[i.slot] != i.dtype)
          fail(line,
               fmt::format("parameter {} is {}, not {}", i.slot, name(k_.params[i.slot]), name(i.dtype)));
        return;
      case InstKind::Index:
        if (i.dtype != DType::Int64) fail(line, "an index is int64");
        return expression(i.index, line);
      case InstKind::Load: {
        line += fmt::format(" = load {}[{}]", buffer(i.slot, line).name, i.index.str());
        if (buffer(i.slot, line).dtype != i.dtype)
          fail(line,
               fmt::format("the buffer is {}, not {}", name(buffer(i.slot, line).dtype), name(i.dtype)));
        if (i.a >= 0) boolean(i.a, line, "mask");
        if (buffer(i.slot, line).by_value && !i.index.is_const(0))
          fail(line, "a buffer that is given by value is read at index 0");
        return expression(i.index, line);
      }
      case InstKind::Reduced:
        fail(line, "the result of a reduction is no part of a stage's body");
      case InstKind::Scanned:
        if (i.a < 0 || static_cast<size_t>(i.a) >= stage.scans.size())
          fail(line, fmt::format("there is no scan {}", i.a));
        if (i.b == 0) reduction(stage.scans[i.a], InstKind::Scanned, i.a, "scan");
        return;
      case InstKind::Operation:
        return operation(i, line + fmt::format(" = {}", name(i.op)));
    }
  }
  void operation(const Inst& i, const std::string& line) const {
    const int32_t operands[] = {i.a, i.b, i.c};
    const int count = arity(i.op);
    if (count == 0) fail(line, "not an operation");
    for (int n = 0; n < count; ++n) use(operands[n], line);
    const bool is_select = i.op == ScalarOp::Select;
    if (is_select) boolean(i.a, line, "condition");
    const DType d = type(is_select ? i.b : i.a);
    if (!is_defined(i.op, d)) fail(line, fmt::format("not defined for {}", name(d)));
    for (int n = is_select ? 1 : 0; n < count; ++n)
      if (type(operands[n]) != d)
        fail(line, fmt::format("the operands are {} and {}", name(d), name(type(operands[n]))));
    const DType result = result_dtype(i.op, i.dtype, type(i.a), count > 1 ? type(i.b) : d);
    if (i.dtype != result)
      fail(line,
           fmt::format("the result of {} operands is {}, not {}", name(d), name(result), name(i.dtype)));
    if (i.op == ScalarOp::Bitcast && is_complex(i.dtype)) fail(line, "not defined for complex numbers");
    if (i.op == ScalarOp::Bitcast && size_of(d) != size_of(i.dtype))
      fail(line,
           fmt::format("{} has {} bytes and {} {}", name(d), size_of(d), name(i.dtype), size_of(i.dtype)));
  }

  const Kernel& k_;
  std::vector<Expr> variables_;
  std::set<int32_t> visible_;
};

}  // namespace

void verify(const Kernel& k) { Verifier(k).run(); }

}  // namespace fl::loop
