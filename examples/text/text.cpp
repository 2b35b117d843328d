// Trains a small GPT on the characters of a book, with a compiled step, then writes on from a prompt: the
// sequence grows with every character, and one compiled program serves all lengths. Usage: text [--steps N]
// [--seed N] [FILE]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/ops/functions.h"
#include "gpt.h"

using namespace fl;

namespace {

constexpr int64_t kContext = 128, kBatch = 16;
constexpr int kSampleLength = 100;
constexpr double kTemperature = 0.7;

struct Settings {
  int steps = 300;
  uint64_t seed = 0;
  std::string file = FLAMBEAU_EXAMPLE_DATA "/tom_sawyer.txt";
};

Settings settings_from(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && !std::strcmp(argv[i], "--steps")) {
      s.steps = std::max(1, std::atoi(argv[++i]));
    } else if (has_value && !std::strcmp(argv[i], "--seed")) {
      s.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argv[i][0] != '-') {
      s.file = argv[i];
    } else {
      std::fprintf(stderr, "usage: text [--steps N] [--seed N] [FILE]\n");
      std::exit(2);
    }
  }
  return s;
}

double uniform_number(Generator& generator) {
  return static_cast<double>(philox(generator.take(1), 0)[0]) / 4294967296.0;
}

/// Windows of the text at random places: (batch, context) of tokens, and the same one further on.
Tensors random_batch(const Tensor& text, Generator& generator) {
  const int64_t places = text.size(0).expect_int() - kContext;
  std::vector<int64_t> inputs, targets;
  const int64_t* tokens = text.data_as<int64_t>();
  for (int64_t b = 0; b < kBatch; ++b) {
    const auto from = static_cast<int64_t>(uniform_number(generator) * static_cast<double>(places));
    inputs.insert(inputs.end(), tokens + from, tokens + from + kContext);
    targets.insert(targets.end(), tokens + from + 1, tokens + from + 1 + kContext);
  }
  return {tensor_from(inputs, {kBatch, kContext}), tensor_from(targets, {kBatch, kContext})};
}

int64_t draw(const std::vector<float>& logits, Generator& generator) {
  const float top = *std::ranges::max_element(logits);
  std::vector<double> weights;
  double total = 0;
  for (float l : logits) total += weights.emplace_back(std::exp((l - top) / kTemperature));
  double left = uniform_number(generator) * total;
  for (size_t i = 0; i < weights.size(); ++i)
    if ((left -= weights[i]) < 0) return static_cast<int64_t>(i);
  return static_cast<int64_t>(weights.size()) - 1;
}

void train(text::Gpt& model, const Tensor& tokens, const Settings& settings) {
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  const Compiled step = compile(
      [&](const Tensors& batch) {
        const Tensor loss = nn::cross_entropy(flatten(model(batch[0]), 0, 1), flatten(batch[1]));
        backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        return Tensors{detach(loss)};
      },
      {.fullgraph = true, .name = "training step"});
  Generator generator({}, settings.seed);
  double shown = 0;
  for (int i = 1; i <= settings.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = step(random_batch(tokens, generator))[0].item().to_double();
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    shown = i == 1 ? loss : 0.9 * shown + 0.1 * loss;
    if (i == 1 || i % 25 == 0 || i == settings.steps)
      std::printf("step %4d   loss %.3f   %.0f ms%s\n", i, shown, ms, i == 1 ? " (with compilation)" : "");
    std::fflush(stdout);
  }
}

void sample(text::Gpt& model, const data::Characters& characters, const std::string& prompt, uint64_t seed) {
  model.eval();
  const Compiled next = compile(
      [&](const Tensors& inputs) {
        NoGradGuard no_grad;
        const Tensor logits = model(inputs[0]);
        return Tensors{fl::select(fl::select(logits, 0, 0), 0, -1)};
      },
      {.dynamic = true, .fullgraph = true, .name = "next character"});
  Generator generator({}, seed);
  std::vector<int64_t> sequence = characters.encode(prompt).to_vector<int64_t>();
  std::printf("\n%s", prompt.c_str());
  for (int i = 0; i < kSampleLength && static_cast<int64_t>(sequence.size()) < kContext; ++i) {
    const Tensor input = tensor_from(sequence, {1, static_cast<int64_t>(sequence.size())});
    sequence.push_back(draw(next({input})[0].to_vector<float>(), generator));
    std::printf("%s", characters.decode({sequence.back()}).c_str());
    std::fflush(stdout);
  }
  std::printf("\n\n%zu compile(s) for sequences of %zu to %zu characters\n", next.explain().graphs.size(),
              prompt.size(), sequence.size() - 1);
}

int run(const Settings& settings) {
  const std::string book = data::read_text(settings.file);
  const std::string prompt = "\"Tom, it was ";
  FL_CHECK(book.size() > static_cast<size_t>(kContext) + 1, ValueError,
           "'{}' is too short: {} characters, more than {} are needed", settings.file, book.size(),
           kContext + 1);
  const data::Characters characters(book + prompt);
  manual_seed(settings.seed);
  text::Gpt model({.vocabulary = characters.size(), .context = kContext});
  std::printf("%zu characters, %lld different; %lld parameters\n", book.size(),
              static_cast<long long>(characters.size()), static_cast<long long>(model.parameter_count()));
  train(model, characters.encode(book), settings);
  sample(model, characters, prompt, settings.seed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(settings_from(argc, argv));
  } catch (const Error& e) {
    std::fprintf(stderr, "text: %s\n", e.what());
    return 1;
  }
}
