"""Tools around training: data, checkpoints, nested structures."""
import importlib

_SUBMODULES = {"_contextlib", "_device", "_python_dispatch", "_pytree", "backcompat", "benchmark",
               "checkpoint",
               "collect_env",
               "cpp_extension", "data", "deterministic", "dlpack", "hooks", "model_zoo",
               "weak"}


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
