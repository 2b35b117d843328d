// Training steps: forward, loss, backward, optimiser step, zero_grad. Usage: models [NAME...]
// The models and their sizes are those of benchmarks/peer/models.py. The compiled step is captured whole.
#include "benchmarks/measure.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/ops/functions.h"
#include "gpt.h"
#include "resnet.h"

using namespace fl;

namespace {

/// A model with its optimiser and the function that both ways of running it call.
template <class Model, class Optimizer, class Options>
struct Training {
  Model model;
  Optimizer optimizer;
  Callable step;
  explicit Training(const Options& options) : optimizer(model.parameters(), options) {
    step = [this](const Tensors& batch) {
      const Tensor loss = model.forward(batch[0], batch[1]);
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();  // last, so that gradients don't outlive a step
      return Tensors{detach(loss)};
    };
  }
  Training(const Training&) = delete;
};

template <class Model, class Optimizer, class Options>
void measure(const std::string& name, const Options& options, const Tensors& batch) {
  Training<Model, Optimizer, Options> eager(options), compiled(options);
  const Compiled step = compile(compiled.step, {.fullgraph = true, .name = name});
  bench::report(name, {.eager = [&] { eager.step(batch); }, .compiled = [&] { step(batch); }, .budget_s = 8});
}

void gpt_small_train(const std::string& name) {
  const Tensors batch{randint(0, 8192, {4, 256}), randint(0, 8192, {4, 256})};
  measure<bench::Gpt, optim::AdamW>(name, optim::AdamWOptions{.lr = 3e-4}, batch);
}

void resnet18_train(const std::string& name, MemoryFormat format) {
  const Tensors batch{contiguous(randn({4, 3, 224, 224}), format), randint(0, 1000, {4})};
  measure<bench::ResNet18, optim::SGD>(name, optim::SGDOptions{.lr = 0.01, .momentum = 0.9}, batch);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(
      argc, argv,
      {{"gpt_small_train", gpt_small_train},
       {"resnet18_train", [](const std::string& n) { resnet18_train(n, MemoryFormat::Contiguous); }},
       {"resnet18_train_channels_last",
        [](const std::string& n) { resnet18_train(n, MemoryFormat::ChannelsLast); }}});
}
