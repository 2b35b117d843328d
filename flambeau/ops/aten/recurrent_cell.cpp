// One step of a recurrent network with its matrix products.
#include "flambeau/ops/aten/recurrent.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

void check_cell(const Tensor& input, const Tensor& state, const Tensor& w_ih, const Tensor& w_hh,
                std::string_view op) {
  FL_CHECK(input.dim() == 2 && state.dim() == 2, RuntimeError,
           "{}: expected input and state of 2 dimensions, got sizes {} and {}", op, to_string(input.sizes()),
           to_string(state.sizes()));
  FL_CHECK(input.sizes()[1] == w_ih.size(-1), RuntimeError,
           "input has inconsistent input_size: got {} expected {}", input.sizes()[1], w_ih.size(-1));
  FL_CHECK(input.sizes()[0] == state.sizes()[0], RuntimeError,
           "Input batch size {} doesn't match hidden0 batch size {}", input.sizes()[0], state.sizes()[0]);
  FL_CHECK(state.sizes()[1] == w_hh.size(-1), RuntimeError,
           "hidden0 has inconsistent hidden_size: got {}, expected {}", state.sizes()[1], w_hh.size(-1));
}

/// (batch, gates * hidden) as (batch, gates, hidden).
Tensor by_gate(const Tensor& x, int64_t gates, SymInt hidden) {
  FL_CHECK(x.sizes()[1] == SymInt(gates) * hidden, RuntimeError,
           "expected weights of {} rows ({} gates of hidden size {}), got {}", SymInt(gates) * hidden, gates,
           hidden, x.sizes()[1]);
  return view(x, {x.sizes()[0], SymInt(gates), hidden});
}

/// w_ih input + b_ih + w_hh hx + b_hh.
Tensor sums(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
            const Tensor& b_hh, std::string_view op) {
  check_cell(input, hx, w_ih, w_hh, op);
  return add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh));
}

std::tuple<Tensor, Tensor> lstm_cell_of(Tensor input, TensorList hx, Tensor w_ih, Tensor w_hh, Tensor b_ih,
                                        Tensor b_hh) {
  FL_CHECK(hx.size() == 2, RuntimeError, "lstm_cell expects two hidden states, got {}", hx.size());
  const Tensor gates = sums(input, hx[0], w_ih, w_hh, b_ih, b_hh, "lstm_cell");
  return _lstm_step(by_gate(gates, 4, hx[1].size(-1)), to_dtype(hx[1], gates.dtype()));
}

Tensor gru_cell_of(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh) {
  check_cell(input, hx, w_ih, w_hh, "gru_cell");
  const Tensor x = by_gate(linear(input, w_ih, b_ih), 3, hx.size(-1));
  return _gru_step(x, by_gate(linear(hx, w_hh, b_hh), 3, hx.size(-1)), to_dtype(hx, x.dtype()));
}

/// The definition of `op`; f: what the sums become.
template <const auto& op, const auto& f>
Tensor plain_cell_of(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh) {
  return f(sums(input, hx, w_ih, w_hh, b_ih, b_hh, name_of(op)));
}

template <int64_t Gates>
Samples cell_samples() {
  return samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
        const auto state = [&] {
          if (Gates != 4) return Value(x({2, 3}));
          return Value(std::vector<Tensor>{x({2, 3}), x({2, 3})});
        };
        const int64_t rows = Gates * 3;
        return std::vector<Sample>{
            {{x({2, 4}), state(), x({rows, 4}), x({rows, 3}), x({rows}), x({rows})}, "", ""},
            {{x({2, 4}), state(), x({rows, 4}), x({rows, 3})}, "no bias", ""},
            {{x({2, 5}), state(), x({rows, 4}), x({rows, 3})}, "size", "RuntimeError: input_size"},
            {{x({1, 4}), state(), x({rows, 4}), x({rows, 3})}, "batch", "RuntimeError: batch size"}};
      },
      {.low = -1, .high = 1, .tolerance = 1e-4});
}

}  // namespace

void define_recurrent_cell(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  t.define(lstm_cell, {.doc = "One step of an LSTM: the new h and c from hx = [h, c].",
                       .tags = kTags,
                       .decompose = lstm_cell_of,
                       .samples = cell_samples<4>()});
  t.define(gru_cell, {.doc = "One step of a GRU: the new h.",
                      .tags = kTags,
                      .decompose = gru_cell_of,
                      .samples = cell_samples<3>()});
  t.define(rnn_tanh_cell, {.doc = "tanh(w_ih input + b_ih + w_hh hx + b_hh).",
                           .tags = kTags,
                           .decompose = plain_cell_of<rnn_tanh_cell, tanh>,
                           .samples = cell_samples<1>()});
  t.define(rnn_relu_cell, {.doc = "relu(w_ih input + b_ih + w_hh hx + b_hh).",
                           .tags = kTags,
                           .decompose = plain_cell_of<rnn_relu_cell, relu>,
                           .samples = cell_samples<1>()});
}

}  // namespace fl
