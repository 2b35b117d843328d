"""What compile() makes of a module: an object of the module's class with the same attributes."""
import copy
import functools

from ..compile_function import captured
from ..compiler import disable
from ..nn import Module


class OptimizedModule(Module):
    """Every compiled module is an instance; its class lies over the module's own class as well.

    It shares its __dict__ with the module that it was made from, `_orig_mod`: parameters, buffers, hooks and
    flags are the same, and so are the keys of state_dict().
    """

    def __new__(cls, *args, **kwargs):
        """An object of the module's own class: what type(self)(...) means in its code."""
        if cls is OptimizedModule:
            raise TypeError("OptimizedModule(): compile(module) makes one")
        return cls._module_class(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        return self._compiled(self, *args, **kwargs)

    def explain(self):
        """Graphs, breaks and recompiles so far."""
        return self._compiled.explain()

    def _get_name(self):
        return type(self)._module_class.__name__

    def __reduce_ex__(self, protocol):
        return optimized, (self._orig_mod, self._options)

    def __copy__(self):
        return optimized(copy.copy(self._orig_mod), self._options)

    def __deepcopy__(self, memo):
        return optimized(copy.deepcopy(self._orig_mod, memo), self._options)


def optimized(module, options):
    """The module, its calls captured with the options of compile(); never captured if they are None."""
    if isinstance(module, OptimizedModule):
        module = module._orig_mod
    call = type(module).__call__
    twin = object.__new__(compiled_class(type(module)))
    values = {"__dict__": module.__dict__, "_orig_mod": module, "_options": options,
              "_compiled": disable(call) if options is None else captured(call, options)}
    for name, value in values.items():
        object.__setattr__(twin, name, value)
    return twin


@functools.lru_cache(maxsize=None)
def compiled_class(cls):
    """The class of compiled modules over a module's class."""
    own = {"__slots__": ("_orig_mod", "_compiled", "_options"),  # not in __dict__, which both have
           "_module_class": cls, "__module__": cls.__module__, "__qualname__": cls.__qualname__,
           "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (OptimizedModule, cls), own)
