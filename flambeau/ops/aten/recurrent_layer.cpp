// One direction of one recurrent layer: a product and a step for every time, and the way back through time,
// in which the weights' gradients are one product for all times.
#include "flambeau/ops/aten/recurrent.h"
#include "flambeau/ops/aten/sequence_steps.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// (rows, gates * hidden) as (rows, gates, hidden).
Tensor by_gate(const Tensor& x, int64_t gates, SymInt hidden) {
  return view(x, {x.sizes()[0], SymInt(gates), hidden});
}
Tensor flat_gates(const Tensor& x) { return view(x, {x.sizes()[0], x.sizes()[1] * x.sizes()[2]}); }

/// A weight as the right factor of many products: a copy of its transpose, which is quicker to read.
Tensor right_factor(const Tensor& weight, int uses) {
  constexpr int kWorthACopy = 4;
  return uses < kWorthACopy ? t(weight) : contiguous(t(weight));
}

Tensor plus(const Tensor& x, const Tensor& y) { return y.defined() ? add(x, y) : x; }
/// A gradient by an output; undefined if nothing depends on it.
Tensor given(const GradCtx& c, int out) { return c.grad_defined(out) ? c.grad(out) : Tensor(); }
/// The rows of a step of such a gradient.
Tensor part(const SequenceSteps& steps, const Tensor& packed, int s) {
  return packed.defined() ? steps.part(packed, s) : Tensor();
}

using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Five lstm_layer_of(Tensor x, Tensor hx, Tensor cx, Tensor w_hh, Tensor w_hr, IntList batch_sizes,
                   bool reverse) {
  const SequenceSteps steps(batch_sizes, reverse);
  const SymInt hidden = cx.sizes()[1];
  const Tensor inputs = by_gate(contiguous(x), 4, hidden), w = right_factor(w_hh, steps.count());
  std::vector<Tensor> hs, cs, gates;
  Tensor h = hx, c = cx;
  for (int s = 0; s < steps.count(); ++s) {
    h = steps.entering(h, hx, s);
    gates.push_back(add(steps.part(inputs, s), by_gate(mm(h, w), 4, hidden)));
    std::tie(h, c) = _lstm_step(gates.back(), steps.entering(c, cx, s));
    if (w_hr.defined()) h = mm(h, t(w_hr));
    hs.push_back(h);
    cs.push_back(c);
  }
  return {steps.joined(hs), steps.last(hs), steps.last(cs), steps.joined(gates), steps.joined(cs)};
}

/// The outputs before the projection, from the gates' sums and the cells.
Tensor unprojected(const Tensor& gates, const Tensor& cells) {
  return mul(sigmoid(select(gates, 1, 3)), tanh(cells));
}

