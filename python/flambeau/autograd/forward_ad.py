"""Forward-mode differentiation is not supported: derivatives along a direction are in
autograd.functional.jvp.
"""


def _refuse(name):
    def function(*args, **kwargs):
        raise NotImplementedError(
            f"torch.autograd.forward_ad.{name} is not supported; use torch.autograd.functional.jvp")

    function.__name__ = name
    return function


dual_level, make_dual, unpack_dual, enter_dual_level, exit_dual_level, UnpackedDualTensor = map(_refuse, (
    "dual_level", "make_dual", "unpack_dual", "enter_dual_level", "exit_dual_level", "UnpackedDualTensor"))
