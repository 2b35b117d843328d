#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/engine.h"
#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/autograd/meta.h"

namespace fl {
namespace {

/// As Python prints a shape.
std::string shape(const Tensor& t) { return fmt::format("torch.Size({})", to_string(t.sizes())); }

Tensors root_gradients(const Tensors& outputs, Tensors given) {
  if (given.empty()) given.resize(outputs.size());
  FL_CHECK(given.size() == outputs.size(), RuntimeError, "got {} tensors and {} gradients", outputs.size(),
           given.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    Tensor& g = given[i];
    if (g.defined()) {
      FL_CHECK(gradient_ops::same_sizes(g.sizes(), out.sizes()), RuntimeError,
               "Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}.", i,
               shape(g), i, shape(out));
      FL_CHECK(
          is_complex(g.dtype()) == is_complex(out.dtype()), RuntimeError,
          "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch "
          "in dtype: grad_output[{}] has a dtype of torch.{} and output[{}] has a dtype of torch.{}.",
          i, name(g.dtype()), i, name(out.dtype()));
      continue;
    }
    if (!out.requires_grad()) continue;
    FL_CHECK(out.numel() == SymInt(1), RuntimeError,
             "grad can be implicitly created only for scalar outputs");
    FL_CHECK(is_floating(out.dtype()), RuntimeError,
             "grad can be implicitly created only for real scalar outputs but got torch.{}",
             name(out.dtype()));
    g = gradient_ops::filled(out.spec(), 1);
  }
  return given;
}

BackwardPass make_pass(const Tensors& outputs, Tensors gradients, const BackwardOptions& options) {
  BackwardPass pass;
  for (const Tensor& t : outputs)
    FL_CHECK(t.defined(), RuntimeError, "expected tensors, got an undefined one");
  pass.root_grads = root_gradients(outputs, std::move(gradients));
  for (size_t i = 0; i < outputs.size(); ++i) {
    pass.roots.push_back(gradient_edge(outputs[i]));
    FL_CHECK(pass.roots.back(), RuntimeError,
             "element {} of tensors does not require grad and does not have a grad_fn", i);
    Tensor& g = pass.root_grads[i];
    if (g.defined() && g.dtype() != outputs[i].dtype())
      g = gradient_ops::fit(g, outputs[i].spec(), *pass.roots.back().node, 0);
  }
  pass.create_graph = options.create_graph;
  pass.keep_graph = options.retain_graph.value_or(options.create_graph);
  return pass;
}

}  // namespace

void backward(const Tensors& tensors, Tensors gradients, BackwardOptions options,
              const std::optional<Tensors>& inputs) {
  FL_CHECK(!inputs || !inputs->empty(), RuntimeError, "`inputs` argument to `backward()` cannot be empty.");
  BackwardPass pass = make_pass(tensors, std::move(gradients), options);
  if (inputs) {
    for (const Tensor& t : *inputs) {
      retain_grad(t);
      pass.wanted.push_back(gradient_edge(t));
    }
  }
  run_backward(std::move(pass));
}

void backward(const Tensor& t, const Tensor& gradient, BackwardOptions options,
              const std::optional<Tensors>& inputs) {
  backward(Tensors{t}, Tensors{gradient}, options, inputs);
}

Tensors grad(const Tensors& outputs, const Tensors& inputs, Tensors grad_outputs, BackwardOptions options,
             bool allow_unused) {
  FL_CHECK(!inputs.empty(), RuntimeError, "`inputs` argument to `grad()` cannot be empty.");
  BackwardPass pass = make_pass(outputs, std::move(grad_outputs), options);
  pass.accumulate = false;
  for (const Tensor& t : inputs) {
    FL_CHECK(t.defined() && t.requires_grad(), RuntimeError,
             "One of the differentiated Tensors does not require grad");
    pass.wanted.push_back(gradient_edge(t));
  }
  Tensors result = run_backward(std::move(pass));
  for (size_t i = 0; i < result.size(); ++i)
    FL_CHECK(allow_unused || result[i].defined(), RuntimeError,
             "The differentiated Tensor at index {} appears to not have been used in the graph. Set "
             "allow_unused=True if this is the desired behavior.",
             i);
  return result;
}

HookHandle register_node_pre_hook(Node& node, NodePreHook hook) {
  return node.make_hooks().pre.add(std::move(hook));
}
HookHandle register_node_hook(Node& node, NodePostHook hook) {
  return node.make_hooks().post.add(std::move(hook));
}

}  // namespace fl
