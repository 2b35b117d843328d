// The node of one operator call.
#pragma once
#include "flambeau/autograd/saved_tensor.h"
#include "flambeau/op/op_def.h"

namespace fl {

/// One allocation: the node, then an edge and a slot for every tensor argument (a list's items one after the
/// other), a slot for every output, and the other arguments.
class OpNode final : public Node {
 public:
  /// Records a call of a functional operator that is done: args as passed, outs as returned.
  static Ref<OpNode> record(const OpInfo& op, const Value* args, const Value* outs);
  /// Records a call that is about to change args[0] in place. The output is saved by save_in_place_output().
  static Ref<OpNode> record_in_place(const OpInfo& functional, const Value* args);
  void save_in_place_output(const Tensor& self);
  ~OpNode() override;
  static void operator delete(void* p) { ::operator delete(p); }

  std::string name() const override;
  Tensors apply(Tensors&& grads) override;
  const TensorSpec& input_spec(int input) const override { return outputs_[input].spec; }
  int input_count() const override { return output_count_; }
  void release_saved() override;

  const OpInfo& op() const { return *op_; }
  const Value& argument(int i) const { return args_[i]; }

 private:
  class Context;
  struct InputSlot {
    TensorSpec spec;
    SavedTensor saved;
    bool is_tensor = false;
  };
  struct OutputSlot {
    TensorSpec spec;
    SavedTensor saved;
  };
  OpNode() = default;
  static Ref<OpNode> make(const OpInfo& op, const Value* args, int output_count);
  void save_inputs(const Value* args, bool in_place);
  void add_output(int index, const Tensor& t, bool save);
  int slot(int arg, int item) const;

  const OpInfo* op_ = nullptr;
  InputSlot* inputs_ = nullptr;
  OutputSlot* outputs_ = nullptr;
  Value* args_ = nullptr;
  uint16_t* first_slot_ = nullptr;  ///< of each argument, and one past the last
  int output_count_ = 0;
};

/// Names of an operator's node: "SumBackward1" for the second overload of sum that has a gradient.
std::string backward_name(const OpInfo& op);

}  // namespace fl
