// From a call to what runs: autograd, a tracer, shapes only, or the backend.
#pragma once
#include <string_view>
#include <vector>

#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// Runs one call. args: as many as the schema has; outs: as many as it returns.
void dispatch(const OpInfo& op, Value* args, Value* outs);
/// The same where autocast is off, or has done its part.
void dispatch_as_given(const OpInfo& op, Value* args, Value* outs);
/// The same below autograd.
void dispatch_below_autograd(const OpInfo& op, Value* args, Value* outs);
/// A call by boxed arguments; missing ones take their defaults.
std::vector<Value> call(const OpInfo& op, std::vector<Value> args);

/// Output specs: the shape rule, or the decomposition run on tensors without data. Never touches elements.
std::vector<TensorSpec> infer_outputs(const OpInfo& op, const Value* args);

/// Records calls instead of running them. Arguments may be real tensors (constants and parameters of the
/// traced program) or tensors that the tracer made.
class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void record(const OpInfo& op, Value* args, Value* outs) = 0;
  /// The `.grad` of a tensor is about to be set or cleared, or (adds) added to.
  virtual void before_grad_change(const Tensor&, [[maybe_unused]] bool adds = false) {}
};

/// Runs operators on tensors with elements; runtime/ implements it. The one call against the order of the
/// layers.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual void run(const OpInfo& op, Value* args, Value* outs) = 0;
  /// Writes the results of a functional operator into given tensors of the right sizes (in-place and out=
  /// forms).
  virtual void run_into(const OpInfo& functional, Value* args, const Tensor* outs) = 0;
};
void install_backend(Backend* b);
Backend& backend();

/// What autograd does around a call; autograd/ installs it.
using AutogradFn = void (*)(const OpInfo& op, Value* args, Value* outs);
void install_autograd(AutogradFn f);

/// Dispatch modes of this thread.
struct DispatchState {
  bool grad_enabled = true;
  bool inference = false;
  bool below_autograd = false;  ///< inside a call that autograd already saw
  Tracer* tracer = nullptr;
  bool shapes_only = false;  ///< every call gives tensors without data
};
DispatchState& dispatch_state();

/// Sets a field of the state for a scope: StateGuard g(&DispatchState::grad_enabled, false);
template <class T>
class StateGuard {
 public:
  StateGuard(T DispatchState::*field, T value) : field_(field), previous_(dispatch_state().*field) {
    dispatch_state().*field = value;
  }
  ~StateGuard() { dispatch_state().*field_ = previous_; }
  StateGuard(const StateGuard&) = delete;

 private:
  T DispatchState::*field_;
  T previous_;
};

/// A tensor without elements.
Tensor fake_tensor(const TensorSpec& spec);

/// The operator of a schema, all operators defined; raises InternalError if it is not among them.
const OpInfo& require_operator(std::string_view schema);
const OpInfo& in_place_form(const OpInfo& op);  ///< Raises NotImplementedError if there is none.

}  // namespace fl
