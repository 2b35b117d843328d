"""Training on several devices: names that programs ask for; this build trains on one device."""
from flambeau.nn.modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


def _refuse(name):
    raise NotImplementedError(f"{name}: training on several devices or processes is not supported by this "
                              "build of Flambeau. Train the module itself, on one device.")


class DistributedDataParallel(Module):
    """One replica of a module in each process. Raises: there are no process groups here."""

    def __init__(self, module, *args, **kwargs):
        super().__init__()
        _refuse("DistributedDataParallel")


class DataParallel(Module):
    """A module over several devices of this process. On the CPU, as in PyTorch, it just calls the module."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids:
            _refuse("DataParallel with device_ids")
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """module(*inputs, **module_kwargs) over several devices; here on one."""
    if device_ids:
        _refuse("data_parallel with device_ids")
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
