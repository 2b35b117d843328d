"""Mixed precision: autocast chooses dtypes, GradScaler keeps small gradients from vanishing in float16."""
from .autocast_mode import (autocast, autocast_decrement_nesting, autocast_increment_nesting,
                            clear_autocast_cache,
                            custom_bwd, custom_fwd, get_autocast_cpu_dtype, get_autocast_dtype,
                            get_autocast_gpu_dtype,
                            is_autocast_available, is_autocast_cache_enabled, is_autocast_cpu_enabled,
                            is_autocast_enabled, set_autocast_cache_enabled, set_autocast_cpu_dtype,
                            set_autocast_cpu_enabled, set_autocast_dtype, set_autocast_enabled,
                            set_autocast_gpu_dtype)
from .grad_scaler import GradScaler, _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
