"""The fast path of attention layers: the switch is kept, and nothing reads it."""
_enabled = True


def get_fastpath_enabled():
    return _enabled


def set_fastpath_enabled(value):
    global _enabled
    _enabled = bool(value)
