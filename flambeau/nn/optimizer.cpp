#include "flambeau/nn/optimizer.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/observed_grad.h"
#include "flambeau/ops/prims/binary.h"
#include "flambeau/ops/prims/ternary.h"

namespace fl::optim {

/// Zeros, made without an operator: state that begins while a step is captured is real all the same.
static Tensor zeros_as(const TensorSpec& like) {
  TensorSpec spec = like;
  spec.offset = 0;
  if (!is_non_overlapping_and_dense(spec)) spec.strides = contiguous_strides(IntList(spec.sizes));
  const Tensor t = empty_strided_tensor(spec);
  if (t.has_data() && t.numel() > 0)
    std::memset(t.data(), 0, static_cast<size_t>(spec.storage_bytes().expect_int()));
  return t;
}

static Tensor number(double value) {
  const Tensor t = empty_tensor({}, DType::Float64);
  *t.data_as<double>() = value;
  return t;
}

void Optimizer::add_parameters(const Tensors& parameters, double learning_rate) {
  FL_CHECK(!parameters.empty(), ValueError, "optimizer got an empty parameter list");
  FL_CHECK(learning_rate >= 0, ValueError, "invalid learning rate: {}", learning_rate);
  std::set<const TensorImpl*> known;
  for (const ParameterState& p : parameters_) known.insert(p.parameter.impl());
  for (const Tensor& p : parameters) {
    FL_CHECK(p.defined() && p.is_leaf(), ValueError, "can't optimize a non-leaf Tensor");
    FL_CHECK(known.insert(p.impl()).second, ValueError, "a parameter appears in more than one place");
  }
  groups_.push_back({parameters, number(learning_rate), parameters_.size()});
  for (const Tensor& p : parameters) parameters_.push_back({p, {}, Tensors(state_names_.size())});
}

void Optimizer::zero_grad() {
  for (const ParameterState& p : parameters_) p.parameter.set_grad({});
}

double Optimizer::learning_rate(size_t group) const {
  return *groups_.at(group).learning_rate.data_as<double>();
}
void Optimizer::set_learning_rate(double rate, size_t group) {
  *groups_.at(group).learning_rate.data_as<double>() = rate;
}

void Optimizer::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<Update> updates;
    for (size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      const Tensor& p = groups_[g].parameters[i];
      if (const Tensor gradient = observed_grad(p); gradient.defined())
        updates.push_back({groups_[g].first + i, p, gradient});
    }
    if (updates.empty()) continue;
    count_step(updates);
    update(g, updates);
  }
}

const Tensor& Optimizer::state(const Update& u, size_t name) {
  Tensor& t = parameters_[u.index].tensors[name];
  if (!t.defined()) t = zeros_as(u.parameter.spec());
  return t;
}

/// Adds 1 to the counters of these parameters. A counter whose sharers part ways is split first, by its value
/// now: what is captured runs on from here.
void Optimizer::count_step(const std::vector<Update>& updates) {
  const auto is_updated = [&](size_t i) {
    return std::ranges::any_of(updates, [&](const Update& u) { return u.index == i; });
  };
  Tensor fresh;
  Tensors counters;
  for (const Update& u : updates) {
    Tensor& mine = parameters_[u.index].steps;
    if (!mine.defined()) {
      if (!fresh.defined()) counters.push_back(fresh = number(0));
      mine = fresh;
      continue;
    }
    if (std::ranges::any_of(counters, [&](const Tensor& c) { return c.is_same(mine); })) continue;
    const Tensor shared = mine;
    std::vector<size_t> sharers;
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].steps.defined() && parameters_[i].steps.is_same(shared)) sharers.push_back(i);
    if (std::ranges::all_of(sharers, is_updated)) {
      counters.push_back(shared);
      continue;
    }
    const Tensor split = number(*shared.data_as<double>());
    for (size_t i : sharers)
      if (is_updated(i)) parameters_[i].steps = split;
    counters.push_back(split);
  }
  for (const Tensor& c : counters) add.in_place(c, 1);
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterState& p = parameters_[i];
    if (p.steps.defined()) state[fmt::format("{}.step", i)] = p.steps;
    for (size_t n = 0; n < state_names_.size(); ++n)
      if (p.tensors[n].defined()) state[fmt::format("{}.{}", i, state_names_[n])] = p.tensors[n];
  }
  for (size_t g = 0; g < groups_.size(); ++g) state[fmt::format("group{}.lr", g)] = groups_[g].learning_rate;
  return state;
}

