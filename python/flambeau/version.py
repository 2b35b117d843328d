"""What this package is, as libraries ask for it."""
# The first part is the version of PyTorch whose interface this is.
__version__ = "2.15.0+flambeau.0.1.0"
debug = False
git_version = "flambeau"
cuda = hip = rocm = xpu = None
