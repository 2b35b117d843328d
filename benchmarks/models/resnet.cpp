#include "resnet.h"

#include "flambeau/ops/functions.h"

namespace bench {

using namespace fl;

namespace {

class Residual : public nn::Layer {
 public:
  Residual(int64_t in, int64_t out, int64_t stride)
      : conv1_(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
        conv2_(out, out, 3, {.padding = 1, .bias = false}),
        norm1_(out),
        norm2_(out),
        shortcut_(nn::Identity()) {
    if (stride != 1 || in != out)
      shortcut_ =
          nn::Sequential{nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out)};
    register_module("conv1", conv1_);
    register_module("norm1", norm1_);
    register_module("conv2", conv2_);
    register_module("norm2", norm2_);
    register_module("shortcut", shortcut_);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu(norm1_(conv1_(x)));
    return relu(add(norm2_(conv2_(y)), shortcut_->forward(x)));
  }

 private:
  nn::Conv2d conv1_, conv2_;
  nn::BatchNorm2d norm1_, norm2_;
  std::shared_ptr<nn::Layer> shortcut_;
};

}  // namespace

ResNet18::ResNet18()
    : stem_{nn::Conv2d(3, 64, 7, {.stride = 2, .padding = 3, .bias = false}), nn::BatchNorm2d(64), nn::ReLU(),
            nn::MaxPool2d(3, {.stride = nn::Pair(2), .padding = 1})} {
  register_module("stem", stem_);
  register_module("stages", stages_);
  register_module("classifier", classifier_);
  int64_t channels = 64;
  for (const int64_t width : {64, 128, 256, 512}) {
    stages_->push_back(nn::Sequential{std::make_shared<Residual>(channels, width, width == channels ? 1 : 2),
                                      std::make_shared<Residual>(width, width, 1)});
    channels = width;
  }
}

Tensor ResNet18::forward(const Tensor& images, const Tensor& labels) {
  const Tensor features = stages_(stem_(images));
  return nn::cross_entropy(classifier_(mean(features, IntList{2, 3})), labels);
}

}  // namespace bench