Tensors lstm_layer_gradient(GradCtx& c, const Tensor&) {
  const SequenceSteps steps(c.arg(5).ints(), c.arg(6).to_bool());
  const int count = steps.count();
  const bool projects = c.is_tensor(4);
  const Tensor hx = c.in(1), cx = c.in(2), w = c.in(3), output = c.out(0), gates = c.out(3), cells = c.out(4);
  const Tensor gy = given(c, 0), ghy = c.grad(1), gcy = c.grad(2), ggates = given(c, 3), gcells = given(c, 4);
  std::vector<Tensor> g_gates(count), g_h(count), g_c(count), g_projected(count);
  Tensor h, cell;  // gradients by what the step after this one began with
  for (int s = count; s-- > 0;) {
    Tensor g = plus(steps.leaving(h, ghy, s), part(steps, gy, s));
    if (projects) {
      g_projected[s] = g;
      g = mm(g, c.in(4));
    }
    const Tensor gc = plus(steps.leaving(cell, gcy, s), part(steps, gcells, s));
    const Tensor begun = steps.entering(s ? steps.part(cells, s - 1) : cx, cx, s);
    std::tie(g_gates[s], g_c[s]) = _lstm_step_backward(steps.part(gates, s), begun, g, gc);
    g_gates[s] = plus(g_gates[s], part(steps, ggates, s));
    g_h[s] = mm(flat_gates(g_gates[s]), w);
    h = g_h[s];
    cell = g_c[s];
  }
  Tensors out(5);
  out[0] = flat_gates(steps.joined(g_gates));
  if (c.needs(1)) out[1] = steps.first(g_h);
  if (c.needs(2)) out[2] = steps.first(g_c);
  if (c.needs(3)) out[3] = mm(t(out[0]), steps.all_entering(output, hx));
  if (c.needs(4)) out[4] = mm(t(steps.joined(g_projected)), unprojected(gates, cells));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> gru_layer_of(Tensor x, Tensor hx, Tensor w_hh, Tensor b_hh,
                                                IntList batch_sizes, bool reverse) {
  const SequenceSteps steps(batch_sizes, reverse);
  const SymInt hidden = hx.sizes()[1];
  const Tensor inputs = by_gate(contiguous(x), 3, hidden), w = right_factor(w_hh, steps.count());
  std::vector<Tensor> hs, gates;
  Tensor h = hx;
  for (int s = 0; s < steps.count(); ++s) {
    h = steps.entering(h, hx, s);
    gates.push_back(by_gate(plus(mm(h, w), b_hh), 3, hidden));
    h = _gru_step(steps.part(inputs, s), gates.back(), h);
    hs.push_back(h);
  }
  return {steps.joined(hs), steps.last(hs), steps.joined(gates)};
}

Tensors gru_layer_gradient(GradCtx& c, const Tensor&) {
  const SequenceSteps steps(c.arg(4).ints(), c.arg(5).to_bool());
  const int count = steps.count();
  const Tensor hx = c.in(1), w = c.in(2), output = c.out(0), gates = c.out(2);
  const Tensor inputs = by_gate(contiguous(c.in(0)), 3, hx.sizes()[1]);
  const Tensor gy = given(c, 0), ghy = c.grad(1), ggates = given(c, 2);
  std::vector<Tensor> g_x(count), g_gates(count), g_h(count);
  for (int s = count; s-- > 0;) {
    const Tensor next = s + 1 < count ? g_h[s + 1] : Tensor();
    const Tensor g = plus(steps.leaving(next, ghy, s), part(steps, gy, s));
    const Tensor begun = steps.entering(s ? steps.part(output, s - 1) : hx, hx, s);
    Tensor kept;
    std::tie(g_x[s], g_gates[s], kept) =
        _gru_step_backward(steps.part(inputs, s), steps.part(gates, s), begun, g);
    g_gates[s] = plus(g_gates[s], part(steps, ggates, s));
    g_h[s] = add(kept, mm(flat_gates(g_gates[s]), w));
  }
  Tensors out(4);
  if (c.needs(0)) out[0] = flat_gates(steps.joined(g_x));
  if (c.needs(1)) out[1] = steps.first(g_h);
  if (!c.needs(2) && !c.needs(3)) return out;
  const Tensor g = flat_gates(steps.joined(g_gates));
  if (c.needs(2)) out[2] = mm(t(g), steps.all_entering(output, hx));
  if (c.needs(3)) out[3] = sum(g, IntList{SymInt(0)});
  return out;
}

std::tuple<Tensor, Tensor> rnn_layer_of(Tensor x, Tensor hx, Tensor w_hh, IntList batch_sizes, bool reverse,
                                        bool is_relu) {
  const SequenceSteps steps(batch_sizes, reverse);
  const Tensor w = right_factor(w_hh, steps.count());
  std::vector<Tensor> hs;
  Tensor h = hx;
  for (int s = 0; s < steps.count(); ++s) {
    const Tensor sums = add(steps.part(x, s), mm(steps.entering(h, hx, s), w));
    h = is_relu ? relu(sums) : tanh(sums);
    hs.push_back(h);
  }
  return {steps.joined(hs), steps.last(hs)};
}

Tensors rnn_layer_gradient(GradCtx& c, const Tensor&) {
  const SequenceSteps steps(c.arg(3).ints(), c.arg(4).to_bool());
  const bool is_relu = c.arg(5).to_bool();
  const int count = steps.count();
  const Tensor hx = c.in(1), w = c.in(2), output = c.out(0), gy = given(c, 0), ghy = c.grad(1);
  // Of all steps at once; what depends on the next step is in the loop.
  const Tensor slopes = is_relu ? gt(output, 0) : sub(1, square(output));
  std::vector<Tensor> g_x(count), g_h(count);
  for (int s = count; s-- > 0;) {
    const Tensor next = s + 1 < count ? g_h[s + 1] : Tensor();
    const Tensor g = plus(steps.leaving(next, ghy, s), part(steps, gy, s));
    g_x[s] = mul(g, steps.part(slopes, s));
    g_h[s] = mm(g_x[s], w);
  }
  Tensors out(3);
  out[0] = steps.joined(g_x);
  if (c.needs(1)) out[1] = steps.first(g_h);
  if (c.needs(2)) out[2] = mm(t(out[0]), steps.all_entering(output, hx));
  return out;
}

/// Batches of equal length, of unequal lengths, and one step, each in both directions.
std::vector<Sizes> sample_lengths() { return {Sizes{2, 2, 2}, Sizes{3, 2, 2, 1}, Sizes{2}}; }

template <class F>
std::vector<Sample> layer_samples(SampleMaker& m, const Samples& o, F arguments) {
  std::vector<Sample> out;
  const auto x = [&](SymInt rows, SymInt columns) { return m.make(Sizes{rows, columns}, o.low, o.high); };
  for (const Sizes& lengths : sample_lengths())
    for (const bool reverse : {false, true}) {
      SymInt rows = 0;
      for (SymInt l : lengths) rows += l;
      for (std::vector<Value> args : arguments(x, rows, lengths[0], Value(lengths), Value(reverse)))
        out.push_back({std::move(args), reverse ? "reverse" : "", ""});
    }
  return out;
}

}  // namespace

