#include <cmath>

#include "flambeau/base/error.h"
#include "flambeau/graph/graph.h"
#include "flambeau/graph/text.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {
namespace {

std::string quoted(std::string_view s) {
  std::string text = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    text += c;
  }
  return text + '"';
}

// The shortest text that reads back to the same double, never that of an integer.
std::string number_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", d);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string ref_text(const Graph& g, GraphRef r) {
  if (r.node < 0) return "None";
  if (!g.has_node(r.node)) return fmt::format("%<erased {}>", r.node);
  const Node& n = g.node(r.node);
  return r.index == 0 ? "%" + n.name : fmt::format("%{}:{}", n.name, r.index);
}

template <class List, class F>
std::string list_text(const List& list, F item) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) text += ", ";
    text += item(list[i]);
  }
  return text + "]";
}

std::string input_text(const Node& n) {
  if (n.is_number()) return fmt::format("%{}: {}", n.name, name(n.kind));
  std::string text = fmt::format("%{}: {}", n.name, to_text(n.spec()));
  if (n.kind != InputKind::Input) text += fmt::format(" {}", name(n.kind));
  return text;
}

std::string call_text(const Graph& g, const Node& n) {
  std::string text = "  %" + n.name + ": ";
  if (n.outs.empty()) text += "()";
  for (size_t i = 0; i < n.outs.size(); ++i) {
    if (i) text += ", ";
    text += to_text(n.outs[i]);
  }
  text += " = " + n.op->name() + "(";
  for (size_t i = 0; i < n.args.size(); ++i) {
    if (i) text += ", ";
    text += to_text(g, n.args[i]);
  }
  text += ")";
  if (n.recompute == Recompute::Always) text += " recompute";
  if (n.recompute == Recompute::Never) text += " save";
  return text + "\n";
}

// The symbols of the inputs' sizes with their example values.
std::string hints_text(const Graph& g) {
  std::string text;
  if (!g.shape_env) return text;
  std::vector<sym::Expr> seen;
  auto add = [&](SymInt s) {
    if (!s.is_symbolic()) return;
    for (const sym::Expr& e : sym::symbols_of(s.expr())) {
      if (std::find(seen.begin(), seen.end(), e) != seen.end()) continue;
      seen.push_back(e);
      if (auto hint = g.shape_env->hint(e))
        text += fmt::format("{}{}={}", text.empty() ? " where " : ", ", e.name(), *hint);
    }
  };
  for (int32_t id : g.inputs()) {
    if (g.node(id).is_number()) add(SymInt(g.node(id).symbol));
    for (const TensorSpec& s : g.node(id).outs) {
      for (SymInt i : s.sizes) add(i);
      for (SymInt i : s.strides) add(i);
      add(s.offset);
    }
  }
  return text;
}

}  // namespace

std::string to_text(const TensorSpec& s) {
  std::string text =
      fmt::format("{}{}", info(s.dtype).short_name, list_text(s.sizes, [](SymInt i) { return i.str(); }));
  std::vector<std::string> extra;
  const Sizes usual = contiguous_strides(s.sizes);
  bool plain = usual.size() == s.strides.size();
  for (size_t i = 0; plain && i < usual.size(); ++i) plain = usual[i].same_as(s.strides[i]);
  if (!plain) extra.push_back("strides=" + list_text(s.strides, [](SymInt i) { return i.str(); }));
  if (!s.offset.same_as(0)) extra.push_back("offset=" + s.offset.str());
  if (s.device != Device{}) extra.push_back("device=" + s.device.str());
  if (!extra.empty()) {
    text += "(" + extra[0];
    for (size_t i = 1; i < extra.size(); ++i) text += ", " + extra[i];
    text += ")";
  }
  return text;
}

std::string to_text(const Graph& g, const Value& v) {
  switch (v.tag()) {
    case Value::Tag::GraphRef:
      return ref_text(g, v.graph_ref());
    case Value::Tag::GraphRefList:
      return list_text(v.graph_refs(), [&](GraphRef r) { return ref_text(g, r); });
    case Value::Tag::None:
      return "None";
    case Value::Tag::Int:
      return v.sym_int().str();
    case Value::Tag::IntList:
      return list_text(v.ints(), [](SymInt i) { return i.str(); });
    case Value::Tag::Float:
      return number_text(v.to_double());
    case Value::Tag::FloatList:
      return list_text(v.doubles(), number_text);
    case Value::Tag::Bool:
      return v.to_bool() ? "True" : "False";
    case Value::Tag::BoolList:
      return list_text(v.bools(), [](bool b) { return std::string(b ? "True" : "False"); });
    case Value::Tag::Complex: {
      const auto c = v.scalar().to_complex();
      return fmt::format("complex({}, {})", number_text(c.real()), number_text(c.imag()));
    }
    case Value::Tag::Str:
      return quoted(v.str());
    case Value::Tag::DType:
      return std::string(fl::name(v.dtype()));
    case Value::Tag::Device:
      return v.device().str();
    case Value::Tag::MemoryFormat:
      return std::string(fl::name(v.memory_format()));
    default:
      return v.describe();
  }
}

std::string to_text(const Graph& g) {
  std::string text = "graph(";
  for (size_t i = 0; i < g.inputs().size(); ++i) {
    if (i) text += ", ";
    text += input_text(g.node(g.inputs()[i]));
  }
  text += ")" + hints_text(g) + ":\n";
  for (const RandomState& r : g.random)
    text += fmt::format("  random {}, {}, {}, {}, {}\n", r.device.str(), r.seed_low.name(),
                        r.seed_high.name(), r.offset.name(), r.increment.str());
  for (const Node& n : g.calls()) text += call_text(g, n);
  text += "  return";
  for (size_t i = 0; i < g.outputs().size(); ++i) text += (i ? ", " : " ") + to_text(g, g.outputs()[i]);
  return text + "\n";
}

}  // namespace fl::graph
