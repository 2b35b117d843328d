"""Forward-mode differentiation is not supported: derivatives along a direction are in
autograd.functional.jvp.
"""


def _refuse(name):
    def function(*args, **kwargs):
        raise NotImplementedError(
            f"torch.autograd.forward_ad.{name} is not supported; use torch.autograd.functional.jvp")

    function.__name__ = name
    return function


dual_level, make_dual, unpack_dual = _refuse("dual_level"), _refuse("make_dual"), _refuse("unpack_dual")
