"""Parts of models: Module, layers, losses, their functions (nn.functional), first values (nn.init), tools."""
from flambeau.nn.parameter import (  # noqa: F401
    Buffer, Parameter, UninitializedBuffer, UninitializedParameter,
)
from flambeau.nn.modules import *  # noqa: F403
from flambeau.nn.modules import Module  # noqa: F401
from flambeau.nn.parallel import DataParallel  # noqa: F401
from flambeau.nn import (  # noqa: F401
    attention, common_types, functional, init, modules, parallel, parameter, utils,
)


def factory_kwargs(kwargs):
    """The arguments device, dtype and memory_format among kwargs; anything else there is an error."""
    if kwargs is None:
        return {}
    allowed = {"device", "dtype", "memory_format"}
    unknown = set(kwargs) - allowed - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {sorted(unknown)}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(allowed & set(kwargs)):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
