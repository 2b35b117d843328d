"""A list of samples as one batch."""
import collections.abc
import copy
import re

import flambeau
from flambeau import Tensor

_NO_ARRAY = re.compile(r"[SaUO]")  # NumPy's dtypes of text and objects
_MESSAGE = "default_collate: cannot make a batch of {}, only of tensors, NumPy arrays, numbers, dicts, lists"


def _is_numpy(x):
    """Whether x is a NumPy array or number; NumPy is not imported for it."""
    return type(x).__module__ == "numpy" and not isinstance(x, (str, bytes))


def default_convert(data):
    """Every NumPy array inside as a tensor; everything else as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        return data if data.ndim and _NO_ARRAY.search(data.dtype.str) else flambeau.as_tensor(data)
    return _rebuilt(data, default_convert)


def _rebuilt(data, convert):
    """A container of its own kind with converted elements; other objects as they are."""
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {k: convert(v) for k, v in data.items()})
    if isinstance(data, tuple):
        return type(data)(*map(convert, data)) if hasattr(data, "_fields") else [convert(v) for v in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [convert(v) for v in data])
    return data


def _like(container, values):
    """values in a container of the given one's type, or plain if it can't be made."""
    try:
        if isinstance(container, collections.abc.MutableMapping) and type(container) is not dict:
            new = copy.copy(container)
            new.update(values)
            return new
        if isinstance(container, collections.abc.MutableSequence) and type(container) is not list:
            new = copy.copy(container)
            for i, value in enumerate(values):
                new[i] = value
            return new
        return type(container)(values)
    except TypeError:
        return values


def collate(batch, *, collate_fn_map=None):
    """As default_collate; collate_fn_map: {type: function(batch, collate_fn_map=...)}, for more types."""
    first = batch[0]
    if collate_fn_map is not None:
        if type(first) in collate_fn_map:
            return collate_fn_map[type(first)](batch, collate_fn_map=collate_fn_map)
        for kind, function in collate_fn_map.items():
            if isinstance(first, kind):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        return _like(first, {k: collate([d[k] for d in batch], collate_fn_map=collate_fn_map) for k in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("default_collate: the samples are lists of unequal length; they must have "
                               "equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else _like(first, columns)
    raise TypeError(_MESSAGE.format(type(first)))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    return flambeau.stack(list(batch), 0)


def collate_numpy_fn(batch, *, collate_fn_map=None):
    first = batch[0]
    if _NO_ARRAY.search(first.dtype.str):
        raise TypeError(_MESSAGE.format(first.dtype))
    if first.ndim == 0:
        return flambeau.as_tensor([x.item() for x in batch], dtype=flambeau.as_tensor(first).dtype)
    return flambeau.stack([flambeau.as_tensor(x) for x in batch], 0)


def collate_float_fn(batch, *, collate_fn_map=None):
    return flambeau.tensor(batch, dtype=flambeau.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return flambeau.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn,
                          str: collate_str_fn, bytes: collate_str_fn}


def default_collate(batch):
    """Tensors, arrays and numbers are stacked along a new first dimension; dicts, lists and tuples of them
    become dicts, lists and tuples of batches; text stays a list.
    """
    if _is_numpy(batch[0]):
        return collate_numpy_fn(batch)
    return collate(batch, collate_fn_map=_map_with_numpy())


def _map_with_numpy():
    """The map, with NumPy's types once somebody has imported NumPy."""
    import sys
    numpy = sys.modules.get("numpy")
    if numpy is not None and numpy.ndarray not in default_collate_fn_map:
        others = dict(default_collate_fn_map)
        default_collate_fn_map.clear()  # first: np.float64 is a float too
        default_collate_fn_map.update({Tensor: collate_tensor_fn, numpy.ndarray: collate_numpy_fn,
                                       numpy.str_: collate_str_fn, numpy.bytes_: collate_str_fn,
                                       numpy.generic: collate_numpy_fn, **others})
    return default_collate_fn_map
