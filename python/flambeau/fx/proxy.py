"""Proxy and Tracer: a program run on values that stand for nodes, so that it leaves a graph."""
import functools
import inspect
import operator

from .. import _C
from ..nn import Module, Parameter, functional
from .graph import Graph
from .node import Node, map_aggregate

_wrapped = []  # (the globals of a function, its name): what wrap() made one operation


class TraceError(ValueError):
    """The program needs a value where there is none yet."""


class Proxy:
    """Stands for the value of a node: what is done with it becomes nodes."""

    def __init__(self, node, tracer=None):
        self.node, self.tracer = node, tracer

    def __repr__(self):
        return f"Proxy({self.node})"

    def __getattr__(self, name):
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __len__(self):
        raise TraceError(f"the length of {self.node} is not known while the program is traced")

    def __index__(self):
        raise TraceError(f"{self.node} is no number while the program is traced")

    __int__ = __float__ = __index__

    def __contains__(self, item):
        raise TraceError(f"whether {self.node} contains something is not known while the program is traced")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracer = _tracer_of(args, kwargs)
        name = getattr(function, "__name__", "")
        if getattr(_C.Tensor, name, None) is function:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)


def _tracer_of(args, kwargs):
    found = []
    map_aggregate((args, kwargs), lambda a: found.append(a.tracer) if isinstance(a, Proxy) else None)
    return found[0]


class Attribute(Proxy):
    """An attribute of a value: a node of its own once it is more than the name of a method."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    pass


def _operator_of(name, function, swapped=False):
    def method(self, *args):
        operands = (*args, self) if swapped else (self, *args)
        return self.tracer.create_proxy("call_function", function, operands, {})

    setattr(Proxy, name, method)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift",
              "and_", "or_", "xor"):
    _operator_of(f"__{_name.strip('_')}__", getattr(operator, _name))
    _operator_of(f"__r{_name.strip('_')}__", getattr(operator, _name), swapped=True)
for _name in ("eq", "ne", "lt", "gt", "le", "ge", "neg", "pos", "invert", "abs", "getitem", "setitem"):
    _operator_of(f"__{_name}__", getattr(operator, _name))
Proxy.__hash__ = object.__hash__


class Tracer:
    """Makes graphs of modules and functions: Tracer().trace(module)."""

    def __init__(self, autowrap_modules=(), autowrap_functions=(), param_shapes_constant=False):
        self.graph = self.root = None
        self._paths = {}

    # --- what programs override ---

    def is_leaf_module(self, m, module_qualified_name):
        """Whether calls of a submodule become one node. Here: of the library's own modules that are no
        containers.
        """
        from ..nn import ModuleList, Sequential

        own = type(m).__module__.split(".")[0] == __name__.split(".")[0]
        return own and not isinstance(m, (Sequential, ModuleList))

    def call_module(self, m, forward, args, kwargs):
        """The value of a call of a submodule."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        return Proxy(node, self)

    def iter(self, obj):
        raise TraceError(f"a loop over {obj.node}: how many items it has is not known while the program is "
                         "traced")

    def to_bool(self, obj):
        raise TraceError(f"a branch on {obj.node}: its value is not known while the program is traced")

    def keys(self, obj):
        return self.create_proxy("call_method", "keys", (obj,), {})

    # --- what they use ---

    def path_of_module(self, mod):
        """The path of a submodule of the root."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError(f"a {type(mod).__name__} was called that is no submodule of the traced module")

    def create_arg(self, a):
        """What a node holds in the place of an argument."""
        return map_aggregate(a, self._argument)

    def _argument(self, a):
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, _C.Tensor):
            return self._constant(a)
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return a

    def _constant(self, tensor):
        for name, value in (*self.root.named_parameters(), *self.root.named_buffers()):
            if value is tensor:
                return self.create_node("get_attr", name, (), {})
        if tensor not in self._constants:
            name = f"_tensor_constant{len(self._constants)}"
            setattr(self.root, name, tensor)
            self._constants[tensor] = name
        return self.create_node("get_attr", self._constants[tensor], (), {})

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """A new node as a Proxy."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def trace(self, root, concrete_args=None):
        """The graph of a module's forward() or of a function. concrete_args: values in the place of some
        arguments.
        """
        self.root, function = (root, type(root).forward) if isinstance(root, Module) else (Module(), root)
        self.graph = Graph(tracer_cls=type(self))
        self._constants = {}
        args, kwargs = self._placeholders(function, isinstance(root, Module), concrete_args or {})
        with _Patched(self):
            result = function(*args, **kwargs)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _placeholders(self, function, is_method, concrete):
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        args, kwargs = [], {}
        for k, (name, p) in enumerate(inspect.signature(function).parameters.items()):
            if k == 0 and is_method:
                value = self.root
            elif name in concrete:
                value = concrete[name]
            else:
                default = () if p.default is p.empty else (p.default,)
                value = self.create_proxy("placeholder", stars.get(p.kind, "") + name, default, {})
            if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs


class _Patched:
    """While a trace goes on, calls of modules, of nn.functional and of wrapped functions come to it."""

    def __init__(self, tracer):
        self.tracer, self.undo = tracer, []

    def __enter__(self):
        tracer, call = self.tracer, Module.__call__

        def call_module(module, *args, **kwargs):
            return tracer.call_module(module, functools.partial(call, module), args, kwargs)

        self._set(Module, "__call__", call_module)
        for name, function in list(vars(functional).items()):
            if inspect.isfunction(function) and not name.startswith("_"):
                self._set(functional, name, self._wrap(function))
        for names, name in _wrapped:
            if name in names:
                names[name] = self._wrap(names[name])
                self.undo.append((names.__setitem__, name, names[name].__wrapped__))
        return self

    def _set(self, owner, name, value):
        self.undo.append((functools.partial(setattr, owner), name, getattr(owner, name)))
        setattr(owner, name, value)

    def _wrap(self, function):
        @functools.wraps(function)
        def one_operation(*args, **kwargs):
            found = []
            map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
            if not found:
                return function(*args, **kwargs)
            return self.tracer.create_proxy("call_function", function, args, kwargs)

        return one_operation

    def __exit__(self, *error):
        for put, name, value in reversed(self.undo):
            put(name, value)


def wrap(fn_or_name):
    """Makes a function of the calling module (or its name) one operation in traces."""
    frame = inspect.currentframe().f_back
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


def symbolic_trace(root, concrete_args=None):
    """The module or function as a GraphModule, by running it on values that stand for nodes."""
    from .graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["Attribute", "Node", "Parameter", "ParameterProxy", "Proxy", "TraceError", "Tracer",
           "symbolic_trace", "wrap"]
