#include "flambeau/loop/interpret.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "flambeau/base/error.h"
#include "flambeau/loop/constant.h"
#include "flambeau/loop/evaluate.h"
#include "flambeau/loop/expansion.h"
#include "flambeau/loop/order.h"
#include "flambeau/loop/reduce.h"

namespace fl::loop {
namespace {

struct Step {
  enum class Kind : uint8_t { Operation, Copy, Load, Index } kind = Kind::Operation;
  ScalarOp op = ScalarOp::Constant;
  DType result = DType::Float32, operand = DType::Float32;
  int32_t a = 0, b = 0, c = 0, out = 0;
  const Inst* inst = nullptr;  // of Load and Index
};
using Code = std::vector<Step>;

// Records bodies as steps over numbered slots; composite operations are expanded here, once.
class Recorder : public ScalarOps {
 public:
  std::vector<ScalarBits> slots;
  Code* code = nullptr;

  Val fresh(DType d) {
    slots.emplace_back();
    return {static_cast<int32_t>(slots.size()) - 1, d};
  }
  Val emit(ScalarOp op, DType dtype, Val a, Val b, Val c) override {
    if (auto v = expand_operation(*this, op, a, b)) return *v;
    const Val out = fresh(result_dtype(op, dtype, a.dtype, b.dtype));
    const DType operand = op == ScalarOp::Select ? b.dtype : a.dtype;
    code->push_back({Step::Kind::Operation, op, out.dtype, operand, std::max(a.id, 0), std::max(b.id, 0),
                     std::max(c.id, 0), out.id});
    return out;
  }
  Val constant(DType dtype, Literal value) override {
    const Val out = fresh(dtype);
    slots[out.id] = ScalarBits::of(dtype, value);
    return out;
  }
  Val index(const Expr&) override { FL_RAISE(InternalError, "an expansion asks for an index"); }
  void copy(const State& from, const State& to) {
    for (size_t n = 0; n < from.size(); ++n) {
      Step s;
      s.kind = Step::Kind::Copy;
      s.a = from[n].id;
      s.out = to[n].id;
      code->push_back(s);
    }
  }
};

struct ReductionCode {
  State state, other, identity;       // slots; `other` is the right side of merges
  Code step, merge, rescale, result;  // where it rescales, merge is for two maxima, and then for two sums
  Code add;
  bool rescales = false;
};

struct StageCode {
  const Stage* stage;
  Code body;
  std::vector<ReductionCode> reductions, scans;
  bool sequential;
};

class Interpreter {
 public:
  Interpreter(const Kernel& k, std::span<void* const> buffers, std::span<const int64_t> sizes,
              std::span<const ScalarBits> params)
      : k_(k), buffers_(buffers), sizes_(sizes), params_(params) {
    FL_CHECK(buffers.size() == k.buffers.size(), ValueError, "kernel {} takes {} buffers, got {}", k.name,
             k.buffers.size(), buffers.size());
    FL_CHECK(sizes.size() == k.sizes.size(), ValueError, "kernel {} takes {} sizes, got {}", k.name,
             k.sizes.size(), sizes.size());
    FL_CHECK(params.size() == k.params.size(), ValueError, "kernel {} takes {} parameters, got {}", k.name,
             k.params.size(), params.size());
    slot_of_.assign(k.insts.size(), Val{});
    for (const Stage& s : k.stages) prepare(s);
  }

  void run() {
    loop(k_.outer, 0, [&] {
      for (StageCode& s : stages_) run(s);
    });
    if (failure_) throw OutOfBoundsError(*failure_);
  }

