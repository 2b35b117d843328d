"""A report of what runs here."""
import platform

from .. import _C
from ..version import __version__


def get_pretty_env_info():
    return "\n".join([f"Flambeau, as PyTorch {__version__}", f"Python: {platform.python_version()}",
                      f"OS: {platform.platform()}",
                      f"Processor: {platform.machine()}, {_C.get_num_threads()} threads", "CUDA: not used"])


def main():
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
