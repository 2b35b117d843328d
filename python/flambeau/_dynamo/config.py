"""Options of PyTorch's capture that programs set. They are kept, and nothing reads
them: Flambeau's own are arguments of compile()."""
from ..backends._switches import patcher

suppress_errors = verbose = disable = allow_rnn = False
capture_scalar_outputs = capture_dynamic_output_shape_ops = False
dynamic_shapes = assume_static_by_default = automatic_dynamic_shapes = specialize_float = True
specialize_int = force_parameter_static_shapes = optimize_ddp = inline_inbuilt_nn_modules = True
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
error_on_recompile = fail_on_recompile_limit_hit = compiled_autograd = False
log_file_name = repro_after = debug_dir_root = None
allow_unspec_int_on_nn_module = skip_fsdp_guards = skip_nnmodule_hook_guards = True
patch = patcher(globals())