 private:
  void prepare(const Stage& stage) {
    StageCode s;
    s.stage = &stage;
    s.sequential = is_sequential(k_, stage);
    recorder_.code = &s.body;
    for (const Reduction& r : stage.scans) s.scans.push_back(prepare(r, s.body));
    for (int32_t id : stage.insts) record(stage, s, id);
    for (const Reduction& r : stage.reductions) {
      s.reductions.push_back(prepare(r, s.body));
      ReductionCode& code = s.reductions.back();
      record_step(r, code);
      record_merge(r, code);
      record_result(r, code);
    }
    stages_.push_back(std::move(s));
  }
  ReductionCode prepare(const Reduction& r, Code& constants) {
    ReductionCode out;
    recorder_.code = &constants;
    const DType d = k_.insts[r.operands[0]].dtype;
    out.identity = reduce_identity(recorder_, r.op, d);
    for (DType t : state_dtypes(r.op, d)) {
      out.state.push_back(recorder_.fresh(t));
      out.other.push_back(recorder_.fresh(t));
    }
    for (size_t n = 0; n < r.results.size(); ++n)
      slot_of_[r.results[n]] = recorder_.fresh(k_.insts[r.results[n]].dtype);
    return out;
  }
  void record_step(const Reduction& r, ReductionCode& code) {
    recorder_.code = &code.step;
    std::vector<Val> operands;
    for (int32_t id : r.operands) operands.push_back(slot_of_[id]);
    recorder_.copy(reduce_step(recorder_, r.op, code.state, operands), code.state);
  }
  void record_merge(const Reduction& r, ReductionCode& code) {
    recorder_.code = &code.merge;
    code.rescales = merges_by_rescaling(r.op);
    if (!code.rescales)
      return recorder_.copy(reduce_merge(recorder_, r.op, code.state, code.other), code.state);
    recorder_.copy({recorder_.maximum(code.state[0], code.other[0])}, code.state);
    recorder_.code = &code.rescale;
    recorder_.copy({reduce_rescale(recorder_, code.state, code.other[0])}, {code.state[1]});
    recorder_.code = &code.add;
    recorder_.copy({recorder_.add(code.state[1], code.other[1])}, {code.state[1]});
  }
  void record_result(const Reduction& r, ReductionCode& code) {
    recorder_.code = &code.result;
    State results;
    for (int32_t id : r.results) results.push_back(slot_of_[id]);
    recorder_.copy(reduce_result(recorder_, r.op, code.state), results);
  }
  void record(const Stage& stage, StageCode& s, int32_t id) {
    const Inst& i = k_.insts[id];
    recorder_.code = &s.body;
    switch (i.kind) {
      case InstKind::Operation: {
        const auto operand = [&](int32_t n) { return n >= 0 ? slot_of_[n] : Val{}; };
        slot_of_[id] = recorder_.emit(i.op, i.dtype, operand(i.a), operand(i.b), operand(i.c));
        return;
      }
      case InstKind::Constant:
        slot_of_[id] = recorder_.fresh(i.dtype);
        recorder_.slots[slot_of_[id].id] = constant_bits(i);
        return;
      case InstKind::Param:
        slot_of_[id] = recorder_.fresh(i.dtype);
        recorder_.slots[slot_of_[id].id] = params_[i.slot];
        return;
      case InstKind::Scanned:
        if (i.b == 0) {
          ReductionCode& code = s.scans[i.a];
          record_step(stage.scans[i.a], code);
          record_result(stage.scans[i.a], code);
          s.body.insert(s.body.end(), code.step.begin(), code.step.end());
          s.body.insert(s.body.end(), code.result.begin(), code.result.end());
        }
        return;
      default: {
        Step step;
        step.kind = i.kind == InstKind::Load ? Step::Kind::Load : Step::Kind::Index;
        step.inst = &i;
        step.a = i.kind == InstKind::Load && i.a >= 0 ? slot_of_[i.a].id : -1;
        slot_of_[id] = recorder_.fresh(i.dtype);
        step.out = slot_of_[id].id;
        s.body.push_back(step);
      }
    }
  }

