"""What this package is, as libraries ask for it."""
from . import _C

# The first part is the version of PyTorch whose interface this is.
__version__ = "2.15.0+flambeau.0.1.0"
debug = False
git_version = "flambeau"
hip = rocm = xpu = None
# Of the headers that the library was built with; None without CUDA.
cuda = None
if _C._cuda.is_compiled:
    cuda = f"{_C._cuda.toolkit_version // 1000}.{_C._cuda.toolkit_version % 1000 // 10}"
