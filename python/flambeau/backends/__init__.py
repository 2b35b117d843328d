"""What computes: switches and queries of libraries, where PyTorch has them."""
import importlib

_SUBMODULES = ("cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized",
               "xnnpack")


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
