"""The processor."""


def get_cpu_capability():
    """The widest vectors that kernels use."""
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read()
    except OSError:
        return "DEFAULT"
    return "AVX512" if "avx512f" in text else "AVX2" if "avx2" in text else "DEFAULT"
