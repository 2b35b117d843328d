"""The types of named results: torch.return_types.max is that of torch.max(x, 0)."""
from . import _C


def __getattr__(name):
    found = None if name.startswith("__") else _C._result_type(name)
    if found is None:
        raise AttributeError(f"there is no type torch.return_types.{name}: no operator {name} has named "
                             "results")
    globals()[name] = found
    return found
