#include "flambeau/nn/recurrent.h"

#include <algorithm>
#include <cmath>

#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

LSTMImpl::LSTMImpl(int64_t in, int64_t hidden, LSTMOptions options) : hidden_(hidden), options_(options) {
  FL_CHECK(hidden > 0 && options.layers > 0, ValueError,
           "expected a hidden size and a number of layers above 0, got {} and {}", hidden, options.layers);
  FL_CHECK(options.dropout >= 0 && options.dropout <= 1, ValueError,
           "dropout probability has to be between 0 and 1, but got {}", options.dropout);
  const int directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.layers; ++layer)
    for (int reverse = 0; reverse < directions; ++reverse) {
      const std::string suffix = fmt::format("_l{}{}", layer, reverse ? "_reverse" : "");
      const int64_t from = layer == 0 ? in : hidden * directions;
      // In the order in which the operator takes them.
      const auto parameter = [&](const char* name, IntList sizes) {
        register_parameter(name + suffix, empty_tensor(sizes, DType::Float32));
      };
      parameter("weight_ih", {4 * hidden, from});
      parameter("weight_hh", {4 * hidden, hidden});
      if (options.bias) parameter("bias_ih", {4 * hidden});
      if (options.bias) parameter("bias_hh", {4 * hidden});
    }
  reset_parameters();
}

void LSTMImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_));
  for (const Tensor& p : parameters()) init::uniform_(p, -bound, bound);
}

LSTMResult LSTMImpl::forward(const Tensor& x, const Tensor& hidden, const Tensor& cell) {
  FL_CHECK(x.dim() == 3, ValueError, "LSTM: expected input of 3 dimensions, got {}", x.dim());
  const int64_t states = options_.layers * (options_.bidirectional ? 2 : 1);
  const Sizes state_sizes{SymInt(states), x.size(options_.batch_first ? 0 : 1), SymInt(hidden_)};
  for (const Tensor* given : {&hidden, &cell})
    FL_CHECK(!given->defined() || std::ranges::equal(given->sizes(), state_sizes), RuntimeError,
             "expected a state of sizes {}, got {}", to_string(state_sizes), to_string(given->sizes()));
  const auto start = [&](const Tensor& given) { return given.defined() ? given : new_zeros(x, state_sizes); };
  auto [output, last_hidden, last_cell] =
      lstm(x, {start(hidden), start(cell)}, parameters(), options_.bias, options_.layers, options_.dropout,
           is_training(), options_.bidirectional, options_.batch_first);
  return {output, last_hidden, last_cell};
}

}  // namespace fl::nn
