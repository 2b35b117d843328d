#include "flambeau/ops/samples.h"

#include "flambeau/tensor/tensor.h"

namespace fl::samples {
namespace {

Tensor with_layout(const Tensor& t, IntList sizes, IntList strides, SymInt offset = 0) {
  TensorSpec s = t.spec();
  s.sizes.assign(sizes.begin(), sizes.end());
  s.strides.assign(strides.begin(), strides.end());
  s.offset = offset;
  return Tensor(s, t.storage());
}

std::vector<Sample> make_unary(SampleMaker& m, const Samples& o) { return with_arguments(m, o, {{}}); }

std::vector<Sample> make_binary(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out;
  const auto make = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const auto add = [&](std::string note, Value a, Value b) {
    out.push_back({{std::move(a), std::move(b)}, std::move(note), ""});
  };
  for (auto& [note, t] : layouts(m, o.low, o.high)) add(note, t, make(t.sizes()));
  add("broadcast row", make({3, 5}), make({5}));
  add("broadcast column", make({3, 1}), make({3, 5}));
  add("broadcast both", make({4, 1, 3}), make({2, 1}));
  add("broadcast with size 0", make({0, 1}), make({1, 3}));
  add("0-dim and vector", make({}), make({4}));
  add("transposed both", m.make_transposed({4, 6}, o.low, o.high), m.make_transposed({4, 6}, o.low, o.high));
  const double middle = (o.low + o.high) / 2;
  const int number = static_cast<int>(middle) == 0 ? 1 : static_cast<int>(middle);
  add("int", make({2, 3}), Value(number));
  if (m.dtype() != DType::Bool) add("int first", Value(number), make({2, 3}));
  if (is_floating(m.dtype()) || (o.dtypes.contains(DType::Float32) && !is_complex(m.dtype()))) {
    add("float", make({2, 3}), Value(middle + 0.5 * (o.high - middle)));
    add("0-dim and float", make({}), Value(middle + 0.25 * (o.high - middle)));
  }
  if (is_floating(m.dtype())) {
    add("float64 0-dim", make({5}), m.make({}, DType::Float64, o.low, o.high));
  }
  out.push_back({{make({2, 3}), make({2, 4})},
                 "sizes that do not broadcast",
                 "RuntimeError: must match the size of tensor b"});
  return out;
}

std::vector<Sample> make_ternary(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out;
  const auto make = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  for (auto& [note, t] : layouts(m, o.low, o.high)) {
    out.push_back({{t, make(t.sizes()), make(t.sizes())}, note, ""});
  }
  out.push_back({{make({3, 1, 2}), make({4, 1}), make({2})}, "broadcast", ""});
  out.push_back({{make({4}), make({}), make({4})}, "0-dim", ""});
  out.push_back({{make({2, 3}), make({2, 4}), make({1})},
                 "sizes that do not broadcast",
                 "RuntimeError: must match the size of tensor"});
  return out;
}

std::vector<Sample> make_where(SampleMaker& m, const Samples& o) {
  std::vector<Sample> out = make_ternary(m, o);
  for (Sample& s : out) s.args[0] = m.make(s.args[0].tensor().sizes(), DType::Bool, 0, 1);
  out.push_back({{m.make({3}, DType::Bool, 0, 1), m.make({3}, o.low, o.high), Value(1)}, "int", ""});
  return out;
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> layouts(SampleMaker& m, double low, double high) {
  std::vector<std::pair<std::string, Tensor>> out;
  out.emplace_back("0-dim", m.make({}, low, high));
  out.emplace_back("size 0", m.make({2, 0, 3}, low, high));
  out.emplace_back("one element", m.make({1, 1}, low, high));
  out.emplace_back("vector", m.make({37}, low, high));
  out.emplace_back("matrix", m.make({3, 5}, low, high));
  out.emplace_back("rank 4", m.make({2, 3, 1, 4}, low, high));
  out.emplace_back("strided", m.make_strided({3, 4}, low, high));
  out.emplace_back("transposed", m.make_transposed({2, 3, 4}, low, high));
  const Tensor row = m.make({4}, low, high);
  out.emplace_back("expanded", with_layout(row, {3, 4}, {0, 1}));
  const Tensor block = m.make({2, 3, 4}, low, high);
  out.emplace_back("channels last", with_layout(block, {1, 4, 2, 3}, {24, 1, 12, 4}));
  return out;
}

std::vector<Sample> with_arguments(SampleMaker& m, const Samples& o,
                                   const std::vector<std::vector<Value>>& arguments) {
  std::vector<Sample> out;
  for (const std::vector<Value>& more : arguments) {
    for (auto& [note, t] : layouts(m, o.low, o.high)) {
      std::vector<Value> args{t};
      args.insert(args.end(), more.begin(), more.end());
      out.push_back({std::move(args), note, ""});
    }
  }
  return out;
}

Samples custom(MakeSamples make, Samples options) {
  options.make = make;
  return options;
}
Samples unary(Samples options) { return custom(make_unary, options); }
Samples binary(Samples options) { return custom(make_binary, options); }
Samples ternary(Samples options) { return custom(make_ternary, options); }
Samples where(Samples options) { return custom(make_where, options); }

void for_each_sample(const OpInfo& op, DType dtype, uint64_t seed, const std::function<void(Sample&)>& f) {
  if (!op.samples.make || !op.samples.dtypes.contains(dtype)) return;
  SampleMaker maker(dtype, seed);
  for (Sample& s : op.samples.make(maker, op.samples)) {
    for (int i = static_cast<int>(s.args.size()); i < op.arg_count(); ++i) {
      const Argument& a = op.schema.args[i];
      FL_ASSERT(a.default_value.has_value(), "a sample of {} lacks argument {}", op.name(), a.name);
      s.args.push_back(*a.default_value);
    }
    f(s);
  }
}

}  // namespace fl::samples
