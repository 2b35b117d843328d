"""Options that programs set and read back; nothing reads them here."""
from types import SimpleNamespace

from ..backends._switches import patcher

debug = max_autotune = coordinate_descent_tuning = cpp_wrapper = fallback_random = freezing = False
fx_graph_cache = epilogue_fusion = True
fx_graph_remote_cache = force_disable_caches = shape_padding = conv_1x1_as_mm = False
force_fuse_int_mm_with_mul = use_mixed_mm = unique_kernel_names = False
compile_threads = 1
triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=False, cudagraph_trees=False)
cpp = SimpleNamespace(threads=-1, simdlen=None)
trace = SimpleNamespace(enabled=False, graph_diagram=False)
patch = patcher(globals())
