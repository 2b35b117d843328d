// Trains a network on real handwritten digits twice from one seed, eagerly and compiled, and compares.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/nn/data.h"
#include "flambeau/nn/loss.h"
#include "flambeau/nn/optimizers.h"
#include "flambeau/ops/functions.h"
#include "network.h"

using fl::Tensor;
using fl::Tensors;

namespace {

constexpr int kEpochs = 12, kBatch = 64, kTrain = 1437;
constexpr uint64_t kSeed = 7;

double milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Data {
  Tensor train_images, train_labels, test_images, test_labels;
};

// The rows in an order by seed; the first kTrain are for training.
Data load_digits() {
  const Tensor table = fl::data::read_csv(FLAMBEAU_SOURCE_DIR "/examples/digits/data/digits.csv");
  const int64_t rows = table.size(0).expect_int();
  const auto generator = fl::make_ref<fl::Generator>();
  generator->manual_seed(kSeed);
  const std::vector<int64_t> order = fl::data::permutation(rows, *generator);
  const Tensor shuffled = fl::data::rows(table, order);
  const Tensor pixels = fl::to(fl::slice(shuffled, 1, 0, 64), fl::DType::Float32);
  const Tensor images = fl::reshape(fl::sub(fl::div(pixels, 8), 1), {rows, 1, 8, 8});
  const Tensor labels = fl::to(fl::select(shuffled, 1, 64), fl::DType::Int64);
  auto part = [](const Tensor& t, int64_t from, int64_t to) {
    return fl::contiguous(fl::slice(t, 0, from, to));
  };
  return {part(images, 0, kTrain), part(labels, 0, kTrain), part(images, kTrain, rows),
          part(labels, kTrain, rows)};
}

struct Run {
  std::vector<double> epoch_losses, step_ms;
  double first_step_ms = 0, accuracy = 0;
  int64_t peak_bytes = 0;
  fl::Explanation explanation;
  double median_step() const {
    std::vector<double> sorted = step_ms;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2),
                     sorted.end());
    return sorted[sorted.size() / 2];
  }
};

double test_accuracy(digits::ResNet& network, const Data& data) {
  network.eval();
  fl::NoGradGuard no_grad;
  const Tensor predicted = fl::argmax(network.forward(data.test_images), 1);
  const auto p = predicted.to_vector<int64_t>(), want = data.test_labels.to_vector<int64_t>();
  int64_t right = 0;
  for (size_t i = 0; i < p.size(); ++i) right += p[i] == want[i];
  network.train();
  return 100.0 * static_cast<double>(right) / static_cast<double>(p.size());
}

Run train(const Data& data, bool compiled) {
  fl::manual_seed(kSeed);
  digits::ResNet network;
  fl::optim::SGD optimizer(network.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
  auto step = [&](const Tensors& batch) -> Tensors {
    optimizer.zero_grad();
    const Tensor loss = fl::nn::cross_entropy(network.forward(batch[0]), batch[1]);
    fl::backward(loss);
    optimizer.step();
    return {fl::detach(loss)};
  };
  // One line: the whole step, gradients and update included, becomes one program.
  const fl::Compiled fast = fl::compile(step, {.fullgraph = true, .name = "step"});

  Run run;
  fl::reset_peak_memory({});
  fl::data::Batches batches({data.train_images, data.train_labels},
                            {.batch_size = kBatch, .shuffle = true, .drop_last = true, .seed = kSeed});
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == kEpochs * 2 / 3) optimizer.set_learning_rate(0.005);
    double sum = 0;
    int64_t count = 0;
    for (const Tensors& batch : batches) {
      const double start = milliseconds();
      const Tensor loss = compiled ? fast(batch)[0] : step(batch)[0];
      sum += loss.item().to_double();
      const double took = milliseconds() - start;
      (count == 0 && epoch == 0) ? run.first_step_ms = took : (run.step_ms.push_back(took), 0);
      ++count;
    }
    run.epoch_losses.push_back(sum / static_cast<double>(count));
    fmt::print("{}{:>8} epoch {:2}/{}  loss {:.4f}{}", isatty(1) ? "\r" : "", compiled ? "compiled" : "eager",
               epoch + 1, kEpochs, run.epoch_losses.back(), isatty(1) && epoch + 1 < kEpochs ? "" : "\n");
    std::fflush(stdout);
  }
  run.peak_bytes = fl::allocator_stats({}).peak;
  run.accuracy = test_accuracy(network, data);
  run.explanation = fast.explain();
  return run;
}

}  // namespace

int main() {
  const Data data = load_digits();
  fmt::print("{} digits to learn from, {} to test with\n", kTrain, data.test_labels.size(0).expect_int());
  const Run eager = train(data, false), compiled = train(data, true);

  double difference = 0;
  fmt::print("\nepoch      eager   compiled\n");
  for (int e = 0; e < kEpochs; ++e) {
    difference = std::max(difference, std::abs(eager.epoch_losses[e] - compiled.epoch_losses[e]));
    fmt::print("{:5} {:10.6f} {:10.6f}\n", e + 1, eager.epoch_losses[e], compiled.epoch_losses[e]);
  }
  fmt::print("\n                        eager   compiled\n");
  fmt::print("test accuracy, %     {:8.2f}   {:8.2f}\n", eager.accuracy, compiled.accuracy);
  fmt::print("step, ms (median)    {:8.2f}   {:8.2f}\n", eager.median_step(), compiled.median_step());
  fmt::print("first step, ms       {:8.1f}   {:8.1f}\n", eager.first_step_ms, compiled.first_step_ms);
  fmt::print("peak memory, MB      {:8.1f}   {:8.1f}\n", static_cast<double>(eager.peak_bytes) / 1e6,
             static_cast<double>(compiled.peak_bytes) / 1e6);
  fmt::print("{}", compiled.explanation.str());
  fmt::print(
      "demo: accuracy {:.2f} %, largest loss difference {:.2g}, compiled/eager {:.2f}, first step {:.0f} "
      "ms\n",
      compiled.accuracy, difference, compiled.median_step() / eager.median_step(), compiled.first_step_ms);
  if (compiled.accuracy < 98 || difference > 1e-3) {
    fmt::print(stderr, "expected an accuracy of 98 % and equal losses\n");
    return 1;
  }
  return 0;
}
