"""How the library was built, as text."""
from . import _C
from .version import __version__

__all__ = ["parallel_info", "show"]


def show():
    """Libraries and versions."""
    from .backends import cpu

    return "\n".join([
        f"Flambeau, as PyTorch {__version__}, built with:", "  - C++20, LLVM",
        f"  - CPU capability: {cpu.get_cpu_capability()}", "  - CUDA: not used", ""])


def parallel_info():
    """Numbers of threads."""
    return f"Threads in an operator: {_C.get_num_threads()}\nOperators at once: 1\n"
