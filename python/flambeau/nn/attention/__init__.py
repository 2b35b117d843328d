"""Which implementation scaled_dot_product_attention uses, and forms of attention."""
import contextlib
import enum

__all__ = ["SDPAParams", "SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's implementations. Here the operands alone decide which is used: the numbers are only kept."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_enabled = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
            SDPBackend.CUDNN_ATTENTION]


class SDPAParams:
    """The arguments by which PyTorch chooses an implementation."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_enabled)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Asks for some implementations inside. The operands decide here, so this only keeps the choice."""
    global _enabled
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in backends):
        raise AssertionError(f"'backends' has to be one SDPBackend or a list of them, not {backends!r}")
    before, _enabled = _enabled, list(dict.fromkeys(backends))
    try:
        yield
    finally:
        _enabled = before
