"""What a call costs: tensors of 4 elements, from Python. Usage: calls.py [NAME...]"""
import torch
from measure import report, run


def compiled_call(name):
    x = torch.randn(4)
    compiled = torch.compile(lambda x: x + 1)
    report(name, compiled=lambda: compiled(x), calls=1000)


def eager_add(name):
    x, y = torch.randn(4), torch.randn(4)
    report(name, eager=lambda: x + y, calls=1000)


run({"compiled_call": compiled_call, "eager_add": eager_add})
