"""The search for the operator whose gradient fails."""
from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_state = {"on": False, "check_nan": True}


def _observe(node):
    """Remembers where in the program a node was made, and looks at the gradients that it gives."""
    import traceback

    lines = "".join(traceback.format_stack()[:-1])

    def check(grad_inputs, grad_outputs):
        if not _state["check_nan"]:
            return
        for k, g in enumerate(grad_inputs):
            if g is not None and bool(_C.isnan(g).any()):
                import warnings

                warnings.warn(f"{node_name} made nan values. It comes from this forward "
                              f"call:\n{lines}", stacklevel=2)
                raise RuntimeError(f"Function '{node_name}' returned nan values in its {k}th output.")

    node_name = node.name()
    node.register_hook(check)


def _switch(on, check_nan):
    before = dict(_state)
    _state.update(on=bool(on), check_nan=check_nan)
    _C._set_anomaly(_observe if on else None)
    return before


class detect_anomaly:
    """Inside, backward raises RuntimeError at the first nan, and warns with the lines of its operator."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        self.prev = None

    def __enter__(self):
        self.prev = _switch(True, self.check_nan)

    def __exit__(self, *error):
        _switch(self.prev["on"], self.prev["check_nan"])


class set_detect_anomaly:
    """Switches the search on or off; as a context manager, gives the earlier mode back at the end."""

    def __init__(self, mode, check_nan=True):
        self.prev = _switch(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *error):
        _switch(self.prev["on"], self.prev["check_nan"])


def is_anomaly_enabled():
    return _state["on"]


def is_anomaly_check_nan_enabled():
    return _state["check_nan"]
