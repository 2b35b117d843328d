#include "flambeau/codegen/gpu/grid.h"

#include <llvm/IR/Function.h>

#include <map>
#include <memory>

#include "flambeau/base/error.h"
#include "flambeau/codegen/common/accumulators.h"
#include "flambeau/codegen/common/loop_writer.h"
#include "flambeau/codegen/gpu/device_functions.h"
#include "flambeau/codegen/gpu/gpu_body.h"
#include "flambeau/codegen/gpu/team.h"
#include "flambeau/loop/order.h"

namespace fl::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;
using loop::Kernel;
using loop::Stage;
using Kind = GridPlan::Kind;

// Operations of the points that a thread has under way at once.
constexpr int64_t kStepCost = 192;
constexpr int kMostParts = 8;

class Grid : LoopWriter {
 public:
  Grid(const Kernel& k, const GridPlan& plan, const Machine& machine, llvm::Module& module)
      : LoopWriter(k, module), plan_(plan) {
    start_function(parameter_types(machine));
    mark_kernel();
    body_ = std::make_unique<GpuBody>(k, function_, b_, machine, plan.serial);
    body_->set_arguments(arguments());
    body_->set_alignment([this](int32_t buffer, const sym::Expr& index) {
      return lanes_ > 1 && plan_.is_aligned(buffer, index);
    });
    team(plan.team);
    for (const GridVersion& v : plan.versions) team(v.team);
    team_ = &team(plan.team);
    block_size_ = read_register(b_, GridRegister::BlockSize);
    blocks_ = read_register(b_, GridRegister::Blocks);
    block_number_ = read_register(b_, GridRegister::Block);
    thread_ = read_register(b_, GridRegister::Thread);
  }

  void run() {
    if (plan_.kind == Kind::Points) {
      points();
    } else {
      versions();
    }
    b_.CreateRetVoid();
    for (auto& [size, team] : teams_) team->finish();
  }

 private:
  // ---- the function ----

  std::vector<Type*> parameter_types(const Machine& machine) {
    const LaneOps types(nullptr, b_, machine);
    const auto value_type = [&](DType d) -> Type* {
      Type* t = types.memory_type(d);
      return is_complex(d) ? llvm::ArrayType::get(t, 2) : t;
    };
    std::vector<Type*> out;
    for (const loop::Buffer& b : k_.buffers)
      out.push_back(b.by_value ? value_type(b.dtype) : b_.getPtrTy(kGlobalMemory));
    for (size_t n = 0; n < k_.sizes.size(); ++n) out.push_back(b_.getInt64Ty());
    for (DType d : k_.params) out.push_back(value_type(d));
    out.push_back(b_.getPtrTy(kGlobalMemory));
    out.push_back(b_.getInt64Ty());
    return out;
  }

