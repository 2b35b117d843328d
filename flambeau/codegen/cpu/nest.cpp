#include "flambeau/codegen/cpu/nest.h"

#include <llvm/IR/Function.h>

#include <bit>

#include "flambeau/base/error.h"
#include "flambeau/codegen/common/accumulators.h"
#include "flambeau/codegen/common/loop_writer.h"
#include "flambeau/loop/order.h"

namespace fl::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using loop::Kernel;
using loop::Stage;
using sym::Range;

// Of values that fill vectors: the size of the widest.
int64_t widest_value(const Kernel& k) {
  int64_t out = 1;
  for (const Stage& stage : k.stages) {
    for (int32_t id : stage.insts)
      if (k.insts[id].kind != loop::InstKind::Index)
        out = std::max(out, size_of(real_dtype(k.insts[id].dtype)));
    for (const loop::Reduction& r : stage.reductions)
      for (int32_t id : r.results) out = std::max(out, size_of(real_dtype(k.insts[id].dtype)));
  }
  return out;
}

bool merges_in_pairs(const Kernel& k) {
  for (const Stage& stage : k.stages)
    for (const loop::Reduction& r : stage.reductions)
      if (loop::merges_by_rescaling(r.op)) return false;
  return true;
}

// What the states of one vector of outer iterations may take of the first cache, cut into partial results.
constexpr int64_t kTreeBytes = 16384;

// Bodies of more operations than this are written once, for whole vectors and the rest alike, where masks are
// cheap: compile time counts too.
constexpr int64_t kLongBody = 32;

// Arguments that come in arrays: pointers to buffers, sizes, and parameters of 16 bytes each.
BodyEmitter::Arguments arguments_of(const Kernel& k, BodyEmitter& body, Value* buffers, Value* sizes,
                                    Value* params) {
  auto& b = body.builder();
  BodyEmitter::Arguments out;
  const auto element = [&](llvm::Type* type, Value* list, size_t n, const std::string& name) {
    return b.CreateLoad(type, b.CreateConstGEP1_64(type, list, n), name);
  };
  for (size_t n = 0; buffers && n < k.buffers.size(); ++n)
    out.buffers.push_back(element(b.getPtrTy(), buffers, n, k.buffers[n].name));
  for (size_t n = 0; n < k.sizes.size(); ++n)
    out.sizes.push_back(element(b.getInt64Ty(), sizes, n, k.sizes[n].name()));
  for (size_t n = 0; params && n < k.params.size(); ++n)
    out.params.push_back(
        body.load_scalar(k.params[n], b.CreateConstGEP1_64(b.getInt8Ty(), params, 16 * n), nullptr));
  return out;
}

class LoopNest : LoopWriter {
 public:
  LoopNest(const Kernel& k, const Machine& machine, llvm::Module& module)
      : LoopWriter(k, module), machine_(machine) {
    auto* pointer = b_.getPtrTy();
    start_function({pointer, pointer, pointer, pointer, b_.getInt64Ty(), b_.getInt64Ty()});
    body_ = std::make_unique<BodyEmitter>(k, function_, b_, machine);
    body_->set_arguments(
        arguments_of(k, *body_, function_->getArg(0), function_->getArg(1), function_->getArg(2)));
    width_ = static_cast<int>(std::min<int64_t>(machine.vector_bytes / widest_value(k), k.lanes));
    const bool outer = k.vector == loop::VectorAxis::Outer || (is_tree() && merges_in_pairs(k));
    outer_lanes_ = outer && width_ > 1 && loop::has_independent_lanes(k);
    for (const Stage& stage : k.stages) cost_ += loop::point_cost(k, stage);
  }

  void run() {
    Value *begin = function_->getArg(4), *end = function_->getArg(5);
    if (outer_lanes_) {
      vector_rows(begin, end);
    } else {
      const Loop row = open_loop(begin, end, 1, "point");
      position_ = row.variable;
      decode(row.variable, k_.outer.size());
      for (const Stage& stage : k_.stages) row_stage(stage);
      close_loop(row);
    }
    b_.CreateRetVoid();
  }

 private:
  bool is_tree() const { return k_.vector == loop::VectorAxis::OuterTree; }

