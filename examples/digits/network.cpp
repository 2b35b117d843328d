#include "network.h"

#include "flambeau/nn/activation.h"
#include "flambeau/nn/convolution.h"
#include "flambeau/nn/linear.h"
#include "flambeau/nn/normalization.h"
#include "flambeau/nn/sequential.h"
#include "flambeau/ops/functions.h"

namespace digits {

using fl::Tensor;
namespace nn = fl::nn;

namespace {

// x + two convolutions of x; a 1x1 convolution brings x to the new size.
class Block : public nn::Layer {
 public:
  Block(int64_t in, int64_t out, int64_t stride)
      : path_(register_module(
            "path",
            nn::Sequential{nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
                           nn::BatchNorm2d(out), nn::ReLU(),
                           nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(out)})) {
    if (in != out || stride != 1)
      shortcut_ = register_module(
          "shortcut",
          nn::Sequential{nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out)});
  }
  Tensor forward(const Tensor& x) override {
    return fl::relu(fl::add(path_(x), shortcut_ ? shortcut_(x) : x));
  }

 private:
  nn::Sequential path_;
  nn::Sequential shortcut_ = nn::Sequential(nullptr);
};

std::shared_ptr<nn::Layer> block(int64_t in, int64_t out, int64_t stride) {
  return std::make_shared<Block>(in, out, stride);
}

}  // namespace

ResNet::ResNet() {
  stem_ = register_module("stem", nn::Sequential{nn::Conv2d(1, 16, 3, {.padding = 1, .bias = false}),
                                                 nn::BatchNorm2d(16), nn::ReLU()});
  stages_ = register_module("stages", nn::Sequential{block(16, 16, 1), block(16, 16, 1), block(16, 32, 2),
                                                     block(32, 32, 1), block(32, 64, 2), block(64, 64, 1)});
  head_ = register_module("head", nn::Linear(64, 10));
}

Tensor ResNet::forward(const Tensor& x) {
  const Tensor features = stages_->forward(stem_->forward(x));
  return head_->forward(fl::mean(features, fl::IntList{2, 3}));
}

}  // namespace digits
