#include <fmt/core.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/nn/activation.h"
#include "flambeau/nn/linear.h"
#include "flambeau/nn/loss.h"
#include "flambeau/nn/optimizers.h"
#include "flambeau/nn/sequential.h"
#include "flambeau/ops/functions.h"

int main() {
  fl::manual_seed(0);
  const fl::Tensor x = fl::randn({256, 8}), y = fl::sin(fl::sum(x, fl::IntList{1}, true));
  fl::nn::Sequential network{fl::nn::Linear(8, 64), fl::nn::Tanh(), fl::nn::Linear(64, 1)};
  fl::optim::Adam optimizer(network->parameters(), {.lr = 0.01});
  auto step = [&](const fl::Tensors& batch) -> fl::Tensors {
    optimizer.zero_grad();
    const fl::Tensor loss = fl::nn::mse_loss(network(batch[0]), batch[1]);
    fl::backward(loss);
    optimizer.step();
    return {fl::detach(loss)};
  };
  const fl::Compiled fast = fl::compile(step);  // forward, backward and update: one program
  for (int i = 0; i < 300; ++i) {
    const double loss = fast({x, y})[0].item().to_double();
    if (i % 100 == 99) fmt::print("step {}: loss {:.3f}\n", i + 1, loss);
  }
}
