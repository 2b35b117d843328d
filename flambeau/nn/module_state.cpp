// The state of a module: as a list of names, and in files.
#include <set>

#include "flambeau/autograd/autograd.h"
#include "flambeau/nn/module.h"
#include "flambeau/ops/prims/ternary.h"
#include "flambeau/ops/prims/view.h"

namespace fl::nn {

/// Every name with the module's own tensor. Unlike named_parameters() a shared tensor comes under all its
/// names, so that files have them all.
NamedTensorList Module::state() const {
  NamedTensorList list;
  const std::function<void(const std::string&, const Module&)> add = [&](const std::string& prefix,
                                                                         const Module& m) {
    for (const auto& [name, t] : m.parameters_)
      if (t.defined()) list.emplace_back(prefix + name, t);
    for (const Buffer& b : m.buffers_)
      if (b.tensor.defined() && b.persistent) list.emplace_back(prefix + b.name, b.tensor);
    for (const auto& [name, child] : m.children_) add(prefix + name + ".", *child);
  };
  add("", *this);
  return list;
}

NamedTensorList Module::state_dict() const {
  NamedTensorList list = state();
  for (auto& [name, t] : list) t = detach(t);
  return list;
}

static std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "\"" : ", \"") + n + "\"";
  return text;
}

LoadResult Module::load_state_dict(const NamedTensors& given, bool strict) {
  const NamedTensorList own = state();
  LoadResult result;
  std::set<std::string> known;
  std::string problems;
  for (const auto& [name, t] : own) {
    known.insert(name);
    const auto found = given.find(name);
    if (found == given.end())
      result.missing_keys.push_back(name);
    else if (!std::ranges::equal(found->second.sizes(), t.sizes()))
      problems += fmt::format("\n\tsize mismatch for {}: the state has {}, the module has {}.", name,
                              to_string(found->second.sizes()), to_string(t.sizes()));
  }
  for (const auto& [name, t] : given)
    if (!known.contains(name)) result.unexpected_keys.push_back(name);
  if (strict && !result.unexpected_keys.empty())
    problems += "\n\tUnexpected key(s) in state_dict: " + quoted(result.unexpected_keys) + ".";
  if (strict && !result.missing_keys.empty())
    problems += "\n\tMissing key(s) in state_dict: " + quoted(result.missing_keys) + ".";
  FL_CHECK(problems.empty(), RuntimeError, "Error(s) in loading state_dict:{}", problems);

  NoGradGuard no_grad;
  for (const auto& [name, t] : own)
    if (const auto found = given.find(name); found != given.end()) copy.in_place(t, found->second);
  return result;
}

void Module::save(const std::string& path) const {
  NamedTensors tensors;
  for (const auto& [name, t] : state_dict()) tensors[name] = t;
  save_safetensors(path, tensors, {{"format", "pt"}});
}

LoadResult Module::load(const std::string& path, bool strict) {
  return load_state_dict(load_safetensors(path).tensors, strict);
}

}  // namespace fl::nn