void define_recurrent_layer(OpTable& table) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  const auto on = [](samples::MakeSamples make) {
    return samples::custom(make, {.low = -1, .high = 1, .tolerance = 1e-4});
  };
  table.define(
      _lstm_layer,
      {.doc =
           "One direction of an LSTM layer: x holds the products of all inputs with biases, (rows, 4 "
           "hidden). Also gives what the gradient reads: all gates' sums, (rows, 4, hidden), and all cells.",
       .tags = kTags,
       .decompose = lstm_layer_of,
       .saves = saves::in({1, 2, 3, 4}) | saves::out({0, 3, 4}),
       .grad = lstm_layer_gradient,
       .samples = on([](SampleMaker& m, const Samples& o) {
         return layer_samples(
             m, o, [](const auto& x, SymInt rows, SymInt batch, Value lengths, Value reverse) {
               return std::vector<std::vector<Value>>{
                   {x(rows, 12), x(batch, 3), x(batch, 3), x(12, 3), Value(), lengths, reverse},
                   {x(rows, 12), x(batch, 2), x(batch, 3), x(12, 2), x(2, 3), lengths, reverse}};
             });
       })});
  table.define(
      _gru_layer,
      {.doc = "One direction of a GRU layer: x holds the products of all inputs with their bias, (rows, 3 "
              "hidden). Also gives the states' products of all steps, (rows, 3, hidden).",
       .tags = kTags,
       .decompose = gru_layer_of,
       .saves = saves::in({0, 1, 2}) | saves::out({0, 2}),
       .grad = gru_layer_gradient,
       .samples = on([](SampleMaker& m, const Samples& o) {
         return layer_samples(m, o,
                              [](const auto& x, SymInt rows, SymInt batch, Value lengths, Value reverse) {
                                const Tensor bias = view(x(9, 1), {SymInt(9)});
                                return std::vector<std::vector<Value>>{
                                    {x(rows, 9), x(batch, 3), x(9, 3), bias, lengths, reverse},
                                    {x(rows, 9), x(batch, 3), x(9, 3), Value(), lengths, reverse}};
                              });
       })});
  table.define(
      _rnn_layer,
      {.doc =
           "One direction of a layer h = tanh(x + W h), or relu in tanh's place; x holds the products of all "
           "inputs with biases.",
       .tags = kTags,
       .decompose = rnn_layer_of,
       .saves = saves::in({1, 2}) | saves::out({0}),
       .grad = rnn_layer_gradient,
       .samples = on([](SampleMaker& m, const Samples& o) {
         return layer_samples(m, o,
                              [](const auto& x, SymInt rows, SymInt batch, Value lengths, Value reverse) {
                                return std::vector<std::vector<Value>>{
                                    {x(rows, 3), x(batch, 3), x(3, 3), lengths, reverse, Value(false)},
                                    {x(rows, 3), x(batch, 3), x(3, 3), lengths, reverse, Value(true)}};
                              });
       })});
}

}  // namespace fl
