"""Batches in page-locked memory, from which copies to a device run beside the host."""
import collections.abc
import copy
import warnings

import flambeau


def pin_memory(data, device=None):
    """The tensors inside nested containers, pinned; what has a method pin_memory() is asked for it."""
    if isinstance(data, flambeau.Tensor):
        return data.pin_memory() if data.device.type == "cpu" else data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        pinned = {k: pin_memory(v, device) for k, v in data.items()}
        if not isinstance(data, collections.abc.MutableMapping):
            return _rebuilt(data, pinned)
        result = copy.copy(data)
        result.update(pinned)
        return result
    if isinstance(data, tuple):
        pinned = [pin_memory(v, device) for v in data]
        return type(data)(*pinned) if hasattr(data, "_fields") else type(data)(pinned)
    if isinstance(data, collections.abc.Sequence):
        return _rebuilt(data, [pin_memory(v, device) for v in data])
    return data


def _rebuilt(data, contents):
    try:
        return type(data)(contents)
    except TypeError:  # its constructor wants something else
        return contents


def pinner(loader):
    """What a loader does with its batches: pins them if it was told to and there is a device."""
    if not loader.pin_memory:
        return lambda batch: batch
    if not flambeau.cuda.is_available():
        warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned "
                      "memory won't be used.", stacklevel=3)
        return lambda batch: batch
    return pin_memory
