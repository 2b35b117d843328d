#include "flambeau/nn/sequential.h"

namespace fl::nn {

SequentialImpl::SequentialImpl(const std::vector<std::shared_ptr<Layer>>& layers) {
  for (const auto& layer : layers) push_back(layer);
}

void SequentialImpl::push_back(std::shared_ptr<Layer> layer) {
  register_module(std::to_string(layers_.size()), layer);
  layers_.push_back(std::move(layer));
}

Tensor SequentialImpl::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& layer : layers_) y = layer->forward(y);
  return y;
}

}  // namespace fl::nn
