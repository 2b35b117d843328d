"""cuDNN: not used on the CPU. The switches are kept, and nothing reads them."""
from ._switches import scope, setter

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10
flags = scope(globals(), enabled=True, benchmark=False, benchmark_limit=10, deterministic=False,
              allow_tf32=True)
set_flags = setter(globals(), "enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available():
    return False


def version():
    return None


def is_acceptable(tensor):
    return False
