// Every pass from text to text.
#include <gtest/gtest.h>

#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/eliminate_common_subexpressions.h"
#include "flambeau/graph/pass/eliminate_dead_code.h"
#include "flambeau/graph/pass/fold_identities.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/graph/pipeline.h"
#include "flambeau/op/op.h"
#include "tests/autograd/set_up.h"

namespace fl::graph {
namespace {

template <class F>
void expect_pass(F pass, const std::string& before, const std::string& after) {
  testing::set_up();
  Graph g = parse_graph(before);
  pass(g);
  verify(g);
  EXPECT_EQ(to_text(g), after);
}

TEST(DeadCode, GoesUnlessItWrites) {
  expect_pass([](Graph& g) { EXPECT_EQ(eliminate_dead_code(g), 2); },
              "graph(%x: f32[2]):\n"
              "  %sin: f32[2] = sin(%x)\n"
              "  %cos: f32[2] = cos(%sin)\n"
              "  %add_: f32[2] = add_.Tensor(%x, 1, 1)\n"
              "  %exp: f32[2] = exp(%x)\n"
              "  return %exp\n",
              "graph(%x: f32[2]):\n"
              "  %add_: f32[2] = add_.Tensor(%x, 1, 1)\n"
              "  %exp: f32[2] = exp(%x)\n"
              "  return %exp\n");
}

TEST(CommonSubexpressions, MergeWhereArgumentsAgree) {
  expect_pass([](Graph& g) { EXPECT_EQ(eliminate_common_subexpressions(g), 2); },
              "graph(%x: f32[2]):\n"
              "  %a: f32[2] = sin(%x)\n"
              "  %b: f32[2] = sin(%x)\n"
              "  %c: f32[2] = add.Tensor(%a, 1, 1)\n"
              "  %d: f32[2] = add.Tensor(%b, 1, 1)\n"
              "  %e: f32[2] = add.Tensor(%b, 1.0, 1)\n"
              "  %f: f32[2] = mul.Tensor(%c, %d)\n"
              "  %g: f32[2] = mul.Tensor(%f, %e)\n"
              "  return %g\n",
              "graph(%x: f32[2]):\n"
              "  %a: f32[2] = sin(%x)\n"
              "  %c: f32[2] = add.Tensor(%a, 1, 1)\n"
              "  %e: f32[2] = add.Tensor(%a, 1.0, 1)\n"
              "  %f: f32[2] = mul.Tensor(%c, %c)\n"
              "  %g: f32[2] = mul.Tensor(%f, %e)\n"
              "  return %g\n");
}

TEST(CommonSubexpressions, OutputsStayApart) {
  const std::string text =
      "graph(%x: f32[2]):\n"
      "  %a: f32[2] = sin(%x)\n"
      "  %b: f32[2] = sin(%x)\n"
      "  %c: f32[1, 2] = unsqueeze(%b, 0)\n"
      "  return %a, %c\n";
  expect_pass([](Graph& g) { EXPECT_EQ(eliminate_common_subexpressions(g), 0); }, text, text);
}

TEST(CommonSubexpressions, WaitForFunctionalGraphs) {
  const std::string text =
      "graph(%x: f32[2]):\n"
      "  %a: f32[2] = sin(%x)\n"
      "  %add_: f32[2] = add_.Tensor(%x, 1, 1)\n"
      "  %b: f32[2] = sin(%x)\n"
      "  %c: f32[2] = mul.Tensor(%a, %b)\n"
      "  return %c\n";
  expect_pass([](Graph& g) { EXPECT_EQ(eliminate_common_subexpressions(g), 0); }, text, text);
}

TEST(Identities, OfViewsConversionsAndCopies) {
  expect_pass([](Graph& g) { EXPECT_EQ(fold_identities(g), 4); },
              "graph(%x: f32[2, 3]):\n"
              "  %alias: f32[2, 3] = alias(%x)\n"
              "  %view: f32[2, 3] = view(%alias, [2, 3])\n"
              "  %_to_copy: f32[2, 3] = _to_copy(%view, float32, None, None, False, None)\n"
              "  %clone: f32[2, 3] = clone(%_to_copy, None)\n"
              "  %turned: f32[3, 2](strides=[1, 3]) = permute(%clone, [1, 0])\n"
              "  %sin: f32[3, 2](strides=[1, 3]) = sin(%turned)\n"
              "  return %sin\n",
              "graph(%x: f32[2, 3]):\n"
              "  %turned: f32[3, 2](strides=[1, 3]) = permute(%x, [1, 0])\n"
              "  %sin: f32[3, 2](strides=[1, 3]) = sin(%turned)\n"
              "  return %sin\n");
}

TEST(Identities, CopiesOfOutputsAndRealConversionsStay) {
  const std::string text =
      "graph(%x: f32[2]):\n"
      "  %clone: f32[2] = clone(%x, None)\n"
      "  %_to_copy: f64[2] = _to_copy(%x, float64, None, None, False, None)\n"
      "  %sin: f64[2] = sin(%_to_copy)\n"
      "  return %clone, %sin\n";
  expect_pass([](Graph& g) { EXPECT_EQ(fold_identities(g), 0); }, text, text);
}

TEST(Decompose, LeavesPrimitivesOnly) {
  testing::set_up();
  Graph g = parse_graph("graph(%x: f32[2]):\n  %gelu: f32[2] = gelu(%x, \"none\")\n  return %gelu\n");
  const OpInfo* gelu = op_table().find("gelu");
  const OpInfo* const keep[] = {gelu};
  EXPECT_EQ(decompose(g, keep), 0);
  decompose(g);
  verify(g);
  for (const Node& n : g.calls()) EXPECT_TRUE(n.op->is_primitive()) << n.op->name();
}

TEST(Pipeline, ReportsAndNamesAPassThatBreaksTheGraph) {
  testing::set_up();
  Graph g = parse_graph("graph(%x: f32[2]):\n  %sin: f32[2] = sin(%x)\n  return %x\n");
  const auto reports = run_passes(g, simplification_passes(), "test");
  EXPECT_EQ(reports[0].calls_before, 1);
  EXPECT_EQ(reports[0].calls_after, 0);
  static constexpr Pass kBad[] = {{"bad", [](Graph& broken) { broken.set_outputs({Value("text")}); }}};
  try {
    run_passes(g, kBad, "test");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(e.message().find("after the pass bad"), std::string::npos) << e.message();
  }
}

TEST(SimplifySymbols, PutsEqualitiesIn) {
  testing::set_up();
  Graph g = parse_graph(
      "graph(%x: f32[s3], %y: f32[s4]) where s3=5, s4=5:\n  %sin: f32[s4] = sin(%y)\n  return %sin, s3+s4\n");
  g.shape_env->evaluate(sym::Relation::Eq, sym::Expr::symbol("s3", 2), sym::Expr::symbol("s4", 2));
  simplify_symbols(g);
  EXPECT_EQ(to_text(g),
            "graph(%x: f32[s3], %y: f32[s3]) where s3=5:\n  %sin: f32[s3] = sin(%y)\n  return %sin, 2*s3\n");
}

}  // namespace
}  // namespace fl::graph