  int64_t value(const Expr& e) {
    return sym::evaluate(e, [&](const Expr& s) {
      if (const int32_t id = value_of(s); id >= 0) return recorder_.slots[slot_of_[id].id].get<int64_t>();
      for (size_t n = variables_.size(); n-- > 0;)
        if (variables_[n].first == s) return variables_[n].second;
      for (size_t n = 0; n < sizes_.size(); ++n)
        if (k_.sizes[n] == s) return sizes_[n];
      FL_RAISE(ValueError, "kernel {}: no value for {}", k_.name, s.str());
    });
  }
  template <class F>
  void loop(const std::vector<Range>& ranges, size_t depth, F&& body) {
    if (depth == ranges.size()) return body();
    const int64_t n = value(ranges[depth].size);
    variables_.emplace_back(ranges[depth].variable, 0);
    const size_t at = variables_.size() - 1;
    for (int64_t v = 0; v < n; ++v) {
      variables_[at].second = v;
      loop(ranges, depth + 1, body);
    }
    variables_.pop_back();
  }
  void* element(int32_t buffer, const Expr& index) {
    return static_cast<char*>(buffers_[buffer]) + value(index) * size_of(k_.buffers[buffer].dtype);
  }
  void execute(const Code& code) {
    auto& slots = recorder_.slots;
    for (const Step& s : code) switch (s.kind) {
        case Step::Kind::Operation:
          slots[s.out] = evaluate(s.op, s.result, s.operand, slots[s.a], slots[s.b], slots[s.c]);
          break;
        case Step::Kind::Copy:
          slots[s.out] = slots[s.a];
          break;
        case Step::Kind::Index:
          slots[s.out] = ScalarBits::of(value(s.inst->index));
          break;
        case Step::Kind::Load:
          slots[s.out] = {};
          if (s.a < 0 || slots[s.a].get<bool>())
            std::memcpy(slots[s.out].bytes, element(s.inst->slot, s.inst->index), size_of(s.inst->dtype));
          if (s.inst->dtype == DType::Bool) slots[s.out] = ScalarBits::of(slots[s.out].bytes[0] != 0);
      }
  }

  void assign(const State& to, const State& from) {
    for (size_t n = 0; n < to.size(); ++n) recorder_.slots[to[n].id] = recorder_.slots[from[n].id];
  }
  void run(StageCode& s) {
    const Stage& stage = *s.stage;
    auto& slots = recorder_.slots;
    const int lanes = s.sequential ? 1 : k_.lanes;
    // partial[reduction][lane][part of the state]
    std::vector<std::vector<std::vector<ScalarBits>>> partial;
    for (ReductionCode& r : s.reductions) {
      std::vector<ScalarBits> identity;
      for (Val v : r.identity) identity.push_back(slots[v.id]);
      partial.emplace_back(lanes, identity);
    }
    for (ReductionCode& r : s.scans) assign(r.state, r.identity);
    loop(stage.inner, 0, [&] {
      execute(s.body);
      const size_t lane = lanes == 1 ? 0 : variables_.back().second % lanes;
      for (size_t n = 0; n < s.reductions.size(); ++n) {
        load_state(s.reductions[n].state, partial[n][lane]);
        execute(s.reductions[n].step);
        store_state(s.reductions[n].state, partial[n][lane]);
      }
      for (const Assert& a : stage.asserts) check(a);
      for (const Store& store : stage.stores) run(store);
    });
    for (size_t n = 0; n < s.reductions.size(); ++n) finish(s.reductions[n], partial[n]);
  }
  void load_state(const State& to, const std::vector<ScalarBits>& from) {
    for (size_t n = 0; n < to.size(); ++n) recorder_.slots[to[n].id] = from[n];
  }
  void store_state(const State& from, std::vector<ScalarBits>& to) {
    for (size_t n = 0; n < from.size(); ++n) to[n] = recorder_.slots[from[n].id];
  }
  using Partial = std::vector<std::vector<ScalarBits>>;
  void merge_tree(ReductionCode& r, const Code& merge, Partial& lanes) {
    for (size_t half = lanes.size() / 2; half > 0; half /= 2)
      for (size_t l = 0; l < half; ++l) {
        load_state(r.state, lanes[l]);
        load_state(r.other, lanes[l + half]);
        execute(merge);
        store_state(r.state, lanes[l]);
      }
  }
  void finish(ReductionCode& r, Partial& lanes) {
    if (r.rescales && lanes.size() > 1) {
      Partial maxima = lanes;
      merge_tree(r, r.merge, maxima);
      for (auto& lane : lanes) {
        load_state(r.state, lane);
        load_state(r.other, maxima[0]);
        execute(r.rescale);
        store_state(r.state, lane);
      }
      merge_tree(r, r.add, lanes);
      lanes[0][0] = maxima[0][0];
    } else {
      merge_tree(r, r.merge, lanes);
    }
    load_state(r.state, lanes[0]);
    execute(r.result);
  }
  void check(const Assert& a) {
    if (failure_ || recorder_.slots[slot_of_[a.condition].id].get<bool>()) return;
    failure_ = failure_message(a.message, k_.insts[a.value].dtype, recorder_.slots[slot_of_[a.value].id],
                               k_.sizes, sizes_);
  }
  void run(const Store& s) {
    if (s.mask >= 0 && !recorder_.slots[slot_of_[s.mask].id].get<bool>()) return;
    const DType d = k_.buffers[s.buffer].dtype;
    const ScalarBits& v = recorder_.slots[slot_of_[s.value].id];
    void* at = element(s.buffer, s.index);
    if (s.mode == StoreMode::Set) {
      std::memcpy(at, v.bytes, size_of(d));
      return;
    }
    // Half types combine in float32.
    const DType wide = compute_dtype(d);
    ScalarBits old;
    std::memcpy(old.bytes, at, size_of(d));
    const auto widen = [&](const ScalarBits& x) { return evaluate(ScalarOp::Cast, wide, d, x); };
    constexpr ScalarOp kOps[] = {ScalarOp::Add, ScalarOp::Add, ScalarOp::Mul, ScalarOp::Minimum,
                                 ScalarOp::Maximum};
    const ScalarBits sum = evaluate(kOps[static_cast<int>(s.mode)], wide, wide, widen(old), widen(v));
    std::memcpy(at, evaluate(ScalarOp::Cast, d, wide, sum).bytes, size_of(d));
  }

