// Recurrent networks.
#pragma once
#include "flambeau/nn/module.h"

namespace fl::nn {

struct LSTMOptions {
  int64_t layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< (batch, length, features) in place of (length, batch, features)
  double dropout = 0;        ///< on the output of every layer but the last, in training
  bool bidirectional = false;
};
struct LSTMResult {
  Tensor output;        ///< (length, batch, directions * hidden)
  Tensor hidden, cell;  ///< (layers * directions, batch, hidden): after the last step
};
/// Hochreiter and Schmidhuber, "Long short-term memory", 1997, with a forget gate. Parameters as PyTorch
/// names and lays them out: weight_ih_l0 (4 hidden, in), weight_hh_l0 (4 hidden, hidden), bias_ih_l0,
/// bias_hh_l0, the gates in the order input, forget, cell, output; "_reverse" for the second direction.
class LSTMImpl : public Module {
 public:
  LSTMImpl(int64_t in, int64_t hidden, LSTMOptions options = {});
  void reset_parameters();
  /// hidden and cell: the state at the start, zero where undefined.
  LSTMResult forward(const Tensor& x, const Tensor& hidden = {}, const Tensor& cell = {});

 private:
  int64_t hidden_;
  LSTMOptions options_;
};
struct LSTM : Holder<LSTMImpl> {
  using Holder::Holder;
  LSTM(int64_t in, int64_t hidden, LSTMOptions options = {})
      : Holder(std::make_shared<LSTMImpl>(in, hidden, options)) {}
};

}  // namespace fl::nn