  // Lanes from `base` on that lie before `end`.
  Value* lanes_before(Value* base, Value* end, int64_t offset = 0) {
    auto* element = width_ > 16 ? b_.getInt8Ty() : b_.getInt32Ty();
    Value* left = b_.CreateSub(end, base);
    if (offset) left = b_.CreateSub(left, number(offset));
    left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, number(width_));
    left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, left, number(0));
    std::vector<llvm::Constant*> lanes;
    for (int n = 0; n < width_; ++n) lanes.push_back(llvm::ConstantInt::get(element, n));
    Value* limit = b_.CreateVectorSplat(width_, b_.CreateTrunc(left, element));
    return b_.CreateICmpULT(llvm::ConstantVector::get(lanes), limit);
  }

  // ---- lanes along the last outer loop ----

  // Vectors a step: enough independent work to fill the pipelines, and whole stretches of memory in column
  // reductions; few where the body is long.
  int outer_parts() const {
    if (is_tree()) return tree_parts();
    bool has_inner = false;
    for (const Stage& s : k_.stages) has_inner = has_inner || !s.inner.empty();
    const int64_t budget = has_inner ? 64 : 48;
    const int most = std::max(1, (has_inner ? 512 : 256) / machine_.vector_bytes);
    int parts = 1;
    while (parts < most && 2 * parts * cost_ <= budget && 2 * parts * width_ <= kVectorBlock) parts *= 2;
    return parts;
  }

  // Neighbouring vectors, so that a whole stretch of memory is used when it is there.
  int tree_parts() const {
    int64_t bytes = 0;
    for (const Stage& stage : k_.stages)
      for (const loop::Reduction& r : stage.reductions)
        for (DType d : loop::state_dtypes(r.op, k_.insts[r.operands[0]].dtype))
          bytes += size_of(d) * width_ * k_.lanes;
    int parts = 1;
    while (2 * parts * width_ <= kTreeBlock && 2 * parts * bytes <= kTreeBytes) parts *= 2;
    return parts;
  }

  void vector_rows(Value* begin, Value* end) {
    const Range& axis = k_.outer.back();
    if (k_.outer.size() == 1) {
      row_start_ = number(0);
      vector_row(begin, end);
      return;
    }
    // The rows that [begin, end) touches; the first and the last may be partial.
    Value* size = body_->scalar(axis.size);
    Value* first = b_.CreateUDiv(begin, size);
    Value* last = b_.CreateUDiv(b_.CreateSub(end, number(1)), size);
    const Loop row = open_loop(first, b_.CreateAdd(last, number(1)), 1, "row");
    decode(row.variable, k_.outer.size() - 1);
    row_start_ = b_.CreateMul(row.variable, size);
    Value* from = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(begin, row_start_), number(0));
    Value* to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, row_start_), size);
    vector_row(from, to);
    close_loop(row);
  }

  void vector_row(Value* from, Value* to) {
    const int parts = outer_parts();
    if (parts == 1 && machine_.has_masked_memory && cost_ > kLongBody) return vector_loop(from, to, 1, true);
    const int64_t step = static_cast<int64_t>(parts) * width_;
    Value* whole = b_.CreateAnd(b_.CreateSub(to, from), number(-step));
    Value* middle = b_.CreateAdd(from, whole);
    vector_loop(from, middle, parts, false);
    vector_loop(middle, to, 1, true);
  }

  void vector_loop(Value* from, Value* to, int parts, bool masked) {
    const Loop l = open_loop(from, to, static_cast<int64_t>(parts) * width_, masked ? "masked" : "vectors");
    Value* mask = masked ? lanes_before(l.variable, to) : nullptr;
    bases_.clear();
    for (int p = 0; p < parts; ++p)
      bases_.push_back(p == 0 ? l.variable
                              : b_.CreateAdd(l.variable, number(static_cast<int64_t>(p) * width_)));
    const int axis_level = body_->level();
    const auto begin_part = [&](int p) {
      body_->set_part(p);
      body_->set_axis(k_.outer.back().variable, bases_[p], width_, mask, axis_level);
      position_ = nullptr;
    };
    for (const Stage& stage : k_.stages) {
      if (stage.inner.empty()) {
        body_->set_load_floor(0);
        for (int p = 0; p < parts; ++p) {
          begin_part(p);
          point(stage, nullptr, p);
        }
      } else {
        begin_part(0);
        if (is_tree() && !stage.reductions.empty() && !loop::is_sequential(k_, stage))
          tree_loops(stage, parts, begin_part);
        else
          inner_loops(stage, parts, width_, begin_part);
      }
    }
    body_->set_part(0);
    body_->clear_axis();
    close_loop(l);
  }

  // ---- one point of the outer loops at a time ----

  void row_stage(const Stage& stage) {
    body_->set_part(0);
    body_->clear_axis();
    body_->set_load_floor(0);
    if (stage.inner.empty()) return point(stage, nullptr, 0);
    if (loop::is_sequential(k_, stage) || width_ == 1)
      inner_loops(stage, 1, 1, [](int) {});
    else
      inner_lanes(stage);
  }

  // A stage whose inner loops run in order, for `parts` vectors of outer iterations (or one of them).
  template <class F>
  void inner_loops(const Stage& stage, int parts, int count, F&& begin_part) {
    Accumulators accumulators(*body_, k_, stage,
                              {.parts = parts, .count = count, .counts = Accumulators::Counts::One});
    accumulators.reset();
    body_->set_load_floor(load_floor(stage));
    std::vector<Loop> loops = open_loops(stage.inner, stage.inner.size());
    for (int p = 0; p < parts; ++p) {
      begin_part(p);
      point(stage, &accumulators, p);
    }
    accumulators.end_step();
    close_loops(loops);
    for (int p = 0; p < parts; ++p) {
      body_->set_part(p);
      accumulators.results(p);
    }
    body_->set_part(0);
  }

  // A stage whose points belong to Kernel::lanes partial results in turn, for `parts` vectors of outer
  // iterations.
  template <class F>
  void tree_loops(const Stage& stage, int parts, F&& begin_part) {
    const int lanes = k_.lanes;
    Accumulators accumulators(*body_, k_, stage,
                              {.parts = parts * lanes, .count = width_, .in_memory = true});
    const Loop start = open_loop(number(0), number(parts * lanes), 1, "reset");
    accumulators.select_part(start.variable);
    accumulators.reset_part();
    close_loop(start);
    body_->set_load_floor(load_floor(stage));
    std::vector<Loop> loops = open_loops(stage.inner, stage.inner.size());
    Value* lane = b_.CreateAnd(loops.back().variable, number(lanes - 1));
    for (int p = 0; p < parts; ++p) {
      begin_part(p);
      accumulators.select_part(b_.CreateAdd(lane, number(p * lanes)));
      point(stage, &accumulators, p);
    }
    close_loops(loops);
    const Loop level =
        open_loop(number(0), number(std::countr_zero(static_cast<unsigned>(lanes))), 1, "level");
    Value* half = b_.CreateLShr(number(lanes / 2), level.variable);
    const Loop pair = open_loop(number(0), half, 1, "pair");
    for (int p = 0; p < parts; ++p) {
      Value* first = b_.CreateAdd(pair.variable, number(p * lanes));
      accumulators.merge_pair(first, b_.CreateAdd(first, half));
    }
    close_loop(pair);
    close_loop(level);
    for (int p = 0; p < parts; ++p) {
      body_->set_part(p);
      accumulators.select_part(number(p * lanes));
      accumulators.results(p);
    }
    body_->set_part(0);
  }

  // A stage whose last inner loop is cut into lanes.
  void inner_lanes(const Stage& stage) {
    const int64_t cost = loop::point_cost(k_, stage);
    const int all_parts = k_.lanes / width_;
    const bool reduces = !stage.reductions.empty();
    const bool in_registers = stage.inner.size() == 1 && cost * all_parts <= 96 && all_parts <= 8;
    int parts = 1;
    if (reduces)
      parts = in_registers ? all_parts : 1;
    else
      while (parts < 4 && 2 * parts * cost <= 48) parts *= 2;
    Accumulators accumulators(
        *body_, k_, stage,
        {.parts = all_parts,
         .count = width_,
         .lanes_are_points = true,
         .in_memory = !in_registers,
         .counts = in_registers ? Accumulators::Counts::One : Accumulators::Counts::EachLane});
    accumulators.reset();
    body_->set_load_floor(load_floor(stage));
    std::vector<Loop> loops = open_loops(stage.inner, stage.inner.size() - 1);
    Value* size = body_->scalar(stage.inner.back().size);
    const int64_t step = static_cast<int64_t>(parts) * width_;
    Value* middle = b_.CreateAnd(size, number(-step));
    const bool only_masked = parts == 1 && machine_.has_masked_memory && cost > kLongBody;
    if (!only_masked) lane_loop(stage, accumulators, number(0), middle, parts, false);
    accumulators.spill();
    lane_loop(stage, accumulators, only_masked ? number(0) : middle, size, 1, true);
    close_loops(loops);
    accumulators.merge();
  }

  void lane_loop(const Stage& stage, Accumulators& accumulators, Value* from, Value* to, int parts,
                 bool masked) {
    const Loop l = open_loop(from, to, static_cast<int64_t>(parts) * width_, masked ? "masked" : "lanes");
    const int axis_level = body_->level();
    // With one part a step, the partial results that it belongs to follow from the position.
    if (parts < accumulators.layout().parts)
      accumulators.select_part(
          b_.CreateAnd(b_.CreateUDiv(l.variable, number(width_)), number(accumulators.layout().parts - 1)));
    for (int p = 0; p < parts; ++p) {
      const int64_t offset = static_cast<int64_t>(p) * width_;
      Value* base = p == 0 ? l.variable : b_.CreateAdd(l.variable, number(offset));
      Value* mask = masked ? lanes_before(l.variable, to, offset) : nullptr;
      body_->set_part(p);
      body_->set_axis(stage.inner.back().variable, base, width_, mask, axis_level);
      point(stage, &accumulators, p);
    }
    accumulators.end_step();
    accumulators.select_part(nullptr);
    body_->set_part(0);
    body_->clear_axis();
    close_loop(l);
  }

  // ---- one point of a stage, or one vector of points ----

  void point(const Stage& stage, Accumulators* accumulators, int part) {
    for (int32_t id : stage.insts) {
      const loop::Inst& i = k_.insts[id];
      if (i.kind != loop::InstKind::Scanned)
        body_->inst(id);
      else if (accumulators && i.b == 0)
        accumulators->scan(i.a, part);
    }
    if (accumulators) accumulators->step(part);
    const int first = first_check(stage);
    for (size_t n = 0; n < stage.asserts.size(); ++n)
      check(stage.asserts[n], first + static_cast<int>(n), part);
    for (const loop::Store& s : stage.stores) body_->store(s);
  }

  // Calls record_failure() for the lanes that fail; one test of the whole vector otherwise.
  void check(const loop::Assert& a, int number_of_check, int part) {
    Value* failing = body_->failing_lanes(a);
    const int count = body_->lane_count();
    // Outside of the branch: a repeated scalar is kept for others to use.
    const Lanes v = body_->widened(body_->value(a.value), count);
    BasicBlock *cold = block("failed"), *after = block("checked");
    b_.CreateCondBr(count > 1 ? b_.CreateOrReduce(failing) : failing, cold, after);
    b_.SetInsertPoint(cold);
    const DType d = k_.insts[a.value].dtype;
    auto* flags = LaneOps::with_count(b_.getInt8Ty(), count);
    auto* type = LaneOps::with_count(body_->memory_type(d), count);
    Value *flag_slot = body_->stack_slot(flags, "flags"), *value_slot = body_->stack_slot(type, "values");
    b_.CreateStore(b_.CreateZExt(failing, flags), flag_slot);
    b_.CreateStore(d == DType::Bool ? b_.CreateZExt(v.re, type) : v.re, value_slot);
    Value* position = position_ ? position_ : b_.CreateAdd(row_start_, bases_[part]);
    auto* pointer = b_.getPtrTy();
    auto* signature = llvm::FunctionType::get(
        b_.getVoidTy(),
        {pointer, b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty(), pointer, pointer},
        false);
    llvm::FunctionCallee callee = function_->getParent()->getOrInsertFunction("fl_record_failure", signature);
    b_.CreateCall(callee,
                  {function_->getArg(3), number(number_of_check), position, number(outer_lanes_ ? 1 : 0),
                   number(count | size_of(real_dtype(d)) << 16), flag_slot, value_slot})
        ->setDoesNotThrow();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  const Machine& machine_;
  int width_;
  int64_t cost_ = 0;
  bool outer_lanes_;
  std::vector<Value*> bases_;
  Value *row_start_ = nullptr, *position_ = nullptr;
};

