// What Python leaves in the graph of autograd.
#pragma once
#include "flambeau/autograd/node.h"
#include "object.h"

namespace fl::python {

/// A hook that a user registered on a tensor.
struct PythonGradHook {
  std::shared_ptr<nb::object> function;
  Tensor operator()(const Tensor& gradient) const;
};

struct HookHandleObject {
  HookHandle handle;
};

/// A Tensor or a sequence of them; None gives an undefined one.
Tensors tensors_of(nb::handle h, const char* where);

/// Whether hooks for saved tensors are there in this thread.
bool saved_tensors_are_hooked();

/// The object of a node: one at a time, of a class with the node's name. None for null.
nb::object wrap_node(const Ref<Node>& node);
void bind_nodes(nb::module_& m);
void bind_functions(nb::module_& m);

/// What a node keeps of Python's and only it keeps, for the garbage collector.
int visit_node(Node& node, visitproc visit, void* arg);

}  // namespace fl::python
