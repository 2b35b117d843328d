// A tensor kept for a gradient formula, as it was.
#pragma once
#include <any>
#include <memory>

#include "flambeau/autograd/meta.h"

namespace fl {

class SavedTensor {
 public:
  enum class Role : uint8_t {
    Input,     ///< of the node
    Output,    ///< of the node: kept without its history, which would be a cycle
    Replaced,  ///< an input that the call itself is about to change
  };
  SavedTensor() = default;
  /// Raises RuntimeError on an inference tensor. An undefined tensor is saved as such.
  SavedTensor(const Tensor& t, Role role, int output_nr = 0);
  SavedTensor(SavedTensor&&) = default;
  SavedTensor& operator=(SavedTensor&&) = default;
  ~SavedTensor() { release_iteratively(std::move(grad_fn_)); }
  /// The tensor with its history; `owner` is the node it was saved by. Raises RuntimeError if it was changed
  /// in place since, or released.
  Tensor unpack(const Node& owner) const;
  /// Gives the tensor up.
  void release(const Node& owner);

 private:
  struct Packed {
    std::any value;
    std::function<Tensor(const std::any&)> unpack;
  };
  void check_version(const Tensor& t, const Node* maker, int nr) const;

  Tensor tensor_;
  Ref<Node> grad_fn_;  ///< where tensor_ doesn't know it itself
  std::shared_ptr<Packed> packed_;
  int64_t version_ = 0;
  int output_nr_ = 0;
  Role role_ = Role::Input;
  bool saved_ = false, released_ = false, has_history_ = false;
};

}  // namespace fl
