// Module: parameters, buffers and submodules under names.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flambeau/op/grad_ctx.h"
#include "flambeau/tensor/safetensors.h"

namespace fl::nn {

using NamedTensorList = std::vector<std::pair<std::string, Tensor>>;

/// What load_state_dict(..., strict = false) left out.
struct LoadResult {
  std::vector<std::string> missing_keys, unexpected_keys;
};

/// Derive from it (or from Layer), register what the module owns in the constructor, and write a `forward` of
/// any signature. Everything is listed in order of registration, a module's own tensors before those of its
/// submodules, each tensor once. Not copyable: others may hold its tensors.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Names as "stages.0.conv1.weight".
  NamedTensorList named_parameters() const;
  NamedTensorList named_buffers() const;
  Tensors parameters() const;
  Tensors buffers() const;
  std::vector<std::pair<std::string, Module*>> named_modules();  ///< this one first, under ""
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_children() const { return children_; }
  int64_t parameter_count() const;  ///< elements of all parameters

  virtual void train(bool on = true);  ///< Sets the mode of this module and everything below.
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad();  ///< Makes `.grad` of every parameter undefined.
  void requires_grad_(bool on = true);
  /// Calls f on every module, the submodules first.
  void apply(const std::function<void(Module&)>& f);

  /// Parameters and persistent buffers, detached, sharing memory with the module.
  NamedTensorList state_dict() const;
  /// Copies into the module's tensors, in place. Raises RuntimeError, with nothing changed, on a size that
  /// differs, and under `strict` on a missing or unexpected name; all of them in one message.
  LoadResult load_state_dict(const NamedTensors& state, bool strict = true);
  /// The state as a safetensors file. A tensor under several names is written under each.
  void save(const std::string& path) const;
  LoadResult load(const std::string& path, bool strict = true);

 protected:
  /// Registers a leaf that requires grad; an undefined tensor is a parameter that this module does without.
  /// All three raise ValueError on a name that is taken, empty or has a dot.
  Tensor register_parameter(const std::string& name, const Tensor& t, bool requires_grad = true);
  /// `persistent`: part of the state.
  Tensor register_buffer(const std::string& name, const Tensor& t, bool persistent = true);
  template <class M>
  M register_module(const std::string& name, M module) {
    add_child(name, static_cast<std::shared_ptr<Module>>(module));
    return module;
  }

 private:
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };
  void check_name(const std::string& name) const;
  void add_child(const std::string& name, std::shared_ptr<Module> child);
  template <class F>
  void visit(const std::string& prefix, const F& f) const;
  NamedTensorList state() const;

  std::vector<std::pair<std::string, Tensor>> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

/// A module from one tensor to one tensor, as Sequential takes it.
class Layer : public Module {
 public:
  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x) { return forward(x); }
};

/// A shared pointer to a module that is called like a function: nn::Linear is a Holder<nn::LinearImpl>.
template <class Impl>
class Holder {
 public:
  /// No module, until one is assigned. (A template, so that a literal 0 is never taken for a null pointer.)
  template <class T>
  requires std::is_same_v<T, std::nullptr_t> Holder(T) {}
  explicit Holder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl* operator->() const { return impl_.get(); }
  Impl& operator*() const { return *impl_; }
  explicit operator bool() const { return static_cast<bool>(impl_); }
  template <class... A>
  auto operator()(A&&... args) const {
    return impl_->forward(std::forward<A>(args)...);
  }
  template <class U>
  requires std::is_convertible_v<Impl*, U*>
  operator std::shared_ptr<U>() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace fl::nn
