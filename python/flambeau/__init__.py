"""Flambeau: PyTorch's tensors, operators, automatic differentiation and compilation, under PyTorch's names.

`import flambeau as torch` is enough for a program that says `torch`; flambeau.as_torch() makes `import torch`
mean Flambeau in modules that are imported after it, and `python -m flambeau script.py` runs a script so.
"""
import importlib as _importlib
import sys as _sys

from . import _C

if _C._cuda.is_compiled:
    # Where packages of CUDA's libraries are installed; they are opened when a GPU first needs them.
    _C._cuda.set_library_folders([f"{folder}/nvidia" for folder in _sys.path if folder])

from . import overrides
from . import _aliases, _dispatch_keys, _tensor

# Imported when they are first asked for.
_MODULES = (
    "accelerator", "amp", "ao", "autograd", "backends", "compiler", "cpu", "cuda", "distributed",
    "distributions", "export", "fft", "func", "futures", "fx", "hub", "jit", "library", "linalg",
    "masked", "mps", "multiprocessing", "nn", "onnx", "optim", "overrides", "package", "profiler",
    "quantization", "random", "return_types", "serialization", "signal", "sparse", "special", "storage",
    "testing", "torch_version", "types", "utils", "xpu", "_custom_ops", "_dynamo", "_inductor", "_ops",
    "_utils", "_VF", "_lowrank", "functional", "__config__",
)
# The compiled part's names; a module goes before an operator of its name.
globals().update({n: v for n, v in vars(_C).items() if not n.startswith("__") and n not in _MODULES})

from ._C import Size, Tensor, device, dtype, layout, memory_format
from ._composites import *
from ._functions import *
from ._overloads import *
from ._printing import get_printoptions, set_printoptions
from ._symbolic import *
from ._types import *
from ._windows import *
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .compile_function import compile
from .overrides import _DisableAll as DisableTorchFunction
from .overrides import _DisableSubclasses as DisableTorchFunctionSubclass
from .torch_version import __version__
from . import autograd, version

# Names that live in one of them.
_HOMES = {
    "serialization": ("save", "load"),
    "storage": ("TypedStorage", "UntypedStorage", "is_storage",
                *(f"{n}Storage" for n in _tensor.TYPE_NAMES.values())),
    "random": ("fork_rng", "get_rng_state", "set_rng_state", "thread_safe_generator"),
    "amp": ("autocast", "GradScaler", "is_autocast_enabled", "get_autocast_dtype", "is_autocast_cpu_enabled",
            "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "set_autocast_enabled", "set_autocast_dtype",
            "is_autocast_cache_enabled", "set_autocast_cache_enabled", "clear_autocast_cache",
            "autocast_increment_nesting", "autocast_decrement_nesting", "set_autocast_cpu_enabled",
            "set_autocast_cpu_dtype", "set_autocast_gpu_dtype", "_amp_foreach_non_finite_check_and_unscale_",
            "_amp_update_scale_"),
    "_ops": ("ops",),
    "_functional_forms": (
        "_batch_norm_with_update", "_log_softmax_backward_data", "_native_batch_norm_legit", "_safe_softmax",
        "_shape_as_tensor", "_softmax_backward_data", "_weight_norm", "affine_grid_generator",
        "alpha_dropout", "alpha_dropout_", "bilinear", "conv_tbc", "embedding_renorm_",
        "feature_alpha_dropout",
        "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "lu", "native_channel_shuffle",
        "max_pool2d_with_indices_backward", "native_dropout_backward", "norm_except_dim", "nuclear_norm",
        "_scaled_dot_product_flash_attention_for_cpu"),
    "_lowrank": ("pca_lowrank", "svd_lowrank"),
    "_control_flow": ("cond", "while_loop"),
    "sparse": ("dsmm", "sparse_coo_tensor", "spmm"),
    "_sparse_compressed": ("sparse_compressed_tensor", "sparse_csc_tensor", "sparse_csr_tensor"),
    "torch_import": ("as_torch",),
    "func": ("vmap",),
    "_draws": ("poisson", "binomial", "_standard_gamma", "_standard_gamma_grad", "_sample_dirichlet"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name):
    if name in _HOME_OF:
        value = getattr(_importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module 'torch' (Flambeau) has no module '{name}' yet") from None
    elif name == "torch":  # `from torch import torch` is what some programs say
        value = _sys.modules[__name__]
    elif name.startswith("_foreach_"):
        value = _importlib.import_module(f"{__name__}._foreach").make(name)
    else:
        from .torch_import import nearest

        raise AttributeError(f"module 'torch' (Flambeau) has no attribute '{name}'{nearest(name, globals())}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, *_HOME_OF})
