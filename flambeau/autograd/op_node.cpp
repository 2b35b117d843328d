#include "flambeau/autograd/op_node.h"

#include <cctype>

#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/op/autocast.h"
#include "flambeau/op/op.h"

namespace fl {
namespace {

bool takes_tensors(ArgType t) { return t <= ArgType::OptTensorList; }

int slot_count(const OpInfo& op, const Value* args, int arg) {
  if (!takes_tensors(op.schema.args[arg].type)) return 0;
  return args[arg].tag() == Value::Tag::TensorList ? static_cast<int>(args[arg].tensors().size()) : 1;
}

int tensor_count(const Value& v) {
  if (v.is_tensor()) return 1;
  return v.tag() == Value::Tag::TensorList ? static_cast<int>(v.tensors().size()) : 0;
}

template <class T>
T* carve(char*& p, int count) {
  T* first = reinterpret_cast<T*>(p);
  for (int i = 0; i < count; ++i) new (first + i) T();
  p += sizeof(T) * count;
  return first;
}

template <class T>
void destroy(T* first, int count) {
  for (int i = 0; i < count; ++i) first[i].~T();
}

}  // namespace

/// What a formula sees during one pass; several passes over a node may run at once.
class OpNode::Context final : public GradCtx {
 public:
  Context(const OpNode& node, const Tensors& grads) : node_(node), grads_(grads) {}
  Tensor in(int arg, int item) const override {
    FL_ASSERT(node_.op_->saves.in_mask >> arg & 1, "{}: argument {} is not in saves", node_.op_->name(), arg);
    const int i = node_.slot(arg, item);
    return node_.inputs_[i].saved.unpack(node_, &node_.inputs_[i].spec, &node_.edges_[i]);
  }
  Tensor out(int index) const override {
    FL_ASSERT(node_.op_->saves.out_mask >> std::min(index, 31) & 1, "{}: output {} is not in saves",
              node_.op_->name(), index);
    return node_.outputs_[index].saved.unpack(node_);
  }
  Tensor grad(int index) const override {
    return grads_[index].defined() ? grads_[index] : gradient_ops::filled(node_.outputs_[index].spec, 0);
  }
  bool grad_defined(int index) const override { return grads_[index].defined(); }
  bool needs(int arg, int item) const override { return node_.wants(node_.slot(arg, item)); }
  const TensorSpec& in_spec(int arg, int item) const override {
    return node_.inputs_[node_.slot(arg, item)].spec;
  }
  const TensorSpec& out_spec(int index) const override { return node_.outputs_[index].spec; }
  bool is_tensor(int arg) const override {
    const int i = node_.first_slot_[arg];
    return i < node_.first_slot_[arg + 1] && node_.inputs_[i].is_tensor;
  }
  int list_size(int arg) const override { return node_.first_slot_[arg + 1] - node_.first_slot_[arg]; }
  const Value& arg(int i) const override { return node_.args_[i]; }