  const Kernel& k_;
  std::span<void* const> buffers_;
  std::span<const int64_t> sizes_;
  std::span<const ScalarBits> params_;
  Recorder recorder_;
  std::vector<Val> slot_of_;
  std::vector<StageCode> stages_;
  std::vector<std::pair<Expr, int64_t>> variables_;
  std::optional<std::string> failure_;
};

}  // namespace

void interpret(const Kernel& k, std::span<void* const> buffers, std::span<const int64_t> sizes,
               std::span<const ScalarBits> params) {
  Interpreter(k, buffers, sizes, params).run();
}

namespace {
// "{s0*4}" as a number.
std::string size_text(std::string_view expression, std::span<const Expr> symbols,
                      std::span<const int64_t> sizes) {
  try {
    return fmt::format("{}", sym::evaluate(sym::parse(expression), [&](const Expr& s) {
                         for (size_t n = 0; n < sizes.size(); ++n)
                           if (symbols[n].name() == s.name()) return sizes[n];
                         FL_RAISE(ValueError, "no value for {}", s.name());
                       }));
  } catch (const Error&) {
    return "unknown";  // a kernel of a GPU is over, or has no other use for the size
  }
}
}  // namespace

std::string failure_message(std::string_view message, DType dtype, const ScalarBits& value,
                            std::span<const Expr> symbols, std::span<const int64_t> sizes) {
  std::string text;
  if (is_integral(dtype, true)) {
    text = fmt::format("{}", evaluate(ScalarOp::Cast, DType::Int64, dtype, value).get<int64_t>());
  } else {
    // The sign of a nan depends on how it came about.
    const double number = evaluate(ScalarOp::Cast, DType::Float64, dtype, value).get<double>();
    text = std::isnan(number) ? "nan" : fmt::format("{}", number);
  }
  std::string out;
  for (size_t open; (open = message.find('{')) != std::string::npos;) {
    const size_t close = message.find('}', open);
    if (close == std::string::npos) break;
    out += message.substr(0, open);
    const std::string_view inside = message.substr(open + 1, close - open - 1);
    out += inside.empty() ? text : size_text(inside, symbols, sizes);
    message.remove_prefix(close + 1);
  }
  return out.append(message);
}

}  // namespace fl::loop