// Sizes that depend on data count as this many.
constexpr int64_t kUnknownSize = 16;

void emit_plan(const Kernel& k, const Machine& machine, llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "plan", module);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", function));
  BodyEmitter body(k, function, b, machine);
  body.set_arguments(arguments_of(k, body, nullptr, function->getArg(0), nullptr));
  Value *points = b.getInt64(1), *cost = b.getInt64(0);
  for (const Range& r : k.outer) points = b.CreateMul(points, body.scalar(r.size));
  for (const Stage& stage : k.stages) {
    Value* inner = b.getInt64(loop::point_cost(k, stage));
    for (const Range& r : stage.inner) {
      bool known = true;
      for (const sym::Expr& s : sym::symbols_of(r.size))
        known = known && std::find(k.sizes.begin(), k.sizes.end(), s) != k.sizes.end();
      inner = b.CreateMul(inner, known ? body.scalar(r.size) : b.getInt64(kUnknownSize));
    }
    cost = b.CreateAdd(cost, inner);
  }
  b.CreateStore(points, function->getArg(1));
  b.CreateStore(cost, b.CreateConstGEP1_64(b.getInt64Ty(), function->getArg(1), 1));
  b.CreateRetVoid();
}

}  // namespace

void emit_loops(const Kernel& k, const Machine& machine, llvm::Module& module) {
  emit_plan(k, machine, module);
  LoopNest(k, machine, module).run();
}

}  // namespace fl::codegen
