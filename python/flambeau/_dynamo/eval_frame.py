"""What compile() makes of a module: an object of the module's class with the same attributes."""
import functools

from ..compile_function import _captured
from ..nn import Module


class OptimizedModule(Module):
    """Every compiled module is an instance; its class lies over the module's own class as well.

    It shares its __dict__ with the module that it was made from: parameters, buffers, hooks and flags are the
    same, and so are the keys of state_dict().
    """

    def __init__(self, module, options):
        object.__setattr__(self, "__dict__", module.__dict__)
        self._set_options(options)

    def _set_options(self, options):
        # Not in __dict__, which belongs to both.
        object.__setattr__(self, "_compiled", _captured(type(self)._module_class.__call__, options))
        object.__setattr__(self, "_options", options)

    def __call__(self, *args, **kwargs):
        return self._compiled(self, *args, **kwargs)

    @property
    def _orig_mod(self):
        """The module, not compiled."""
        module = object.__new__(type(self)._module_class)
        object.__setattr__(module, "__dict__", self.__dict__)
        return module

    def explain(self):
        """Graphs, breaks and recompiles so far."""
        return self._compiled.explain()

    def _get_name(self):
        return type(self)._module_class.__name__

    def __reduce_ex__(self, protocol):
        return _rebuild, (self._orig_mod, self._options)

    def __deepcopy__(self, memo):
        from copy import deepcopy

        return _rebuild(deepcopy(self._orig_mod, memo), self._options)


def _rebuild(module, options):
    twin = object.__new__(compiled_class(type(module)))
    OptimizedModule.__init__(twin, module, options)
    return twin


@functools.lru_cache(maxsize=None)
def compiled_class(cls):
    """The class of compiled modules over a module's class."""
    if issubclass(cls, OptimizedModule):
        return cls
    own = {"__slots__": ("_compiled", "_options"), "_module_class": cls, "__module__": cls.__module__,
           "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (OptimizedModule, cls), own)
