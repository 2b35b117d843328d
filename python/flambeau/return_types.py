"""The types of named results: torch.return_types.max. Each exists once its operator has been called."""
from . import _C


def __getattr__(name):
    try:
        return _C._return_types[name]
    except KeyError:
        raise AttributeError(f"no result of type torch.return_types.{name} has been made yet") from None
