#include "flambeau/nn/module.h"

#include <set>

namespace fl::nn {

void Module::check_name(const std::string& name) const {
  FL_CHECK(!name.empty() && name.find('.') == std::string::npos, ValueError,
           "a name in a module must not be empty or contain '.', got '{}'", name);
  bool taken = false;
  for (const auto& p : parameters_) taken |= p.first == name;
  for (const auto& b : buffers_) taken |= b.name == name;
  for (const auto& c : children_) taken |= c.first == name;
  FL_CHECK(!taken, ValueError, "the module already has something named '{}'; choose another name", name);
}

Tensor Module::register_parameter(const std::string& name, const Tensor& t, bool requires_grad) {
  check_name(name);
  if (t.defined() && requires_grad) Tensor(t).set_requires_grad(true);
  parameters_.emplace_back(name, t);
  return t;
}

Tensor Module::register_buffer(const std::string& name, const Tensor& t, bool persistent) {
  check_name(name);
  buffers_.push_back({name, t, persistent});
  return t;
}

void Module::add_child(const std::string& name, std::shared_ptr<Module> child) {
  check_name(name);
  FL_CHECK(child, ValueError, "expected a module for '{}', got an empty holder", name);
  FL_CHECK(child.get() != this, ValueError, "a module can't be its own submodule '{}'", name);
  children_.emplace_back(name, std::move(child));
}

/// f(prefix, module) for this module and everything below, in order.
template <class F>
void Module::visit(const std::string& prefix, const F& f) const {
  f(prefix, *this);
  for (const auto& [name, child] : children_) child->visit(prefix + name + ".", f);
}

NamedTensorList Module::named_parameters() const {
  NamedTensorList list;
  std::set<const TensorImpl*> seen;
  visit("", [&](const std::string& prefix, const Module& m) {
    for (const auto& [name, t] : m.parameters_)
      if (t.defined() && seen.insert(t.impl()).second) list.emplace_back(prefix + name, t);
  });
  return list;
}

NamedTensorList Module::named_buffers() const {
  NamedTensorList list;
  std::set<const TensorImpl*> seen;
  visit("", [&](const std::string& prefix, const Module& m) {
    for (const Buffer& b : m.buffers_)
      if (b.tensor.defined() && seen.insert(b.tensor.impl()).second)
        list.emplace_back(prefix + b.name, b.tensor);
  });
  return list;
}

static Tensors tensors_of(const NamedTensorList& list) {
  Tensors tensors;
  for (const auto& [name, t] : list) tensors.push_back(t);
  return tensors;
}
Tensors Module::parameters() const { return tensors_of(named_parameters()); }
Tensors Module::buffers() const { return tensors_of(named_buffers()); }

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& t : parameters()) count += t.numel().expect_int();
  return count;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> list;
  std::set<const Module*> seen;
  visit("", [&](const std::string& prefix, const Module& m) {
    if (seen.insert(&m).second)
      list.emplace_back(prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1), const_cast<Module*>(&m));
  });
  return list;
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad() {
  for (const Tensor& p : parameters()) p.set_grad({});
}

void Module::requires_grad_(bool on) {
  for (Tensor p : parameters()) p.set_requires_grad(on);
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (const auto& [name, child] : children_) child->apply(f);
  f(*this);
}

}  // namespace fl::nn
