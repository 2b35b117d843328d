#include "training.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"
#include "resnet.h"

namespace digits {

using namespace fl;

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<int64_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// Percent of the images whose highest logit is their digit's.
double accuracy(ResNet& model, const Tensor& images, const Tensor& labels) {
  NoGradGuard no_grad;
  model.eval();
  const auto shown = argmax(model(images), 1).to_vector<int64_t>();
  const auto expected = labels.to_vector<int64_t>();
  model.train();
  int right = 0;
  for (size_t i = 0; i < shown.size(); ++i) right += shown[i] == expected[i];
  return 100.0 * right / static_cast<double>(shown.size());
}

/// On a terminal the line is written over; in a log only the last one of a training stays.
void show_progress(const char* how, int epoch, int epochs, double loss, double ms) {
  const bool terminal = isatty(fileno(stdout));
  if (!terminal && epoch < epochs) return;
  std::printf("%s%-8s  epoch %2d of %d   loss %.4f   %.1f ms a step", terminal ? "\r" : "", how, epoch,
              epochs, loss, ms);
  if (epoch == epochs) std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

Data load(const std::string& path, uint64_t seed) {
  const Tensor table = data::read_csv(path);
  const int64_t count = table.size(0).expect_int();
  Generator generator({}, seed);
  const std::vector<int64_t> order = data::permutation(count, generator);
  const auto split = order.begin() + count * 4 / 5;
  const auto part = [&](auto first, auto last) {
    const Tensor some = data::rows(table, {first, last});
    // Pixels from 0 to 16 become numbers around zero.
    const Tensor pixels = sub(fl::div(narrow(some, 1, 0, 64), 16.0), 0.3);
    return std::pair{contiguous(reshape(pixels, {some.size(0), 1, 8, 8})),
                     contiguous(to(fl::select(some, 1, 64), DType::Int64))};
  };
  Data d;
  std::tie(d.train_images, d.train_labels) = part(order.begin(), split);
  std::tie(d.test_images, d.test_labels) = part(split, order.end());
  return d;
}

Result train(const Data& data, const Settings& settings, bool compiled) {
  const auto start = std::chrono::steady_clock::now();
  reset_peak_memory({});
  manual_seed(settings.seed);
  ResNet model;
  optim::AdamW optimizer(model.parameters(),
                         {.lr = settings.learning_rate, .weight_decay = settings.weight_decay});
  optim::CosineAnnealingLR schedule(optimizer, settings.epochs);
  data::Batches batches(
      {data.train_images, data.train_labels},
      {.batch_size = settings.batch_size, .shuffle = true, .drop_last = true, .seed = settings.seed});

  // The whole step, with the optimiser's part, is one function: the eager run calls it, the compiled run
  // captures it as one graph. Gradients don't outlive it, so that a compiled step need not store them.
  const Callable step = [&](const Tensors& batch) {
    const Tensor loss = nn::cross_entropy(model(batch[0]), batch[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return Tensors{detach(loss)};
  };
  const Compiled compiled_step = compile(step, {.fullgraph = true, .name = "training step"});

  Result result;
  result.parameters = model.parameter_count();
  std::vector<double> times;
  for (int epoch = 1; epoch <= settings.epochs; ++epoch) {
    double total = 0;
    for (const Tensors& batch : batches) {
      const auto begin = std::chrono::steady_clock::now();
      const Tensor loss = (compiled ? compiled_step(batch) : step(batch))[0];
      total += loss.item().to_double();
      times.push_back(milliseconds_since(begin));
    }
    schedule.step();
    result.losses.push_back(total / static_cast<double>(batches.size()));
    show_progress(compiled ? "compiled" : "eager", epoch, settings.epochs, result.losses.back(),
                  median(times));
  }
  result.peak_bytes = allocator_stats({}).peak;
  result.first_ms = times.front();
  result.median_ms = median({times.begin() + 1, times.end()});
  result.accuracy = accuracy(model, data.test_images, data.test_labels);
  result.explanation = compiled_step.explain();
  result.seconds = milliseconds_since(start) / 1000;
  return result;
}

}  // namespace digits
