"""Tensors that belong to modules: Parameter, Buffer, and those whose shape the first input decides."""
from collections import OrderedDict

import flambeau as fl
from flambeau import Tensor, _utils

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


# Class -> the attribute that makes a tensor of another class count as one of it.
_marks = {}


class _Marked(type(Tensor)):
    """Tensors of other classes count as parameters (or buffers) too once they carry the class's mark."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        mark = _marks.get(cls)
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


def _as(cls, data, requires_grad):
    if data is None:
        data = fl.empty(0)
    if type(data) is Tensor or isinstance(data, (Parameter, Buffer)):
        return Tensor._make_subclass(cls, data.detach(), requires_grad)
    marked = data.detach().requires_grad_(requires_grad)
    if type(marked) is not type(data):
        raise RuntimeError(f"{type(data).__name__} cannot become a {cls.__name__}: its detach() has to give "
                           f"its own type, not {type(marked).__name__}.")
    setattr(marked, cls._mark, True)
    return marked


class Parameter(Tensor, metaclass=_Marked):
    """A tensor that a module registers as a parameter when it becomes an attribute of it."""

    _mark = "_is_param"
    __torch_function__ = fl._C._disabled_torch_function_impl  # results are plain tensors

    def __new__(cls, data=None, requires_grad=True):
        return _as(cls, data, requires_grad)

    def __init__(self, data=None, requires_grad=True):
        pass

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(memory_format=fl.preserve_format), self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + repr(self.detach().requires_grad_(self.requires_grad))

    def __reduce_ex__(self, protocol):
        state = (self.data, self.requires_grad, OrderedDict())
        if not self.__dict__:
            return _utils._rebuild_parameter, state
        return _utils._rebuild_parameter_with_state, (*state, self.__dict__)


class Buffer(Tensor, metaclass=_Marked):
    """A tensor that a module registers as a buffer when it becomes an attribute of it."""

    _mark = "_is_buffer"
    __torch_function__ = fl._C._disabled_torch_function_impl

    def __new__(cls, data=None, *, persistent=True):
        buffer = _as(cls, data, data is not None and data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __init__(self, data=None, *, persistent=True):
        pass


class UninitializedTensorMixin:
    """A tensor without shape or data until materialize()."""

    _without_shape = ("shape", "ndim", "numel", "size", "stride", "dim", "data_ptr", "storage_offset",
                      "tolist", "item", "nbytes")
    _allowed = ("to", "cpu", "half", "float", "double", "bfloat16", "char", "short", "int", "long", "copy_",
                "detach", "zero_", "is_floating_point", "is_complex", "requires_grad_")
    _cls_to_become = None

    def materialize(self, shape, device=None, dtype=None):
        """Becomes a tensor of this shape, elements not set. Device and dtype as before unless given."""
        data = fl.empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = self._cls_to_become
        self.data = data

    def share_memory_(self):
        raise RuntimeError("This uninitialized parameter or buffer has no memory to share yet: call "
                           "forward() once before share_memory().")

    def __getattribute__(self, name):
        if name in UninitializedTensorMixin._without_shape:
            raise RuntimeError(f"An uninitialized parameter or buffer has no {name} yet: call forward() once "
                               "before.")
        return super().__getattribute__(name)

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """Operators but those that need no shape are refused."""
        name = function.__name__
        if name.startswith("_") or name in UninitializedTensorMixin._allowed:
            return super().__torch_function__(function, types, args, kwargs or {})
        raise ValueError(f"{function} got an uninitialized parameter, of a lazy module perhaps: call "
                         "forward() once before.")


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module before its first input."""

    _cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, fl.empty(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad=True, device=None, dtype=None):
        pass


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer of a lazy module before its first input."""

    _cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = Tensor._make_subclass(cls, fl.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __init__(self, requires_grad=False, device=None, dtype=None, persistent=True):
        pass


_marks.update({Parameter: Parameter._mark, Buffer: Buffer._mark})


def is_lazy(tensor):
    return isinstance(tensor, UninitializedTensorMixin)
