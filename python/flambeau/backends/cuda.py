"""CUDA's libraries: what cuBLASLt may do with products of float32, and switches that nothing reads."""
import contextlib
from types import SimpleNamespace

from .. import _C
from ._precision import MatmulSettings

matmul = MatmulSettings()
cufft_plan_cache = SimpleNamespace(size=0, max_size=0, clear=lambda: None)
_kernels = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True,
            "fp16_bf16_reduction_math": False}


def is_built():
    """Whether this build knows CUDA; a device may still be missing."""
    return _C._cuda.is_compiled


def _query(kind):
    return lambda: _kernels[kind]


def _switch(kind):
    def enable(enabled):
        _kernels[kind] = bool(enabled)

    return enable


flash_sdp_enabled, enable_flash_sdp = _query("flash"), _switch("flash")
math_sdp_enabled, enable_math_sdp = _query("math"), _switch("math")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _query("mem_efficient"), _switch("mem_efficient")
cudnn_sdp_enabled, enable_cudnn_sdp = _query("cudnn"), _switch("cudnn")
fp16_bf16_reduction_math_sdp_allowed = _query("fp16_bf16_reduction_math")
allow_fp16_bf16_reduction_math_sdp = _switch("fp16_bf16_reduction_math")


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Sets the four switches within a scope."""
    before = dict(_kernels)
    _kernels.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient,
                    cudnn=enable_cudnn)
    try:
        yield
    finally:
        _kernels.update(before)


def is_flash_attention_available():
    return False


def can_use_flash_attention(params, debug=False):
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def preferred_linalg_library(backend=None):
    """Has no effect: there is no other library to choose."""
    return "default"


preferred_blas_library = preferred_rocm_fa_library = preferred_linalg_library
