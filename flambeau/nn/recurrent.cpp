#include "flambeau/nn/recurrent.h"

#include <algorithm>
#include <cmath>

#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

LSTMImpl::LSTMImpl(int64_t in, int64_t hidden, LSTMOptions options)
    : in_(in), hidden_(hidden), options_(options) {
  FL_CHECK(hidden > 0 && options.layers > 0, ValueError,
           "expected a hidden size and a number of layers above 0, got {} and {}", hidden, options.layers);
  FL_CHECK(options.dropout >= 0 && options.dropout <= 1, ValueError,
           "dropout probability has to be between 0 and 1, but got {}", options.dropout);
  const int directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.layers; ++layer)
    for (int reverse = 0; reverse < directions; ++reverse) {
      const std::string suffix = fmt::format("_l{}{}", layer, reverse ? "_reverse" : "");
      const int64_t from = layer == 0 ? in : hidden * directions;
      const auto parameter = [&](const char* name, IntList sizes) {
        return register_parameter(name + suffix, empty_tensor(sizes, DType::Float32));
      };
      Direction d{.reverse = reverse == 1};
      d.weight_ih = parameter("weight_ih", {4 * hidden, from});
      d.weight_hh = parameter("weight_hh", {4 * hidden, hidden});
      if (options.bias) d.bias_ih = parameter("bias_ih", {4 * hidden});
      if (options.bias) d.bias_hh = parameter("bias_hh", {4 * hidden});
      directions_.push_back(d);
    }
  reset_parameters();
}

void LSTMImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_));
  for (const Tensor& p : parameters()) init::uniform_(p, -bound, bound);
}

/// x (length, batch, features) -> (length, batch, hidden); leaves the last state in hidden and cell.
Tensor LSTMImpl::run(const Direction& d, const Tensor& x, Tensor& hidden, Tensor& cell) const {
  // One product for the inputs of all steps; the loop has those of the state only.
  const Tensors inputs = unbind(linear(x, d.weight_ih, d.bias_ih));
  Tensors outputs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t step = d.reverse ? inputs.size() - 1 - i : i;
    const Tensors gates = chunk(add(inputs[step], linear(hidden, d.weight_hh, d.bias_hh)), 4, -1);
    cell = add(mul(sigmoid(gates[1]), cell), mul(sigmoid(gates[0]), tanh(gates[2])));
    hidden = mul(sigmoid(gates[3]), tanh(cell));
    outputs[step] = hidden;
  }
  return stack(outputs);
}

LSTMResult LSTMImpl::forward(const Tensor& x, const Tensor& hidden, const Tensor& cell) {
  FL_CHECK(x.dim() == 3, ValueError, "LSTM: expected input of 3 dimensions, got {}", x.dim());
  FL_CHECK(x.size(-1) == in_, RuntimeError, "input.size(-1) must be equal to input_size. Expected {}, got {}",
           in_, x.size(-1));
  Tensor y = options_.batch_first ? transpose(x, 0, 1) : x;
  FL_CHECK(y.size(0) > 0, RuntimeError, "expected a sequence of 1 or more steps, got 0");
  const int64_t directions = options_.bidirectional ? 2 : 1;
  const Sizes state_sizes{SymInt(options_.layers * directions), y.size(1), SymInt(hidden_)};
  for (const Tensor* given : {&hidden, &cell})
    FL_CHECK(!given->defined() || std::ranges::equal(given->sizes(), state_sizes), RuntimeError,
             "expected a state of sizes {}, got {}", to_string(state_sizes), to_string(given->sizes()));

  Tensors last_hidden, last_cell;
  for (size_t i = 0; i < directions_.size(); i += directions) {
    Tensors outputs;
    for (size_t j = i; j < i + directions; ++j) {
      const Tensor zero_state = new_zeros(y, {y.size(1), hidden_});
      Tensor h = hidden.defined() ? select(hidden, 0, j) : zero_state;
      Tensor c = cell.defined() ? select(cell, 0, j) : zero_state;
      outputs.push_back(run(directions_[j], y, h, c));
      last_hidden.push_back(h);
      last_cell.push_back(c);
    }
    y = directions == 2 ? cat(outputs, -1) : outputs[0];
    if (i + directions < directions_.size() && options_.dropout > 0)
      y = dropout(y, options_.dropout, is_training());
  }
  return {options_.batch_first ? transpose(y, 0, 1) : y, stack(last_hidden), stack(last_cell)};
}

}  // namespace fl::nn
