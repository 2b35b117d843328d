// What a step of a recurrent layer does to elements: one kernel, and one for its gradient.
#include "flambeau/ops/aten/recurrent.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// Gate number k of (batch, gates, hidden), in the dtype of arithmetic.
Tensor gate(const Tensor& gates, int k) { return to_compute(select(gates, 1, k)); }

/// The derivatives of sigmoid and tanh by their results.
Tensor sigmoid_slope(const Tensor& y) { return mul(y, sub(1, y)); }
Tensor tanh_slope(const Tensor& y) { return sub(1, square(y)); }

struct LstmState {
  Tensor in, forget, cell, out;  ///< the four gates
  Tensor cy;
  LstmState(const Tensor& gates, const Tensor& cx)
      : in(sigmoid(gate(gates, 0))),
        forget(sigmoid(gate(gates, 1))),
        cell(tanh(gate(gates, 2))),
        out(sigmoid(gate(gates, 3))),
        cy(add(mul(forget, cx), mul(in, cell))) {}
};

std::tuple<Tensor, Tensor> lstm_step_of(Tensor gates, Tensor cx) {
  const LstmState s(gates, to_compute(cx));
  return {to_dtype(mul(s.out, tanh(s.cy)), gates.dtype()), to_dtype(s.cy, cx.dtype())};
}

std::tuple<Tensor, Tensor> lstm_step_backward_of(Tensor gates, Tensor cx, Tensor grad_hy, Tensor grad_cy) {
  const Tensor c = to_compute(cx), gh = to_compute(grad_hy);
  const LstmState s(gates, c);
  const Tensor squashed = tanh(s.cy);
  const Tensor gc = add(to_compute(grad_cy), mul(mul(gh, s.out), tanh_slope(squashed)));
  const std::vector<Tensor> parts{
      mul(mul(gc, s.cell), sigmoid_slope(s.in)), mul(mul(gc, c), sigmoid_slope(s.forget)),
      mul(mul(gc, s.in), tanh_slope(s.cell)), mul(mul(gh, squashed), sigmoid_slope(s.out))};
  return {to_dtype(stack(parts, 1), gates.dtype()), to_dtype(mul(gc, s.forget), cx.dtype())};
}

struct GruState {
  Tensor reset, keep, next;  ///< the gates r, z and n
  GruState(const Tensor& x, const Tensor& gates)
      : reset(sigmoid(add(gate(x, 0), gate(gates, 0)))),
        keep(sigmoid(add(gate(x, 1), gate(gates, 1)))),
        next(tanh(add(gate(x, 2), mul(reset, gate(gates, 2))))) {}
};

Tensor gru_step_of(Tensor x, Tensor gates, Tensor hx) {
  const GruState s(x, gates);
  return to_dtype(add(mul(sub(to_compute(hx), s.next), s.keep), s.next), hx.dtype());
}

std::tuple<Tensor, Tensor, Tensor> gru_step_backward_of(Tensor x, Tensor gates, Tensor hx, Tensor grad) {
  const GruState s(x, gates);
  const Tensor g = to_compute(grad);
  const Tensor next = mul(mul(g, sub(1, s.keep)), tanh_slope(s.next));
  const Tensor keep = mul(mul(g, sub(to_compute(hx), s.next)), sigmoid_slope(s.keep));
  const Tensor reset = mul(mul(next, gate(gates, 2)), sigmoid_slope(s.reset));
  return {to_dtype(stack(std::vector<Tensor>{reset, keep, next}, 1), x.dtype()),
          to_dtype(stack(std::vector<Tensor>{reset, keep, mul(next, s.reset)}, 1), gates.dtype()),
          to_dtype(mul(g, s.keep), hx.dtype())};
}

Samples step_samples(samples::MakeSamples make) {
  return samples::custom(make, {.dtypes = dtypes::floats, .low = -2, .high = 2, .tolerance = 1e-4});
}

void define_lstm_step(OpTable& t) {
  constexpr Tag kTags = Tag::Fused | Tag::NoInPlace | Tag::NoOut;
  t.define(_lstm_step,
           {.doc = "A step of an LSTM from the sums of its products, (batch, 4, hidden): gates i, f, g, o. "
                   "cy = sigmoid(f) cx + sigmoid(i) tanh(g), hy = sigmoid(o) tanh(cy).",
            .tags = kTags,
            .decompose = lstm_step_of,
            .saves = saves::in({0, 1}),
            .grad = [](GradCtx& c, const Tensor&) -> Tensors {
              const auto [gates, cx] = _lstm_step_backward(c.in(0), c.in(1), c.grad(0), c.grad(1));
              return {gates, cx};
            },
            .samples = step_samples([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{
                  {{x({2, 4, 3}), x({2, 3})}, "", ""},
                  {{m.make_transposed({2, 4, 3}, o.low, o.high), x({2, 3})}, "strides", ""},
                  {{x({0, 4, 3}), x({0, 3})}, "size 0", ""}};
            })});
  t.define(_lstm_step_backward, {.doc = "The gradient of `_lstm_step` by the gates' sums and by cx.",
                                 .tags = kTags,
                                 .decompose = lstm_step_backward_of,
                                 .samples = step_samples([](SampleMaker& m, const Samples& o) {
                                   const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                                   return std::vector<Sample>{
                                       {{x({2, 4, 3}), x({2, 3}), x({2, 3}), x({2, 3})}, "", ""},
                                       {{x({1, 4, 1}), x({1, 1}), x({1, 1}), x({1, 1})}, "one", ""}};
                                 })});
}

void define_gru_step(OpTable& t) {
  constexpr Tag kTags = Tag::Fused | Tag::NoInPlace | Tag::NoOut;
  t.define(
      _gru_step,
      {.doc =
           "A step of a GRU from the products of the input and of the state, each (batch, 3, hidden): gates "
           "r, z, n. n = tanh(x_n + sigmoid(r) h_n); the result is (hx - n) sigmoid(z) + n.",
       .tags = kTags,
       .decompose = gru_step_of,
       .saves = saves::in({0, 1, 2}),
       .grad = [](GradCtx& c, const Tensor& g) -> Tensors {
         const auto [x, gates, hx] = _gru_step_backward(c.in(0), c.in(1), c.in(2), g);
         return {x, gates, hx};
       },
       .samples = step_samples([](SampleMaker& m, const Samples& o) {
         const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
         return std::vector<Sample>{{{x({2, 3, 3}), x({2, 3, 3}), x({2, 3})}, "", ""},
                                    {{x({0, 3, 2}), x({0, 3, 2}), x({0, 2})}, "size 0", ""}};
       })});
  t.define(_gru_step_backward,
           {.doc = "The gradient of `_gru_step` by its three arguments.",
            .tags = kTags,
            .decompose = gru_step_backward_of,
            .samples = step_samples([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{{{x({2, 3, 4}), x({2, 3, 4}), x({2, 4}), x({2, 4})}, "", ""}};
            })});
}

}  // namespace

void define_recurrent_step(OpTable& t) {
  define_lstm_step(t);
  define_gru_step(t);
}

}  // namespace fl
