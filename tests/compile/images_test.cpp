// Training steps of convolutional networks: images inside are laid out anew, and every bit stays that of
// eager mode.
#include <gtest/gtest.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/nn/nn.h"
#include "flambeau/ops/functions.h"
#include "flambeau/tensor/generator.h"

namespace fl {
namespace {

/// Convolutions with and without strides, of one tap, by groups, and transposed; batch norm, pooling, a
/// residual.
class Network : public nn::Module {
 public:
  Network() {
    register_module("stem", stem_);
    register_module("body", body_);
    register_module("shortcut", shortcut_);
    register_module("last", last_);
  }
  Tensor forward(const Tensor& images, const Tensor& target) {
    const Tensor x = max_pool2d(stem_(images), {3, 3}, {2, 2}, {1, 1});
    const Tensor y = last_(relu(add(body_(x), shortcut_(x))));
    return mean(square(sub(mean(y, Sizes{2, 3}, false), target)), Sizes{}, false);
  }

 private:
  nn::Sequential stem_{nn::Conv2d(3, 24, 7, nn::Conv2dOptions{.stride = 2, .padding = 3, .bias = false}),
                       nn::BatchNorm2d(24), nn::ReLU()};
  nn::Sequential body_{
      nn::Conv2d(24, 48, 3, nn::Conv2dOptions{.stride = 2, .padding = 1}), nn::BatchNorm2d(48), nn::ReLU(),
      nn::Conv2d(48, 48, 3, nn::Conv2dOptions{.padding = 1, .groups = 48}), nn::BatchNorm2d(48)};
  nn::Sequential shortcut_{nn::Conv2d(24, 48, 1, nn::Conv2dOptions{.stride = 2}), nn::BatchNorm2d(48)};
  nn::Sequential last_{nn::Conv2d(48, 20, 1), nn::ReLU(), nn::Conv2d(20, 17, 3)};
};

struct Training {
  Network network;
  optim::SGD optimizer{network.parameters(), {.lr = 0.05, .momentum = 0.9}};

  Tensors step(const Tensors& batch) {
    const Tensor loss = network.forward(batch[0], batch[1]);
    optimizer.zero_grad();
    backward(loss);
    optimizer.step();
    return {detach(loss)};
  }
};

class Images : public testing::TestWithParam<int64_t> {};

TEST_P(Images, StepsAreEagerModeToTheBit) {
  manual_seed(3);
  Training eager;
  manual_seed(3);
  Training compiled;
  const Compiled step = compile([&](const Tensors& batch) { return compiled.step(batch); },
                                {.fullgraph = true, .name = "step"});
  const int64_t size = GetParam();
  for (int64_t n : {4, 4, 6}) {
    const Tensors batch{randn({n, 3, size, size + 5}), randn({n, 17})};
    const double expected = eager.step(batch)[0].item().to_double();
    EXPECT_EQ(step(batch)[0].item().to_double(), expected);
  }
  const auto a = eager.network.named_parameters(), b = compiled.network.named_parameters();
  for (size_t k = 0; k < a.size(); ++k)
    EXPECT_EQ(a[k].second.to_vector<double>(), b[k].second.to_vector<double>()) << a[k].first;
  const auto c = eager.network.named_buffers(), d = compiled.network.named_buffers();
  for (size_t k = 0; k < c.size(); ++k)
    EXPECT_EQ(c[k].second.to_vector<double>(), d[k].second.to_vector<double>()) << c[k].first;
}

INSTANTIATE_TEST_SUITE_P(OfSize, Images, testing::Values(32, 77, 160));

}  // namespace
}  // namespace fl
