"""Layers as functions: what the modules of flambeau.nn compute, with every parameter as an argument."""
from flambeau.nn import _reduction as _Reduction  # noqa: F401
from flambeau.nn.functional.activations import *  # noqa: F403
from flambeau.nn.functional.attentions import (  # noqa: F401
    _canonical_mask, _in_projection, _in_projection_packed, multi_head_attention_forward,
    scaled_dot_product_attention,
)
from flambeau.nn.functional.convolutions import *  # noqa: F403
from flambeau.nn.functional.embeddings import *  # noqa: F403
from flambeau.nn.functional.images import *  # noqa: F403
from flambeau.nn.functional.losses import *  # noqa: F403
from flambeau.nn.functional.normalizations import *  # noqa: F403
from flambeau.nn.functional.pooling import *  # noqa: F403
from flambeau.overrides import (  # noqa: F401
    handle_torch_function, has_torch_function, has_torch_function_unary, has_torch_function_variadic,
)
