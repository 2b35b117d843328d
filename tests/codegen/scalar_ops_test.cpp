// Every operation on every dtype: machine code of three instruction sets against the interpreter.
#include <gtest/gtest.h>

#include "compare.h"
#include "flambeau/base/error.h"
#include "flambeau/loop/builder.h"
#include "flambeau/loop/evaluate.h"

namespace fl::codegen {
namespace {

using loop::Builder;
using loop::VectorAxis;

bool verifies(ScalarOp op, DType dtype, DType result) {
  const std::string operands = arity(op) == 1           ? "%0"
                               : arity(op) == 2         ? "%0, %0"
                               : op == ScalarOp::Select ? "%1, %0, %0"
                                                        : "%0, %0, %0";
  const auto text = fmt::format(
      "kernel k(x: {} in) vector none\nstage\n%0 = load {} x[0]\n%1 = constant b8 1\n%2 = {} {} {}\n",
      info(dtype).short_name, info(dtype).short_name, name(op), info(result).short_name, operands);
  try {
    loop::parse_kernel(text);
    return true;
  } catch (const ValueError&) {
    return false;
  }
}

// One kernel with one output for each of the operations.
struct Body {
  explicit Body(DType dtype) : b("ops"), i(Expr::symbol("i0")), n(Expr::symbol("s0")) {
    for (const char* name : {"a", "b", "c"}) b.add_buffer(name, dtype, false);
    b.set_outer({{i, n}});
    b.begin_stage({});
    for (int k = 0; k < 3; ++k) operands.push_back(b.load(k, i));
  }
  void store(std::string name, Val v) { b.store(b.add_buffer(std::move(name), v.dtype, true), i, v); }
  void compare(DType dtype, VectorAxis axis, int64_t count) {
    const loop::Kernel k = b.finish(axis);
    std::mt19937_64 random(static_cast<unsigned>(dtype) + 1);
    std::vector<Bytes> data;
    for (const loop::Buffer& buffer : k.buffers) data.push_back(sample_data(buffer.dtype, count, random));
    EXPECT_EQ(difference(k, data, {count}), "");
  }
  using Expr = loop::Expr;
  Builder b;
  Expr i, n;
  std::vector<Val> operands;
};

class ScalarOpsOf : public testing::TestWithParam<DType> {};

TEST_P(ScalarOpsOf, MatchTheInterpreter) {
  const DType d = GetParam();
  for (VectorAxis axis : {VectorAxis::Outer, VectorAxis::None}) {
    Body body(d);
    int count = 0;
    for (int o = 0; o <= static_cast<int>(ScalarOp::Select); ++o) {
      const auto op = static_cast<ScalarOp>(o);
      if (op == ScalarOp::Cast || op == ScalarOp::Bitcast || op == ScalarOp::Select) continue;
      const DType result = loop::result_dtype(op, d, d, d);
      if (arity(op) == 0 || !verifies(op, d, result)) continue;
      const auto& x = body.operands;
      body.store("out_" + std::string(name(op)), body.b.emit(op, result, x[0], x[1], x[2]));
      ++count;
    }
    EXPECT_EQ(count > 0, d != DType::Float16 && d != DType::BFloat16);
    if (count) body.compare(d, axis, axis == VectorAxis::Outer ? 3001 : 500);
  }
}

TEST_P(ScalarOpsOf, CastAndSelectAndBitcast) {
  const DType d = GetParam();
  Body body(d);
  for (DType to : kAllDTypes) {
    body.store(fmt::format("cast_{}", name(to)), body.b.cast(body.operands[0], to));
    if (size_of(to) == size_of(d) && !is_complex(to) && !is_complex(d))
      body.store(fmt::format("bits_{}", name(to)), body.b.bitcast(body.operands[1], to));
  }
  const Val condition = body.b.cast(body.operands[2], DType::Bool);
  body.store("select", body.b.select(condition, body.operands[0], body.operands[1]));
  body.compare(d, VectorAxis::Outer, 3001);
}

INSTANTIATE_TEST_SUITE_P(All, ScalarOpsOf, testing::ValuesIn(kAllDTypes),
                         [](const auto& p) { return std::string(name(p.param)); });

}  // namespace
}  // namespace fl::codegen
