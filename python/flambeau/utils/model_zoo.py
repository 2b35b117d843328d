"""Older names of torch.hub."""
from ..hub import load_state_dict_from_url as load_url

try:
    from tqdm import tqdm
except ImportError:  # shows nothing
    class tqdm:
        def __init__(self, iterable=(), **options):
            self._iterable = iterable

        def __iter__(self):
            return iter(self._iterable)

        def update(self, n):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

__all__ = ["load_url", "tqdm"]
