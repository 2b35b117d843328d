// A tensor kept for a gradient formula, as it was.
#pragma once
#include <any>
#include <memory>

#include "flambeau/autograd/meta.h"

namespace fl {

class SavedTensor {
 public:
  enum class Role : uint8_t {
    Input,   ///< of the node: kept itself. A cycle if it is changed in place by what comes from the node
    Kept,    ///< an input with the history that it has now, whatever changes it later
    Memory,  ///< the same, for a node that keeps the layout and the edge of its inputs anyway
    Output,  ///< of the node: kept without its history, which would be a cycle
  };
  SavedTensor() = default;
  SavedTensor(const Tensor& t, Role role, int output_nr = 0) { save(t, role, output_nr); }
  /// Of one that has nothing yet. Raises RuntimeError on an inference tensor. An undefined tensor is saved as
  /// such.
  void save(const Tensor& t, Role role, int output_nr = 0);
  SavedTensor(SavedTensor&&) = default;
  SavedTensor& operator=(SavedTensor&&) = default;
  ~SavedTensor() { release_iteratively(std::move(grad_fn_)); }
  /// The tensor with its history; `owner` is the node it was saved by. Raises RuntimeError if it was changed
  /// in place since, or released. spec, edge: of Role::Memory, what the tensor had when it was saved.
  Tensor unpack(const Node& owner, const TensorSpec* spec = nullptr, const Edge* edge = nullptr) const;
  /// Gives the tensor up.
  void release(const Node& owner);

 private:
  struct Packed {
    std::any value;
    std::function<Tensor(const std::any&)> unpack;
  };
  void check_version(const Tensor& t, const Node* maker, int nr) const;

  Tensor tensor_;
  Ref<Storage> storage_;  ///< of Role::Memory, in the place of tensor_
  Ref<Node> grad_fn_;     ///< where tensor_ doesn't know it itself
  std::shared_ptr<Packed> packed_;
  int64_t version_ = 0;
  int output_nr_ = 0;
  Role role_ = Role::Input;
  bool saved_ = false, released_ = false, has_history_ = false;
};

}  // namespace fl
