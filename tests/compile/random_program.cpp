#include "random_program.h"

#include "flambeau/graph/graph.h"
#include "flambeau/ops/functions.h"

namespace fl::testing {
namespace {

Value with_size(const Value& v, SymInt n) {
  auto put = [&](SymInt s) { return s.is_symbolic() ? n : s; };
  if (v.tag() == Value::Tag::Int) return Value(put(v.sym_int()));
  if (v.tag() != Value::Tag::IntList) return v;
  Sizes out;
  for (SymInt s : v.ints()) out.push_back(put(s));
  return Value(out);
}

std::string text(const Value& v) {
  if (v.tag() == Value::Tag::GraphRef) return fmt::format("v{}", v.graph_ref().node);
  if (v.tag() != Value::Tag::GraphRefList) return v.describe();
  std::string out;
  for (GraphRef r : v.graph_refs()) out += fmt::format("{}v{}", out.empty() ? "" : ", ", r.node);
  return "[" + out + "]";
}

}  // namespace

std::string RandomProgram::str() const {
  std::string out;
  int next = 0;
  static constexpr const char* kLayouts[] = {"", " transposed", " strided"};
  for (const ProgramInput& i : inputs) {
    std::string sizes;
    for (int64_t s : i.sizes)
      sizes += (sizes.empty() ? "" : ", ") + (s == kOpenSize ? "n" : fmt::to_string(s));
    out += fmt::format("  v{} = input {}[{}]{}{}\n", next++, name(i.dtype), sizes,
                       kLayouts[static_cast<int>(i.layout)], gradients && !i.interior ? " leaf" : "");
  }
  for (const ProgramStep& s : steps) {
    std::string results, list;
    for (int k = 0; k < s.results; ++k) results += fmt::format("{}v{}", k ? ", " : "", next++);
    for (const Value& v : s.args) list += (list.empty() ? "" : ", ") + text(v);
    out += fmt::format("  {} = {}({})\n", results, s.op->name(), list);
  }
  std::string list;
  for (size_t k = 0; k < outputs.size(); ++k)
    list += fmt::format("{}v{}{}", k ? ", " : "", outputs[k], exact_outputs[k] ? " exact" : "");
  return out + fmt::format("  return {}{}\n", list, gradients ? " with gradients" : "");
}

std::vector<Tensor> make_inputs(const RandomProgram& p, int64_t n, std::vector<Tensor>* leaves) {
  std::vector<Tensor> out;
  for (const ProgramInput& i : p.inputs) {
    SampleMaker make(i.dtype, i.seed);
    Sizes sizes;
    for (int64_t s : i.sizes) sizes.push_back(s == kOpenSize ? n : s);
    Tensor t;
    if (i.index_limit >= 0)
      t = make.make_index(sizes, 0, i.index_limit);
    else if (i.layout == ProgramInput::Layout::Transposed && sizes.size() >= 2)
      t = make.make_transposed(sizes);
    else if (i.layout == ProgramInput::Layout::Strided && !sizes.empty())
      t = make.make_strided(sizes);
    else
      t = make.make(sizes);
    if (i.as_float64) t = _to_copy(t, DType::Float64);
    if (p.gradients && is_floating(i.dtype)) {
      t.set_requires_grad(true);
      if (leaves) leaves->push_back(t);
      if (i.interior) t = mul(t, 1.0);
    }
    out.push_back(t);
  }
  return out;
}

void run_step(const ProgramStep& s, std::vector<Tensor>& values, SymInt n) {
  std::vector<Value> args;
  for (const Value& v : s.args) {
    if (v.tag() == Value::Tag::GraphRef) {
      args.emplace_back(values[v.graph_ref().node]);
    } else if (v.tag() == Value::Tag::GraphRefList) {
      std::vector<Tensor> list;
      for (GraphRef r : v.graph_refs()) list.push_back(values[r.node]);
      args.emplace_back(std::move(list));
    } else {
      args.push_back(with_size(v, n));
    }
  }
  // nan has no sign that a program may rely on: 0 / 0 gives one or the other.
  if (const std::string op = s.op->name(); op == "signbit" || op == "copysign.Tensor")
    if (Value& sign = args.back(); sign.is_tensor() && is_floating(sign.tensor().dtype()))
      sign = Value(where(isnan(sign.tensor()), 0, sign.tensor()));
  const size_t before = values.size();
  for (const Value& v : call(*s.op, std::move(args))) {
    if (v.tag() == Value::Tag::TensorList)
      for (const Tensor& t : v.tensors()) values.push_back(t);
    else
      values.push_back(v.tensor());
  }
  FL_CHECK(s.results < 0 || values.size() - before == static_cast<size_t>(s.results), ValueError,
           "{} gives {} results instead of {}", s.op->name(), values.size() - before, s.results);
}

std::vector<Tensor> run_program(const RandomProgram& p, const std::vector<Tensor>& inputs) {
  SymInt n = kFirstSize;
  for (size_t i = p.inputs.size(); i-- > 0;)
    for (size_t d = 0; d < p.inputs[i].sizes.size(); ++d)
      if (p.inputs[i].sizes[d] == kOpenSize) n = inputs[i].size(static_cast<int64_t>(d));
  std::vector<Tensor> values = inputs;
  for (const ProgramStep& s : p.steps) run_step(s, values, n);
  std::vector<Tensor> out;
  for (int o : p.outputs) out.push_back(values[o]);
  return out;
}

RandomProgram in_float64(RandomProgram p) {
  for (ProgramInput& i : p.inputs) i.as_float64 = is_floating(i.dtype);
  for (ProgramStep& s : p.steps)
    for (Value& v : s.args)
      if (v.tag() == Value::Tag::DType && is_floating(v.dtype())) v = Value(DType::Float64);
  return p;
}

}  // namespace fl::testing