 private:
  const OpNode& node_;
  const Tensors& grads_;
};

Ref<OpNode> OpNode::make(const OpInfo& op, const Value* args, int output_count) {
  const int arg_count = op.arg_count();
  int slots = 0;
  for (int i = 0; i < arg_count; ++i) slots += slot_count(op, args, i);
  const size_t bytes = sizeof(OpNode) + slots * (sizeof(Edge) + sizeof(InputSlot)) +
                       output_count * sizeof(OutputSlot) + arg_count * sizeof(Value) +
                       (arg_count + 1) * sizeof(uint16_t);
  char* p = static_cast<char*>(::operator new(bytes));
  Ref<OpNode> node(new (p) OpNode());
  p += sizeof(OpNode);
  node->op_ = &op;
  node->output_count_ = output_count;
  node->edges_ = {carve<Edge>(p, slots), static_cast<size_t>(slots)};
  node->inputs_ = carve<InputSlot>(p, slots);
  node->outputs_ = carve<OutputSlot>(p, output_count);
  node->args_ = carve<Value>(p, arg_count);
  node->first_slot_ = carve<uint16_t>(p, arg_count + 1);
  int next = 0;
  for (int i = 0; i < arg_count; ++i) {
    node->first_slot_[i] = static_cast<uint16_t>(next);
    next += slot_count(op, args, i);
    if (tensor_count(args[i]) == 0) node->args_[i] = args[i];
  }
  node->first_slot_[arg_count] = static_cast<uint16_t>(next);
  return node;
}

OpNode::~OpNode() {
  drop_edges();
  destroy(edges_.data(), static_cast<int>(edges_.size()));
  destroy(inputs_, static_cast<int>(edges_.size()));
  destroy(outputs_, output_count_);
  destroy(args_, op_->arg_count());
}

int OpNode::slot(int arg, int item) const {
  const int i = first_slot_[arg] + item;
  FL_ASSERT(i < first_slot_[arg + 1], "{}: argument {} has no tensor {}", op_->name(), arg, item);
  return i;
}

void OpNode::save_inputs(const Value* args, bool in_place) {
  const TensorImpl* changed = in_place ? args[0].tensor().impl() : nullptr;
  auto save = [&](int i, int arg, const Tensor& t) {
    InputSlot& s = inputs_[i];
    s.is_tensor = t.defined();
    if (!s.is_tensor) return;
    s.spec = t.spec();
    edges_[i] = gradient_edge(t);
    if (!(op_->saves.in_mask >> arg & 1)) return;
    if (t.impl() != changed)
      s.saved.save(t, SavedTensor::Role::Memory);
    else if (arg == 0)
      s.saved = SavedTensor(gradient_ops::clone(t), SavedTensor::Role::Input);
    else
      s.saved = SavedTensor(t, SavedTensor::Role::Kept);
  };
  for (int arg = 0; arg < op_->arg_count(); ++arg) {
    const int first = first_slot_[arg], count = first_slot_[arg + 1] - first;
    if (count == 0) continue;
    if (args[arg].is_tensor()) {
      save(first, arg, args[arg].tensor());
    } else if (args[arg].tag() == Value::Tag::TensorList) {
      for (int k = 0; k < count; ++k) save(first + k, arg, args[arg].tensors()[k]);
    }
  }
}

void OpNode::add_output(int index, const Tensor& t, bool save) {
  outputs_[index].spec = t.spec();
  if (save) outputs_[index].saved = SavedTensor(t, SavedTensor::Role::Output, index);
}

Ref<OpNode> OpNode::record(const OpInfo& op, const Value* args, const Value* outs) {
  int count = 0;
  for (int i = 0; i < op.return_count(); ++i) count += tensor_count(outs[i]);
  Ref<OpNode> node = make(op, args, count);
  node->save_inputs(args, false);
  int index = 0;
  for (int i = 0; i < op.return_count(); ++i) {
    const bool save = op.saves.out_mask >> i & 1;
    if (outs[i].is_tensor()) {
      node->add_output(index++, outs[i].tensor(), save);
    } else if (outs[i].tag() == Value::Tag::TensorList) {
      for (const Tensor& t : outs[i].tensors()) node->add_output(index++, t, save);
    }
  }
  return node;
}

Ref<OpNode> OpNode::record_in_place(const OpInfo& functional, const Value* args) {
  Ref<OpNode> node = make(functional, args, 1);
  node->outputs_[0].spec = args[0].tensor().spec();
  node->save_inputs(args, true);
  return node;
}

void OpNode::save_in_place_output(const Tensor& self) {
  if (op_->saves.out_mask & 1) outputs_[0].saved = SavedTensor(self, SavedTensor::Role::Output, 0);
}

Tensors OpNode::apply(Tensors&& grads) {
  bool any = false;
  for (const Tensor& g : grads) any = any || g.defined();
  if (!any) return Tensors(edges_.size());
  if (op_->is(Tag::NonDifferentiable)) return Tensors(edges_.size());
  FL_CHECK(op_->grad, NotImplementedError, "derivative for {} is not implemented", op_->name());
  const NoAutocast off;  // gradients have the dtypes of what the forward pass computed
  Context context(*this, grads);
  Tensors result = op_->grad(context, context.grad(0));
  FL_ASSERT(result.size() <= edges_.size(), "the gradient of {} gave {} tensors for {} arguments",
            op_->name(), result.size(), edges_.size());
  result.resize(edges_.size());
  return result;
}

void OpNode::release_saved() {
  for (size_t i = 0; i < edges_.size(); ++i) inputs_[i].saved.release(*this);
  for (int i = 0; i < output_count_; ++i) outputs_[i].saved.release(*this);
}

std::string OpNode::name() const { return backward_name(*op_); }

std::string backward_name(const OpInfo& op) {
  int number = 0;
  for (const OpInfo& other : op_table().all()) {
    if (&other == &op) break;
    if (other.schema.name == op.schema.name && other.grad && !other.mutates()) ++number;
  }
  std::string s;
  bool upper = true;
  for (char c : op.schema.name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    s += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return fmt::format("{}Backward{}", s, number);
}

}  // namespace fl
