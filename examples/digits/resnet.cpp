#include "resnet.h"

#include "flambeau/ops/functions.h"

namespace digits {

using namespace fl;

Block::Block(int64_t in, int64_t out, int64_t stride)
    : conv1(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
      conv2(out, out, 3, {.padding = 1, .bias = false}),
      norm1(out),
      norm2(out),
      shortcut(nn::Identity()) {
  if (stride != 1 || in != out)
    shortcut =
        nn::Sequential{nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out)};
  register_module("conv1", conv1);
  register_module("norm1", norm1);
  register_module("conv2", conv2);
  register_module("norm2", norm2);
  register_module("shortcut", shortcut);
}

Tensor Block::forward(const Tensor& x) {
  const Tensor y = relu(norm1(conv1(x)));
  return relu(add(norm2(conv2(y)), shortcut->forward(x)));
}

ResNet::ResNet() {
  register_module("layers", layers);
  layers->push_back(nn::Conv2d(1, 16, 3, {.padding = 1, .bias = false}));
  layers->push_back(nn::BatchNorm2d(16));
  layers->push_back(nn::ReLU());
  int64_t channels = 16;
  for (const int64_t width : {16, 32, 64}) {
    layers->push_back(std::make_shared<Block>(channels, width, width == channels ? 1 : 2));
    layers->push_back(std::make_shared<Block>(width, width, 1));
    channels = width;
  }
  layers->push_back(nn::AdaptiveAvgPool2d(1));
  layers->push_back(nn::Flatten());
  layers->push_back(nn::Linear(64, 10));
}

}  // namespace digits
