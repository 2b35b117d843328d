#include "flambeau/autograd/saved_tensor.h"

#include "flambeau/autograd/saved_tensor_hooks.h"

namespace fl {
namespace {

struct HookPair {
  SavedTensorHooks::Pack pack;
  SavedTensorHooks::Unpack unpack;
};
std::vector<HookPair>& hook_stack() {
  thread_local std::vector<HookPair> stack;
  return stack;
}

/// Whether a tensor that no history can change under is kept itself: leaves and numbers. A trace knows real
/// tensors by their handle.
bool stays_itself(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  return impl.wrapped_number || (impl.autograd && impl.autograd->requires_grad) ||
         (dispatch_state().tracer && t.has_data());
}

/// "torch.FloatTensor [2, 3]", as PyTorch's messages name a tensor.
std::string describe(const Tensor& t) {
  std::string type;
  switch (t.dtype()) {
    case DType::Bool:
      type = "Bool";
      break;
    case DType::UInt8:
      type = "Byte";
      break;
    case DType::Int8:
      type = "Char";
      break;
    case DType::Int16:
      type = "Short";
      break;
    case DType::Int32:
      type = "Int";
      break;
    case DType::Int64:
      type = "Long";
      break;
    case DType::Float16:
      type = "Half";
      break;
    case DType::BFloat16:
      type = "BFloat16";
      break;
    case DType::Float32:
      type = "Float";
      break;
    case DType::Float64:
      type = "Double";
      break;
    case DType::Complex64:
      type = "ComplexFloat";
      break;
    case DType::Complex128:
      type = "ComplexDouble";
      break;
  }
  const bool cuda = t.device().type == DeviceType::CUDA;
  return fmt::format("torch.{}{}Tensor {}", cuda ? "cuda." : "", type, to_string(t.sizes()));
}

}  // namespace

void push_saved_tensor_hooks(SavedTensorHooks::Pack pack, SavedTensorHooks::Unpack unpack) {
  hook_stack().push_back({std::move(pack), std::move(unpack)});
}
void pop_saved_tensor_hooks() { hook_stack().pop_back(); }
bool saved_tensors_are_hooked() { return !hook_stack().empty(); }

SavedTensorHooks::SavedTensorHooks(Pack pack, Unpack unpack) {
  push_saved_tensor_hooks(std::move(pack), std::move(unpack));
}
SavedTensorHooks::~SavedTensorHooks() { pop_saved_tensor_hooks(); }

void SavedTensor::save(const Tensor& t, Role role, int output_nr) {
  saved_ = t.defined();
  if (!saved_) return;
  FL_CHECK(
      !t.impl()->inference, RuntimeError,
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference "
      "mode in computation tracked by autograd. To work around this, you can make a clone to get a normal "
      "tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  version_ = fl::version(t);
  const bool hooked = !hook_stack().empty();
  if ((role == Role::Memory || role == Role::Kept) && stays_itself(t)) role = Role::Input;
  if (role == Role::Memory && (hooked || t.impl()->trace)) role = Role::Kept;
  role_ = role;
  output_nr_ = output_nr;
  if (role == Role::Memory) {
    storage_ = t.storage();
    return;
  }
  if (role == Role::Input && !hooked) {
    tensor_ = t;
    return;
  }
  if (role == Role::Output) {
    has_history_ = is_differentiable(t.dtype());
  } else {
    Edge edge = gradient_edge(t);
    has_history_ = static_cast<bool>(edge);
    grad_fn_ = std::move(edge.node);
    output_nr_ = edge.input;
  }
  if (!hooked) {
    tensor_ = shallow_copy(t);
    return;
  }
  NoGradGuard no_grad;
  const HookPair hooks = hook_stack().back();
  packed_ =
      std::make_shared<Packed>(Packed{hooks.pack(role == Role::Output ? shallow_copy(t) : t), hooks.unpack});
}

void SavedTensor::check_version(const Tensor& t, const Node* maker, int nr) const {
  const int64_t now = fl::version(t);
  if (now == version_) return;
  const std::string origin =
      maker ? fmt::format(", which is output {} of {},", nr, short_name(maker->name())) : std::string();
  FL_RAISE(RuntimeError,
           "one of the variables needed for gradient computation has been modified by an inplace operation: "
           "[{}]{} is at version {}; expected version {} instead. Hint: enable anomaly detection to find the "
           "operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
           "check_nan=False).",
           describe(t), origin, now, version_);
}

Tensor SavedTensor::unpack(const Node& owner, const TensorSpec* spec, const Edge* edge) const {
  if (!saved_) return {};
  Tensor t;
  Ref<Storage> storage;
  std::shared_ptr<Packed> packed;
  Ref<Node> maker;
  {
    std::lock_guard lock(owner.mutex());
    FL_CHECK(
        !released_, RuntimeError,
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already been freed). Saved intermediate values of the graph are freed when you call "
        ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
        "graph a second time or if you need to access saved tensors after calling backward.");
    t = tensor_;
    storage = storage_;
    packed = packed_;
    maker = grad_fn_;
  }
  if (role_ == Role::Memory) {
    t = Tensor(*spec, std::move(storage));
    check_version(t, edge->node.get(), edge->input);
    if (*edge && dispatch_state().grad_enabled) set_history(t, edge->node, edge->input);
    return t;
  }
  if (role_ == Role::Output) maker = Ref<Node>(const_cast<Node*>(&owner));
  if (packed) {
    t = shallow_copy(packed->unpack(packed->value));
  } else if (role_ == Role::Input) {
    const AutogradMeta* m = meta(t);
    check_version(t, m ? m->grad_fn.get() : nullptr, m ? m->output_nr : 0);
    return t;
  } else {
    check_version(t, maker.get(), output_nr_);
    if (!has_history_) return t;
    t = shallow_copy(t);
  }
  if (has_history_) set_history(t, maker, output_nr_);
  return t;
}

void SavedTensor::release(const Node& owner) {
  if (!saved_) return;
  Tensor t;
  Ref<Storage> storage;
  std::shared_ptr<Packed> packed;
  Ref<Node> maker;
  {
    std::lock_guard lock(owner.mutex());
    released_ = true;
    std::swap(t, tensor_);
    std::swap(storage, storage_);
    std::swap(packed, packed_);
    std::swap(maker, grad_fn_);
  }
  release_iteratively(std::move(maker));
}

}  // namespace fl
