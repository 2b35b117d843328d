"""Single kernels, forward only, float32, and one product of matrices. Usage: kernels.py [NAME...]"""
import torch
import torch.nn.functional as F
from measure import report, run


def kernel(function, *shapes):
    def benchmark(name):
        inputs = [torch.randn(shape) for shape in shapes]
        compiled = torch.compile(function)
        with torch.no_grad():
            report(name, lambda: function(*inputs), lambda: compiled(*inputs))
    return benchmark


def pointwise_chain(x, y):
    return F.gelu(x * y + 1, approximate="tanh") * torch.sigmoid(y)


def layernorm_residual(x, y, weight, bias):
    return F.layer_norm(x + y, (1024,), weight, bias)


def matmul_bias_gelu(x, weight, bias):
    return F.gelu(torch.addmm(bias, x, weight))


run({
    "pointwise_chain": kernel(pointwise_chain, (4096, 1024), (4096, 1024)),
    "layernorm_residual": kernel(layernorm_residual, (2048, 1024), (2048, 1024), (1024,), (1024,)),
    "softmax": kernel(lambda x: torch.softmax(x, -1), (2048, 1024)),
    "col_sum": kernel(lambda x: x.sum(0), (2048, 1024)),
    "matmul_bias_gelu": kernel(matmul_bias_gelu, (2048, 1024), (1024, 1024), (1024,)),
})
