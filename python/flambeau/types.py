"""Names for annotations."""
from . import _C

__all__ = ["Device", "Number", "Storage"]
_int, _float, _bool, _complex = int, float, bool, complex
_dtype, _device, _layout = _C.dtype, _C.device, getattr(_C, "layout", object)
_size = list[int] | tuple[int, ...]
Number = int | float | bool
_Number = (int, float, bool)
Device = _C.device | str | int | None
Storage = getattr(_C, "UntypedStorage", object)
