"""What importlib.metadata says of "torch" under as_torch()."""
from importlib.metadata import Distribution

from .version import __version__


class _Torch(Distribution):
    def read_text(self, filename):
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"
        return None

    def locate_file(self, path):
        return path


def torch_distribution():
    return _Torch()
