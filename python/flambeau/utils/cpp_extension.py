"""Extensions in C++ for PyTorch: they need its compiled library, and do not run on Flambeau."""
CUDA_HOME = ROCM_HOME = None
IS_HIP_EXTENSION = False


def _refuse(*args, **kwargs):
    raise RuntimeError("extensions in C++ for PyTorch can't be built for Flambeau: write the operator with "
                       "torch.library in Python, or in C++ over Flambeau's own headers")


load = load_inline = include_paths = library_paths = CppExtension = CUDAExtension = SyclExtension = _refuse


class BuildExtension:
    """Refuses to build."""

    def __init__(self, *args, **kwargs):
        _refuse()

    with_options = classmethod(lambda cls, **options: cls)


def check_compiler_ok_for_platform(compiler):
    return False


def is_ninja_available():
    return False
