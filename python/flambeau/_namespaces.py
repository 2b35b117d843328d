"""Modules whose functions are the operators with a prefix: linalg_svd is flambeau.linalg.svd."""
from . import _C


def operators_with_prefix(prefix):
    """The operators named `prefix...`, by what follows. Those that only other operators use are left out."""
    return {name.removeprefix(prefix): getattr(_C, name) for name in dir(_C)
            if name.startswith(prefix) and not name.endswith("_")}
