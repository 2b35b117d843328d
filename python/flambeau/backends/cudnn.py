"""cuDNN: not used on the CPU. The switches are kept."""
from ._switches import scope

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10
flags = scope(globals(), enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True)


def is_available():
    return False


def version():
    return None


def is_acceptable(tensor):
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Sets what is given; returns what was before."""
    names = dict(enabled=_enabled, benchmark=_benchmark, benchmark_limit=_benchmark_limit, deterministic=_deterministic,
                 allow_tf32=_allow_tf32)
    before = tuple(globals()[name] for name in names)
    globals().update({name: value for name, value in names.items() if value is not None})
    return before
