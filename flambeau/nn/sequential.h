// Layers one after the other.
#pragma once
#include <initializer_list>

#include "flambeau/nn/module.h"

namespace fl::nn {

/// Submodules are named "0", "1", ...
class SequentialImpl : public Layer {
 public:
  SequentialImpl() = default;
  explicit SequentialImpl(const std::vector<std::shared_ptr<Layer>>& layers);
  void push_back(std::shared_ptr<Layer> layer);
  Tensor forward(const Tensor& x) override;
  size_t size() const { return layers_.size(); }
  const std::shared_ptr<Layer>& operator[](size_t i) const { return layers_.at(i); }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};
/// nn::Sequential{nn::Linear(64, 32), nn::ReLU(), nn::Linear(32, 10)}
struct Sequential : Holder<SequentialImpl> {
  using Holder::Holder;
  Sequential() : Holder(std::make_shared<SequentialImpl>()) {}
  Sequential(std::initializer_list<std::shared_ptr<Layer>> layers)
      : Holder(std::make_shared<SequentialImpl>(std::vector<std::shared_ptr<Layer>>(layers))) {}
};

}  // namespace fl::nn
