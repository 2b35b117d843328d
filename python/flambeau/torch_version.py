"""TorchVersion: the version as text that is compared by its numbers."""
import functools

from .version import __version__ as internal_version

__all__ = ["TorchVersion"]


def _key(version):
    """What versions are ordered by: numbers, stage (before the release, the release), the part behind "+"."""
    import re

    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    if not isinstance(version, str):
        return None
    form = r"v?(\d+(?:\.\d+)*)[._-]?(?:(dev|a|b|rc|alpha|beta|c|pre)[._-]?(\d*))?(?:\+([\w.]+))?"
    found = re.fullmatch(form, str.__str__(version).strip().lower())
    if found is None:
        return None
    numbers = [int(n) for n in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    stages = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, None: 4}
    local = [(int(part), "") if part.isdigit() else (-1, part) for part in (found[4] or "").split(".")
             if part]
    return numbers, stages.get(found[2], 3), int(found[3] or 0), local


def _compared(name):
    as_text = getattr(str, name)

    @functools.wraps(as_text)
    def compare(self, other):
        mine, its = _key(self), _key(other)
        if mine is None or its is None:  # no versions: as text
            return as_text(str(self), str(other)) if isinstance(other, str) else NotImplemented
        return getattr(tuple, name)(mine, its)

    return compare


class TorchVersion(str):
    """A version such as "2.15.0": compared with texts, tuples and lists by its numbers, so that it is less
    than "2.100" and (3,). Texts that are no versions are compared as text.
    """

    __lt__, __le__, __gt__, __ge__, __eq__, __ne__ = map(
        _compared, ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"))
    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
