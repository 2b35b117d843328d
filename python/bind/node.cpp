// Nodes of the graph of autograd, as grad_fn shows them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <unordered_map>

#include "flambeau/autograd/accumulate.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/engine.h"
#include "flambeau/autograd/function.h"
#include "hooks.h"
#include "module.h"

namespace fl::python {
namespace {

std::unordered_map<const Node*, PyObject*>& node_objects() {
  static auto* map = new std::unordered_map<const Node*, PyObject*>;  // guarded by Python's lock
  return *map;
}

struct NodeObject {
  explicit NodeObject(Ref<Node> n) : node(std::move(n)) {}
  ~NodeObject() {
    node_objects().erase(node.get());
    release_iteratively(std::move(node));
  }
  Ref<Node> node;
};

/// The class of nodes of one name: type(y.grad_fn).__name__ == "MulBackward0".
nb::handle node_class(const std::string& name) {
  static auto* classes = new std::unordered_map<std::string, nb::object>;
  nb::object& known = (*classes)[name];
  if (!known.is_valid()) {
    nb::dict attributes;
    attributes["__module__"] = "flambeau.autograd.graph";
    known = nb::handle(reinterpret_cast<PyObject*>(&PyType_Type))(
        nb::str(name.c_str()), nb::make_tuple(nb::type<NodeObject>()), attributes);
  }
  return known;
}

nb::tuple next_functions(const NodeObject& n) {
  nb::list out;
  for (const Edge& e : n.node->edges()) out.append(nb::make_tuple(wrap_node(e.node), e.input));
  return nb::tuple(out);
}

/// A hook's new gradients in place of the old; None leaves them.
void replace_gradients(Tensors& gradients, nb::handle result) {
  if (result.is_none()) return;
  Tensors given = tensors_of(result, "a hook's result");
  FL_CHECK(given.size() == gradients.size(), RuntimeError,
           "a hook has changed the number of gradients: expected {}, got {}", gradients.size(), given.size());
  gradients = std::move(given);
}

HookHandleObject add_hook(NodeObject& n, nb::object hook) {
  return {
      register_node_hook(*n.node, [shared = shared_object(std::move(hook))](Tensors& in, const Tensors& out) {
        nb::gil_scoped_acquire locked;
        replace_gradients(in, (*shared)(wrap(in), wrap(out)));
      })};
}

HookHandleObject add_pre_hook(NodeObject& n, nb::object hook) {
  return {register_node_pre_hook(*n.node, [shared = shared_object(std::move(hook))](Tensors& out) {
    nb::gil_scoped_acquire locked;
    replace_gradients(out, (*shared)(wrap(out)));
  })};
}

/// Attributes of a Function's node are those of its ctx.
nb::object attribute(NodeObject& n, nb::handle name) {
  if (FunctionCtx* ctx = function_ctx(*n.node))
    if (const auto* held = std::any_cast<std::shared_ptr<nb::object>>(&ctx->object))
      return nb::getattr(**held, name);
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", n.node->name().c_str(), name.ptr());
  throw nb::python_error();
}

nb::object apply(NodeObject& n, nb::args grads) {
  Tensors given = tensors_of(grads, "a node's call");
  given.resize(static_cast<size_t>(n.node->input_count()));
  Tensors out;
  {
    nb::gil_scoped_release unlocked;
    out = n.node->apply(std::move(given));
  }
  if (out.size() == 1) return wrap(out[0]);
  return wrap(out);
}

}  // namespace

nb::object wrap_node(const Ref<Node>& node) {
  if (!node) return nb::none();
  const auto it = node_objects().find(node.get());
  if (it != node_objects().end()) return nb::borrow(it->second);
  const nb::handle type = node_class(node->name());
  nb::object out = nb::inst_alloc(type);
  new (nb::inst_ptr<NodeObject>(out)) NodeObject(node);
  nb::inst_mark_ready(out);
  node_objects().emplace(node.get(), out.ptr());
  return out;
}

void bind_nodes(nb::module_& m) {
  nb::class_<NodeObject>(m, "Node", nb::dynamic_attr(), nb::is_weak_referenceable())
      .def("name", [](NodeObject& n) { return n.node->name(); })
      .def("_sequence_nr", [](NodeObject& n) { return n.node->sequence(); })
      .def_prop_ro("next_functions", next_functions)
      .def_prop_ro("metadata",
                   [](nb::object self) {
                     nb::object dict = self.attr("__dict__");
                     return dict.attr("setdefault")("_metadata", nb::dict());
                   })
      .def_prop_ro("variable",
                   [](NodeObject& n) {
                     const auto* leaf = dynamic_cast<const AccumulateGrad*>(n.node.get());
                     if (!leaf) throw nb::attribute_error("variable: only AccumulateGrad has one");
                     return leaf->leaf();
                   })
      .def("_is_reached", [](NodeObject& n) { return is_reached(*n.node); })
      .def("register_hook", add_hook)
      .def("register_prehook", add_pre_hook)
      .def("__call__", apply)
      .def("__getattr__", attribute)
      .def("__hash__", [](NodeObject& n) { return reinterpret_cast<intptr_t>(n.node.get()) >> 4; })
      .def("__eq__",
           [](NodeObject& n, nb::handle o) {
             return nb::isinstance<NodeObject>(o) && nb::inst_ptr<NodeObject>(o)->node == n.node;
           })
      .def("__repr__", [](NodeObject& n) {
        return fmt::format("<{} object at {}>", n.node->name(), static_cast<const void*>(n.node.get()));
      });
  TensorMethods().def("_grad_fn", [](const Tensor& t) { return wrap_node(grad_fn(t)); });
  m.def("_gradient_edge", [](const Tensor& t) {
    const Edge e = gradient_edge(t);
    return nb::make_tuple(wrap_node(e.node), e.input);
  });
  m.def("_current_pass", current_pass);
  m.def(
      "_set_anomaly",
      [](nb::object observer) {
        // The observer gets every new node, as a user records it.
        if (observer.is_none()) return set_node_observer({});
        set_node_observer([shared = shared_object(std::move(observer))](const Ref<Node>& node) {
          nb::gil_scoped_acquire locked;
          (*shared)(wrap_node(node));
        });
      },
      nb::arg().none());
}

}  // namespace fl::python
