// Optimizer: changes parameters by their gradients.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "flambeau/op/grad_ctx.h"
#include "flambeau/tensor/safetensors.h"

namespace fl::optim {

/// A step is made of operators that change parameters and state in place, so that a step inside a captured
/// function becomes part of its graph. For the same reason the learning rate and the number of steps are
/// tensors (0-dim, float64, so that float32 and float64 parameters see the numbers that PyTorch computes): a
/// compiled step sees them change. State is made when a parameter first has a gradient.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter that has a gradient. No gradient of this is recorded.
  void step();
  void zero_grad();  ///< Makes `.grad` undefined.

  size_t group_count() const { return groups_.size(); }
  const Tensors& parameters(size_t group = 0) const { return groups_.at(group).parameters; }
  double learning_rate(size_t group = 0) const;
  void set_learning_rate(double rate, size_t group = 0);

  /// "0.exp_avg" and "0.step" for the first parameter of the first group, ..., "group0.lr". Shares memory
  /// with the optimiser.
  NamedTensors state_dict() const;
  /// Copies in place. Raises ValueError, with nothing changed, on names or sizes that don't fit.
  void load_state_dict(const NamedTensors& state);
  void save(const std::string& path) const { save_safetensors(path, state_dict()); }
  void load(const std::string& path) { load_state_dict(load_safetensors(path).tensors); }

 protected:
  /// One parameter with a gradient.
  struct Update {
    size_t index;  ///< in the list of all parameters
    Tensor parameter, gradient;
  };
  explicit Optimizer(std::vector<std::string> state_names) : state_names_(std::move(state_names)) {}
  /// Raises ValueError on an empty list, a parameter that is in a group already, or a tensor that is no leaf.
  void add_parameters(const Tensors& parameters, double learning_rate);
  virtual void update(size_t group, const std::vector<Update>& updates) = 0;

  const Tensor& rate(size_t group) const { return groups_[group].learning_rate; }
  /// The parameter's tensor under state_names[name], as large as the parameter, zero at first.
  const Tensor& state(const Update& u, size_t name);
  /// How many steps the parameter has had, this one counted. Parameters that always had gradients together
  /// share the tensor.
  const Tensor& steps(const Update& u) const { return parameters_[u.index].steps; }

 private:
  struct Group {
    Tensors parameters;
    Tensor learning_rate;
    size_t first;  ///< index of its first parameter
  };
  struct ParameterState {
    Tensor parameter, steps;
    Tensors tensors;  ///< one for each name; undefined until needed
  };
  void count_step(const std::vector<Update>& updates);
  void load_counts(const std::map<size_t, double>& counts);
  Tensor& slot(const std::string& name);

  std::vector<std::string> state_names_;
  std::vector<Group> groups_;
  std::vector<ParameterState> parameters_;
};

/// An optimiser whose groups have options of their own.
template <class Options>
class OptimizerWith : public Optimizer {
 public:
  void add_group(const Tensors& parameters, const Options& options) {
    check(options);
    add_parameters(parameters, options.lr);
    options_.push_back(options);
  }

 protected:
  using Optimizer::Optimizer;
  virtual void check(const Options& options) const = 0;
  const Options& options(size_t group) const { return options_[group]; }

 private:
  std::vector<Options> options_;
};

}  // namespace fl::optim
