// Building, printing, parsing and checking graphs.
#include "flambeau/graph/graph.h"

#include <gtest/gtest.h>

#include "flambeau/base/error.h"
#include "flambeau/ops/functions.h"
#include "tests/autograd/set_up.h"

namespace fl::graph {
namespace {

const char* const kText =
    R"(graph(%x: f32[s0, 4], %w: f32[s0, 4](strides=[1, s0], offset=2) captured, %seed0: random, %s1: size) where s0=8:
  random cpu, seed0, seed0, seed0, 4*s0
  %sin: f32[s0, 4] = sin(%x)
  %add: f32[s0, 4] = add.Tensor(%sin, 1.5, 2) save
  %view: f32[4*s0] = view(%add, [4*s0])
  %cat: f32[s0, 8] = cat([%x, %sin], 1)
  %clone: f32[s0, 4] = clone(%x, contiguous_format)
  %_to_copy: f64[s0, 4] = _to_copy(%x, float64, cpu, None, False, None) recompute
  return %view, 4*s0, None, %cat
)";

std::string with_memory_format_name(std::string text) {
  const std::string word = "contiguous_format";
  text.replace(text.find(word), word.size(), fl::name(MemoryFormat::Contiguous));
  return text;
}

TEST(GraphText, ParsesBack) {
  const std::string text = with_memory_format_name(kText);
  EXPECT_EQ(to_text(parse_graph(text)), text);
}

TEST(GraphText, CopyIsIndependent) {
  const Graph g = parse_graph("graph(%x: f32[2]):\n  %sin: f32[2] = sin(%x)\n  return %sin\n");
  Graph copy = g;
  copy.set_outputs({});
  copy.erase(copy.find("sin")->id);
  EXPECT_EQ(to_text(copy), "graph(%x: f32[2]):\n  return\n");
  EXPECT_EQ(g.call_count(), 1);
}

void expect_error(const std::string& text, const std::string& part) {
  try {
    verify(parse_graph(text));
    FAIL() << "no error for " << text;
  } catch (const Error& e) {
    EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
  }
}

TEST(GraphText, ErrorsNameTheLine) {
  expect_error("", "expected a graph");
  expect_error("graph(%x: f32[2]):\n  %a: f32[2] = sin(%y)\n  return\n",
               "line 2 of a graph: expected '%y' to be defined");
  expect_error("graph(%x: f32[2]):\n  %a: f32[2] = no_such_op(%x)\n  return\n", "known operator");
  expect_error("graph(%x: f32[2]):\n  %a: f32[2] = sin(%x, 1)\n  return\n", "1 arguments of sin");
  expect_error("graph(%x: f32[2]):\n  %a: f32[2] = sin(%x)\n", "'return");
  expect_error("graph(%x: f32[2]):\n  %x: f32[2] = sin(%x)\n  return\n", "defined once");
}

TEST(GraphVerifier, NamesWhatIsWrong) {
  testing::set_up();
  expect_error("graph(%x: f32[2]):\n  %a: f32[3] = sin(%x)\n  return\n", "is f32[2] by its rule, got f32[3]");
  expect_error("graph(%x: f32[2]):\n  %a: f32[2] = permute(%x, 1)\n  return\n", "argument 'dims' has to be");
  Graph g = parse_graph("graph(%x: f32[2]):\n  %a: f32[2] = sin(%x)\n  %b: f32[2] = cos(%a)\n  return %b\n");
  g.reorder({g.find("b")->id, g.find("a")->id});
  EXPECT_THROW(verify(g), InternalError);
}

TEST(Graph, NamesCountUp) {
  Graph g;
  const TensorSpec s = make_spec(Sizes{2}, DType::Float32);
  const GraphRef x = g.add_input(InputKind::Input, s, "x").ref();
  EXPECT_EQ(g.append(sin.info(), {Value(x)}, {s}).name, "sin");
  EXPECT_EQ(g.append(sin.info(), {Value(x)}, {s}).name, "sin_1");
  EXPECT_EQ(g.append(sin.info(), {Value(x)}, {s}).name, "sin_2");
  g.erase(g.find("sin_1")->id);
  EXPECT_EQ(g.call_count(), 2);
  EXPECT_EQ(g.users(x.node).size(), 2u);
}

TEST(Graph, ReplacesUsesAndRefusesToEraseUsed) {
  Graph g = parse_graph(
      "graph(%x: f32[2]):\n  %a: f32[2] = sin(%x)\n  %b: f32[2] = cos(%x)\n  %c: f32[2] = mul.Tensor(%a, "
      "%a)\n  return %a, %c\n");
  EXPECT_THROW(g.erase(g.find("a")->id), InternalError);
  g.replace_uses(g.find("a")->ref(), g.find("b")->ref());
  g.erase(g.find("a")->id);
  EXPECT_EQ(
      to_text(g),
      "graph(%x: f32[2]):\n  %b: f32[2] = cos(%x)\n  %c: f32[2] = mul.Tensor(%b, %b)\n  return %b, %c\n");
}

TEST(Graph, InterpretsWithSizesOfTheInputs) {
  testing::set_up();
  const Graph g = parse_graph(
      "graph(%x: f32[s0, 2]):\n  %view: f32[2*s0] = view(%x, [2*s0])\n  %mul: f32[2*s0] = mul.Tensor(%view, "
      "2)\n"
      "  return %mul, 2*s0\n");
  const Tensor x = tensor_from(std::vector<float>{1, 2, 3, 4, 5, 6}, Sizes{3, 2});
  const std::vector<Value> out = interpret(g, {Value(x)});
  EXPECT_EQ(out[0].tensor().to_vector<double>(), (std::vector<double>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(out[1].to_int(), 6);
}

TEST(Graph, InputOfWrongSizeIsRefused) {
  testing::set_up();
  const Graph g = parse_graph("graph(%x: f32[s0, 2], %y: f32[s0]):\n  return %x\n");
  const Tensor x = empty_tensor(Sizes{3, 2}, DType::Float32), y = empty_tensor(Sizes{4}, DType::Float32);
  EXPECT_THROW(interpret(g, {Value(x), Value(y)}), RuntimeError);
  EXPECT_THROW(interpret(g, {Value(x)}), ValueError);
}

}  // namespace
}  // namespace fl::graph