  void mark_kernel() {
    auto* notes = module_.getOrInsertNamedMetadata("nvvm.annotations");
    const auto note = [&](const char* what, int value) {
      notes->addOperand(llvm::MDNode::get(
          context_, {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(context_, what),
                     llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(value)))}));
    };
    note("kernel", 1);
    note("maxntidx", plan_.block);
    // Otherwise the assembler saves registers and does one load after the other.
    if (plan_.kind == Kind::Columns) note("minctasm", 1);
  }

  Lanes given(DType d, Value* argument) {
    Lanes out;
    if (is_complex(d)) {
      out.re = b_.CreateExtractValue(argument, 0);
      out.im = b_.CreateExtractValue(argument, 1);
    } else {
      out.re = body_->from_memory(d, argument);
    }
    return out;
  }
  BodyEmitter::Arguments arguments() {
    BodyEmitter::Arguments out;
    unsigned at = 0;
    for (const loop::Buffer& b : k_.buffers) {
      Value* argument = function_->getArg(at++);
      argument->setName(b.name);
      out.buffers.push_back(b.by_value ? nullptr : argument);
      out.values.push_back(b.by_value ? given(b.dtype, argument) : Lanes{});
    }
    for (size_t n = 0; n < k_.sizes.size(); ++n) out.sizes.push_back(function_->getArg(at++));
    for (DType d : k_.params) out.params.push_back(given(d, function_->getArg(at++)));
    error_ = function_->getArg(at++);
    id_ = function_->getArg(at);
    return out;
  }

  Value* is_aligned() {
    Value* out = b_.getTrue();
    for (const AlignmentTest& t : plan_.tests) {
      Value* bytes = b_.CreateMul(body_->scalar(t.offset), number(t.element));
      if (t.buffer >= 0) {
        const unsigned argument = static_cast<unsigned>(t.buffer);
        bytes = b_.CreateAdd(bytes, b_.CreatePtrToInt(function_->getArg(argument), b_.getInt64Ty()));
      }
      out = b_.CreateAnd(out, b_.CreateICmpEQ(b_.CreateAnd(bytes, number(t.multiple - 1)), number(0)));
    }
    return out;
  }

  // ---- which items a thread takes ----

  // The values at the start of the kernel can be used in all versions.
  void versions() {
    Value* aligned = plan_.lanes > 1 ? is_aligned() : nullptr;
    if (aligned && plan_.kind == Kind::Columns) {
      Value* groups = b_.CreateMul(outer_count(k_.outer.size() - 1), column_groups(plan_.lanes));
      aligned = b_.CreateAnd(aligned, b_.CreateICmpSGE(groups, number(kEnoughBlocks)));
    }
    Value* left = b_.getTrue();
    for (const GridVersion& v : plan_.versions) {
      Value* takes = left;
      if (v.lanes > 1) takes = b_.CreateAnd(takes, aligned);
      if (v.held) {
        Value* size = body_->scalar(plan_.row);
        Value* fits = b_.CreateICmpSLE(size, number(v.longest_row()));
        takes = b_.CreateAnd(takes, b_.CreateAnd(fits, b_.CreateICmpSGT(size, number(0))));
      }
      left = b_.CreateAnd(left, b_.CreateNot(takes));
      version(takes, v);
    }
  }
  void version(Value* condition, const GridVersion& v) {
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(condition); constant && constant->isZeroValue())
      return;
    BasicBlock* after = open_if(condition, v.held ? "held" : v.lanes > 1 ? "aligned" : "unaligned");
    team_ = &team(v.team);
    lanes_ = v.lanes;
    held_ = v.held;
    items();
    held_ = 0;
    close_if(after);
  }
  Team& team(int size) {
    std::unique_ptr<Team>& out = teams_[size];
    if (!out) out = std::make_unique<Team>(*body_, plan_, size, module_);
    return *out;
  }
  // Blocks side by side along the last outer loop.
  Value* column_groups(int lanes) {
    Value* width = b_.CreateMul(team_->across(), number(lanes));
    Value* size = body_->scalar(k_.outer.back().size);
    return b_.CreateUDiv(b_.CreateAdd(size, b_.CreateSub(width, number(1))), width);
  }

  Value* outer_count(size_t loops) {
    Value* out = number(1);
    for (size_t n = 0; n < loops; ++n) out = b_.CreateMul(out, body_->scalar(k_.outer[n].size));
    return out;
  }

  // Vectors where memory is aligned, then single points: those that are left over, or all.
  void points() {
    Value* total = outer_count(k_.outer.size());
    Value* first = b_.CreateAdd(b_.CreateMul(block_number_, block_size_), thread_);
    Value* step = b_.CreateMul(blocks_, block_size_);
    Value* done = number(0);
    if (plan_.lanes > 1) {
      Value* aligned = is_aligned();
      Value* vectors = b_.CreateUDiv(total, number(plan_.lanes));
      done = b_.CreateSelect(aligned, b_.CreateMul(vectors, number(plan_.lanes)), number(0));
      vectors = b_.CreateSelect(aligned, vectors, number(0));
      lanes_ = plan_.lanes;
      const Loop l = open_loop(first, vectors, step, "vectors");
      Value* position = b_.CreateMul(l.variable, number(lanes_));
      if (k_.outer.size() > 1) {
        Value* size = body_->scalar(k_.outer.back().size);
        decode(b_.CreateUDiv(position, size), k_.outer.size() - 1);
        position = b_.CreateURem(position, size);
      }
      axis_base_ = position;
      axis_level_ = body_->level();
      stages();
      close_loop(l);
    }
    lanes_ = 1;
    axis_base_ = nullptr;
    // Where threads were for vectors, each has several points.
    const bool carries = plan_.lanes > 1 && k_.outer.size() > 1;
    if (carries)
      for (const sym::Range& r : k_.outer) body_->scalar(r.size);
    const Loop l = open_loop(b_.CreateAdd(done, first), total, step, "points");
    std::vector<llvm::PHINode*> variables;
    std::vector<Value*> steps;
    if (carries)
      start_carried(l, step, variables, steps);
    else
      decode(l.variable, k_.outer.size());
    stages();
    if (carries) carry(variables, steps);
    close_loop(l);
  }

  /// The outer variables go along with the loop by additions in place of divisions.
  void start_carried(const Loop& l, Value* step, std::vector<llvm::PHINode*>& variables,
                     std::vector<Value*>& steps) {
    BasicBlock* before = l.variable->getIncomingBlock(0);
    const size_t count = k_.outer.size();
    std::vector<Value*> starts(count);
    steps.resize(count);
    b_.SetInsertPoint(before->getTerminator());
    Value* position = l.variable->getIncomingValue(0);
    for (size_t n = count; n-- > 0;) {
      starts[n] = position;
      steps[n] = step;
      if (n == 0) break;
      Value* size = body_->scalar(k_.outer[n].size);
      starts[n] = b_.CreateURem(position, size);
      steps[n] = b_.CreateURem(step, size);
      position = b_.CreateUDiv(position, size);
      step = b_.CreateUDiv(step, size);
    }
    b_.SetInsertPoint(l.header);
    for (size_t n = 0; n < count; ++n) {
      variables.push_back(b_.CreatePHI(b_.getInt64Ty(), 2));
      variables[n]->addIncoming(starts[n], before);
      body_->set_variable(k_.outer[n].variable, variables[n]);
    }
  }
  void carry(const std::vector<llvm::PHINode*>& variables, const std::vector<Value*>& steps) {
    Value* over = nullptr;
    BasicBlock* end = b_.GetInsertBlock();
    for (size_t n = variables.size(); n-- > 0;) {
      Value* next = b_.CreateAdd(variables[n], steps[n]);
      if (over) next = b_.CreateAdd(next, b_.CreateZExt(over, b_.getInt64Ty()));
      if (n > 0) {
        Value* size = body_->scalar(k_.outer[n].size);
        over = b_.CreateICmpUGE(next, size);
        next = b_.CreateSelect(over, b_.CreateSub(next, size), next);
      }
      variables[n]->addIncoming(next, end);
    }
  }

  void items() {
    if (plan_.kind == Kind::Columns) return columns();
    axis_base_ = nullptr;
    const int64_t teams = plan_.block / team_->size();
    Value* first = b_.CreateAdd(b_.CreateMul(block_number_, number(teams)), team_->number());
    const Loop l =
        open_loop(first, outer_count(k_.outer.size()), b_.CreateMul(blocks_, number(teams)), "row");
    decode(l.variable, k_.outer.size());
    stages();
    close_loop(l);
  }

  // All threads of a block stay together, for barriers: those past the end repeat the last column.
  void columns() {
    const size_t before = k_.outer.size() - 1;
    Value* size = body_->scalar(k_.outer.back().size);
    Value* width = b_.CreateMul(team_->across(), number(lanes_));
    Value* groups = column_groups(lanes_);
    const Loop l = open_loop(block_number_, b_.CreateMul(outer_count(before), groups), blocks_, "group");
    decode(b_.CreateUDiv(l.variable, groups), before);
    Value* column = b_.CreateMul(b_.CreateURem(l.variable, groups), width);
    column = b_.CreateAdd(column, b_.CreateMul(team_->number(), number(lanes_)));
    inside_ = b_.CreateICmpSLT(column, size);
    axis_base_ = b_.CreateSelect(inside_, column, b_.CreateSub(size, number(lanes_)));
    axis_level_ = body_->level();
    stages();
    inside_ = nullptr;
    close_loop(l);
  }

  // ---- the stages of one item ----

  void stages() {
    body_->clear_values();
    for (const Stage& stage : k_.stages) {
      if (has_to_wait(stage)) team_->barrier();
      begin_part(0, nullptr, 0);
      body_->set_load_floor(0);
      if (stage.inner.empty())
        point_of_item(stage);
      else if (held_)
        held_row(stage);
      else if (plan_.kind != Kind::Points && is_cut(k_, stage))
        cut_loops(stage);
      else
        inner_loops(stage);
      body_->set_part(0);
      body_->clear_axis();
    }
  }

  // What earlier stages wrote has to be there, and what they have still to read is not overwritten: threads
  // that have put their states together are done with reading.
  bool has_to_wait(const Stage& stage) const {
    const Stage* before = nullptr;
    bool stored = false;
    for (const Stage& s : k_.stages) {
      if (&s == &stage) break;
      before = &s;
      stored = stored || !s.stores.empty();
    }
    return before && (stored || (!stage.stores.empty() && before->reductions.empty()));
  }

  // Lanes lie along an outer loop, or along the inner one of which the base is given.
  void begin_part(int part, Value* inner_base, int level) {
    body_->set_part(part);
    body_->clear_axis();
    if (axis_base_)
      body_->set_axis(k_.outer.back().variable, axis_base_, lanes_, nullptr, axis_level_);
    else if (inner_base)
      body_->set_axis(*inner_axis_, inner_base, lanes_, nullptr, level);
  }

  Value* both(Value* a, Value* b) { return a && b ? b_.CreateAnd(a, b) : a ? a : b; }

  // Every thread of the team knows the values; one of them stores.
  void point_of_item(const Stage& stage) {
    insts(stage, nullptr, 0);
    if (stage.asserts.empty() && stage.stores.empty()) return;
    effects(stage, both(team_->is_first(), inside_));
  }

  // The team's first thread runs the loops in order.
  void inner_loops(const Stage& stage) {
    const int count = axis_base_ ? lanes_ : 1;
    Accumulators accumulators(
        *body_, k_, stage,
        {.parts = 1, .count = count, .counts = Accumulators::Counts::One, .exchange = exchange()});
    accumulators.reset();
    BasicBlock* after = team_->is_first() ? open_if(team_->is_first(), "first") : nullptr;
    body_->set_load_floor(load_floor(stage));
    std::vector<Loop> loops = open_loops(stage.inner, stage.inner.size());
    insts(stage, &accumulators, 0);
    accumulators.step(0);
    effects(stage, inside_);
    accumulators.end_step();
    close_loops(loops);
    if (after) close_if(after);
    accumulators.results(0);
  }

  // The threads of the team take the points of the last inner loop in turn, each its own partial results: as
  // many at once as it has, or more, while whole steps are left; then one by one.
  void cut_loops(const Stage& stage) {
    const bool rows = plan_.kind == Kind::Rows;
    const int lanes = rows ? lanes_ : 1;  // points of a thread side by side
    const int partial = stage.reductions.empty() ? 1 : k_.lanes / (team_->size() * lanes);
    const int64_t cost = loop::point_cost(k_, stage) * lanes_;
    int parts = partial;
    while (2 * parts <= kMostParts && 2 * parts * cost <= kStepCost) parts *= 2;
    Accumulators accumulators(*body_, k_, stage,
                              {.parts = partial,
                               .count = lanes_,
                               .lanes_are_points = rows,
                               .counts = Accumulators::Counts::EachVector,
                               .exchange = exchange()});
    accumulators.reset();
    body_->set_load_floor(load_floor(stage));
    std::vector<Loop> loops = open_loops(stage.inner, stage.inner.size() - 1);
    Value* size = body_->scalar(stage.inner.back().size);
    inner_axis_ = &stage.inner.back().variable;
    const int64_t one = static_cast<int64_t>(team_->size()) * lanes;
    Value* middle = number(0);
    if (parts > 1 && parts * cost <= 2 * kStepCost) {
      middle = b_.CreateAnd(size, number(-one * parts));
      const Loop whole = open_loop(number(0), middle, one * parts, "whole");
      for (int p = 0; p < parts; ++p) {
        begin_inner(p, base_of(whole.variable, p, lanes), rows);
        insts(stage, nullptr, p);
        accumulators.step(p % partial);
      }
      for (int p = 0; p < parts; ++p) {
        body_->set_part(p);
        begin_inner(p, bases_[p], rows);
        effects(stage, inside_);
      }
      close_loop(whole);
    }
    const Loop rest = open_loop(middle, size, one * partial, "rest");
    for (int p = 0; p < partial; ++p) {
      Value* base = base_of(rest.variable, p, lanes);
      BasicBlock* after = open_if(b_.CreateICmpSLT(base, size), "point");
      begin_inner(0, base, rows);
      insts(stage, nullptr, 0);
      accumulators.step(p);
      effects(stage, inside_);
      close_if(after);
    }
    close_loop(rest);
    close_loops(loops);
    body_->set_part(0);
    body_->clear_part_variable();
    accumulators.merge();
  }

  // A row that is no longer than the vectors that the team's threads hold, without a loop. A vector past the
  // end is the row's first once more, and counts for nothing.
  void held_row(const Stage& stage) {
    const int partial = stage.reductions.empty() ? 1 : k_.lanes / (team_->size() * lanes_);
    Accumulators accumulators(*body_, k_, stage,
                              {.parts = std::min(partial, held_),
                               .all_parts = partial,
                               .count = lanes_,
                               .lanes_are_points = true,
                               .counts = Accumulators::Counts::EachVector,
                               .exchange = exchange()});
    accumulators.reset();
    body_->set_load_floor(body_->level());
    inner_axis_ = &stage.inner[0].variable;
    Value* size = body_->scalar(stage.inner[0].size);
    const int64_t one = static_cast<int64_t>(team_->size()) * lanes_;
    std::vector<Value*> exists;  // null: yes
    for (int p = 0; p < held_; ++p) {
      Value* base = base_of(number(0), p, lanes_);
      const bool whole = plan_.row.is_const() && plan_.row.value() >= (p + 1) * one;
      exists.push_back(whole ? nullptr : b_.CreateICmpSLT(base, size));
      if (!whole) bases_[p] = b_.CreateSelect(exists[p], base, number(0));
      begin_inner(p, bases_[p], true);
      insts(stage, nullptr, p);
    }
    for (int p = 0; p < held_; ++p) {
      begin_inner(p, bases_[p], true);
      accumulators.step(p % partial, exists[p]);
    }
    for (int p = 0; p < held_; ++p) {
      begin_inner(p, bases_[p], true);
      effects(stage, exists[p]);
    }
    begin_part(0, nullptr, 0);
    accumulators.merge();
  }

  // Where the thread's points of one part of a step start.
  Value* base_of(Value* step, int part, int lanes) {
    const int64_t offset = static_cast<int64_t>(part) * team_->size() * lanes;
    Value* base = b_.CreateAdd(step, b_.CreateMul(team_->rank(), number(lanes)));
    base = offset ? b_.CreateAdd(base, number(offset)) : base;
    bases_.resize(std::max(bases_.size(), static_cast<size_t>(part) + 1));
    bases_[part] = base;
    return base;
  }
  void begin_inner(int part, Value* base, bool rows) {
    begin_part(part, rows ? base : nullptr, body_->level());
    if (!rows) body_->set_part_variable(*inner_axis_, base);
  }

  // ---- one point, or one vector of points ----

  void insts(const Stage& stage, Accumulators* accumulators, int part) {
    for (int32_t id : stage.insts) {
      const loop::Inst& i = k_.insts[id];
      if (held_ && !stage.inner.empty() && plan_.known_before[id] >= 0)
        body_->set_value(id, body_->value(plan_.known_before[id]));
      else if (i.kind != loop::InstKind::Scanned)
        body_->inst(id);
      else if (accumulators && i.b == 0)
        accumulators->scan(i.a, part);
    }
  }

  void effects(const Stage& stage, Value* condition) {
    if (stage.asserts.empty() && stage.stores.empty()) return;
    BasicBlock* after = condition ? open_if(condition, "effects") : nullptr;
    const int first = first_check(stage);
    for (size_t n = 0; n < stage.asserts.size(); ++n) check(stage.asserts[n], first + static_cast<int>(n));
    for (const loop::Store& s : stage.stores) body_->store(s);
    if (after) close_if(after);
  }

  void check(const loop::Assert& a, int number_of_check) {
    Value* failing = body_->failing_lanes(a);
    const int count = body_->lane_count();
    const Lanes v = body_->widened(body_->value(a.value), count);
    BasicBlock* after = open_if(count > 1 ? body_->any_lane(failing) : failing, "failed");
    llvm::Function* record = record_failure(module_);
    for (int n = 0; n < count; ++n) {
      const auto lane = static_cast<uint64_t>(n);
      const auto element = [&](Value* x) { return count > 1 ? b_.CreateExtractElement(x, lane) : x; };
      BasicBlock* next = count > 1 ? open_if(element(failing), "lane") : nullptr;
      const DType d = k_.insts[a.value].dtype;
      Value* low = bits(d, element(v.re));
      Value* high = v.im ? bits(d, element(v.im)) : number(0);
      if (d == DType::Complex64) {
        low = b_.CreateOr(low, b_.CreateShl(high, 32));
        high = number(0);
      }
      b_.CreateCall(record, {error_, id_, b_.getInt32(static_cast<uint32_t>(number_of_check)), low, high});
      if (next) close_if(next);
    }
    close_if(after);
  }
  // As in memory, in the low bytes of an int64.
  Value* bits(DType d, Value* v) {
    v = body_->to_memory(d, v);
    v = b_.CreateBitCast(v, b_.getIntNTy(v->getType()->getPrimitiveSizeInBits()));
    return b_.CreateZExt(v, b_.getInt64Ty());
  }

  Exchange* exchange() { return team_->size() > 1 ? team_ : nullptr; }

  GridPlan plan_;
  std::map<int, std::unique_ptr<Team>> teams_;  // by size
  Team* team_ = nullptr;                        // of the version being written
  Value *block_size_, *blocks_, *block_number_, *thread_, *error_ = nullptr, *id_ = nullptr;
  int held_ = 0;                // vectors of a row in registers, in the version being written
  int lanes_ = 1;               // of the version being written
  Value* axis_base_ = nullptr;  // of lanes along the last outer loop
  int axis_level_ = 0;
  Value* inside_ = nullptr;  // whether the thread's columns exist; null: yes
  const sym::Expr* inner_axis_ = nullptr;
  std::vector<Value*> bases_;
};

}  // namespace

void emit_grid(const Kernel& k, const GridPlan& plan, const Machine& machine, llvm::Module& module) {
  Grid(k, plan, machine, module).run();
}

}  // namespace fl::codegen
