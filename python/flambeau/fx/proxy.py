"""Values of a symbolic trace: there is none."""


class TraceError(ValueError):
    pass


class Proxy:
    """No value is one."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.fx.Proxy is not supported: Flambeau does not trace modules symbolically")


class Attribute(Proxy):
    pass


class ParameterProxy(Proxy):
    pass
