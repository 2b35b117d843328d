"""All layers."""
from flambeau.nn.modules.module import Module  # noqa: F401, I001 (first: the others build on it)
from flambeau.nn.modules.activation import *  # noqa: F403
from flambeau.nn.modules.adaptive import *  # noqa: F403
from flambeau.nn.modules.batchnorm import *  # noqa: F403
from flambeau.nn.modules.channelshuffle import *  # noqa: F403
from flambeau.nn.modules.container import *  # noqa: F403
from flambeau.nn.modules.conv import *  # noqa: F403
from flambeau.nn.modules.distance import *  # noqa: F403
from flambeau.nn.modules.dropout import *  # noqa: F403
from flambeau.nn.modules.flatten import *  # noqa: F403
from flambeau.nn.modules.fold import *  # noqa: F403
from flambeau.nn.modules.instancenorm import *  # noqa: F403
from flambeau.nn.modules.linear import Bilinear, Identity, LazyLinear, Linear  # noqa: F401
from flambeau.nn.modules.loss import *  # noqa: F403
from flambeau.nn.modules.normalization import *  # noqa: F403
from flambeau.nn.modules.padding import *  # noqa: F403
from flambeau.nn.modules.pixelshuffle import *  # noqa: F403
from flambeau.nn.modules.pooling import *  # noqa: F403
from flambeau.nn.modules.rnn import *  # noqa: F403
from flambeau.nn.modules.sparse import *  # noqa: F403
from flambeau.nn.modules.transformer import *  # noqa: F403
from flambeau.nn.modules.upsampling import *  # noqa: F403
