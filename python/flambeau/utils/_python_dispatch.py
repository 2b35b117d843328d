"""Modes below the operators: Flambeau has modes of functions only (torch.overrides.TorchFunctionMode)."""


class TorchDispatchMode:
    """A class that programs name; entering it raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        raise NotImplementedError("TorchDispatchMode is not supported: use torch.overrides.TorchFunctionMode")

    def __exit__(self, *error):
        return False


def is_traceable_wrapper_subclass(t):
    return False


def is_traceable_wrapper_subclass_type(t):
    return False


def _get_current_dispatch_mode():
    return None


def _get_current_dispatch_mode_stack():
    return []
