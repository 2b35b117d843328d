// flambeau.compile: a Python function of tensors, captured by running it once.
#include "flambeau/compile/compile.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "module.h"

namespace fl::python {
namespace {

/// What the function returned when it ran last.
enum class Result : uint8_t { One, Tuple, List, None };

struct CompiledObject {
  Compiled compiled;
  std::shared_ptr<nb::object> function;
  std::shared_ptr<std::atomic<Result>> result;
};

Tensors returned(nb::handle h, Result& kind) {
  if (const Tensor* t = as_tensor(h)) {
    kind = Result::One;
    return {*t};
  }
  if (h.is_none()) {
    kind = Result::None;
    return {};
  }
  FL_CHECK(PyTuple_Check(h.ptr()) || PyList_Check(h.ptr()), TypeError,
           "a compiled function must return Tensors, got {}", python_type(h));
  kind = PyTuple_Check(h.ptr()) ? Result::Tuple : Result::List;
  Tensors out;
  for (nb::handle item : h)
    out.push_back(item.is_none() ? Tensor() : expect_tensor(item, "the result of a compiled function"));
  return out;
}

CompiledObject compile_function(nb::object function, CompileOptions options) {
  FL_CHECK(PyCallable_Check(function.ptr()), TypeError, "compile(): expected a function, got {}",
           python_type(function));
  auto shared = shared_object(std::move(function));
  auto result = std::make_shared<std::atomic<Result>>(Result::One);
  Callable callable = [shared, result](const Tensors& inputs) {
    nb::gil_scoped_acquire locked;
    Result kind = Result::One;
    try {
      const Tensors out = returned((*shared)(*wrap(inputs)), kind);
      *result = kind;
      return out;
    } catch (nb::python_error& e) {
      raise_in_library(e);
    }
  };
  return {compile(std::move(callable), std::move(options)), shared, result};
}

nb::object call(const CompiledObject& f, nb::args args) {
  Tensors inputs, outputs;
  for (nb::handle a : args) inputs.push_back(expect_tensor(a, "an argument of a compiled function"));
  {
    nb::gil_scoped_release unlocked;
    outputs = f.compiled(inputs);
  }
  switch (f.result->load()) {
    case Result::One:
      return wrap(outputs.at(0));
    case Result::Tuple:
      return wrap(outputs);
    case Result::List:
      return nb::list(wrap(outputs));
    case Result::None:
      break;
  }
  return nb::none();
}

nb::object explanation(const CompiledObject& f) {
  const Explanation e = f.compiled.explain();
  nb::dict out;
  nb::list graphs, fallbacks;
  for (const GraphReport& g : e.graphs) {
    nb::dict d;
    d["operators"] = g.operators;
    d["kernels"] = g.kernels;
    d["library_calls"] = g.library_calls;
    d["bytes_moved"] = g.bytes_moved;
    d["milliseconds"] = g.times.total();
    d["reason"] = nb::str(g.reason.c_str());
    d["graph"] = nb::str(g.graph.c_str());
    graphs.append(d);
  }
  for (const std::string& s : e.fallbacks) fallbacks.append(nb::str(s.c_str()));
  out["graphs"] = graphs;
  out["fallbacks"] = fallbacks;
  out["calls"] = e.calls;
  out["text"] = nb::str(e.str().c_str());
  return out;
}

}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<CompiledObject>(m, "CompiledFunction", nb::dynamic_attr())
      .def("__call__", call)
      .def("explain", explanation)
      .def_prop_ro("__wrapped__", [](CompiledObject& f) { return *f.function; });
  m.def(
      "_compile",
      [](nb::object function, std::string backend, std::optional<bool> dynamic, bool fullgraph,
         std::string mode, int recompile_limit, std::string name) {
        return compile_function(std::move(function), {std::move(backend), dynamic, fullgraph, std::move(mode),
                                                      recompile_limit, std::move(name)});
      },
      nb::arg("function"), nb::kw_only(), nb::arg("backend") = "native", nb::arg("dynamic") = nb::none(),
      nb::arg("fullgraph") = false, nb::arg("mode") = "default", nb::arg("recompile_limit") = 8,
      nb::arg("name") = "function");
  m.def("list_backends", list_backends);
}

}  // namespace fl::python