/// The tensor that a name stands for, made if need be. Raises ValueError on any other name.
Tensor& Optimizer::slot(const std::string& name) {
  for (size_t g = 0; g < groups_.size(); ++g)
    if (name == fmt::format("group{}.lr", g)) return groups_[g].learning_rate;
  const size_t dot = name.find('.');
  const bool numbered = dot != std::string::npos && dot > 0 && dot < 10 &&
                        std::all_of(name.begin(), name.begin() + static_cast<int64_t>(dot),
                                    [](char c) { return c >= '0' && c <= '9'; });
  const size_t index = numbered ? std::stoul(name.substr(0, dot)) : parameters_.size();
  FL_CHECK(index < parameters_.size(), ValueError,
           "the state has '{}', but this optimizer has {} parameters in {} groups", name, parameters_.size(),
           groups_.size());
  const std::string field = name.substr(dot + 1);
  if (field == "step") return parameters_[index].steps;
  const auto found = std::ranges::find(state_names_, field);
  FL_CHECK(found != state_names_.end(), ValueError,
           "the state has '{}', which is no state of this kind of optimizer", name);
  return parameters_[index].tensors[static_cast<size_t>(found - state_names_.begin())];
}

void Optimizer::load_state_dict(const NamedTensors& given) {
  const auto is_number = [](const std::string& name) {
    return name.ends_with(".step") || name.ends_with(".lr");
  };
  for (const auto& [name, t] : given) {
    slot(name);
    const Sizes wanted = is_number(name) ? Sizes{} : parameters_[std::stoul(name)].parameter.sizes();
    FL_CHECK(std::ranges::equal(t.sizes(), wanted), ValueError, "'{}' should have sizes {}, the state has {}",
             name, to_string(wanted), to_string(t.sizes()));
  }
  NoGradGuard no_grad;
  std::map<size_t, double> counts;
  for (const auto& [name, t] : given) {
    if (name.ends_with(".step")) {
      counts[std::stoul(name)] = t.item().to_double();
      continue;
    }
    Tensor& mine = slot(name);
    if (!mine.defined()) mine = zeros_as(parameters_[std::stoul(name)].parameter.spec());
    copy.in_place(mine, t);
  }
  load_counts(counts);
}

/// A counter whose sharers all get one number is written to, so that captured steps see it; the others are
/// replaced, equal numbers by one tensor.
void Optimizer::load_counts(const std::map<size_t, double>& counts) {
  struct Loaded {
    Tensor before, after;
    double count;
  };
  Tensors before;
  for (const ParameterState& p : parameters_) before.push_back(p.steps);
  const auto agrees = [&](const Tensor& counter, double count) {
    for (size_t i = 0; i < before.size(); ++i) {
      const auto found = counts.find(i);
      if (before[i].is_same(counter) && (found == counts.end() || found->second != count)) return false;
    }
    return true;
  };
  std::vector<Loaded> loaded;
  for (const auto& [i, count] : counts) {
    auto known = std::ranges::find_if(
        loaded, [&](const Loaded& l) { return l.before.is_same(before[i]) && l.count == count; });
    if (known == loaded.end()) {
      const bool keep = before[i].defined() && agrees(before[i], count);
      known = loaded.insert(known, {before[i], keep ? before[i] : number(count), count});
      *known->after.data_as<double>() = count;
    }
    parameters_[i].steps = known->after;
  }
}

}  // namespace fl::optim
