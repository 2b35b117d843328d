"""Second names of operators, by rule: a name here also has the in-place form that its operator has."""
from . import _C
from ._C import Tensor

# second name: operator
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "concat": "cat", "concatenate": "cat",
    "divide": "div",
    "fix": "trunc", "ger": "outer", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "moveaxis": "movedim", "multiply": "mul", "negative": "neg", "not_equal": "ne", "row_stack": "vstack",
    "subtract": "sub", "swapaxes": "transpose", "swapdims": "transpose", "trapz": "trapezoid",
    "true_divide": "div",
    "_segment_reduce": "segment_reduce", "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "_adaptive_avg_pool3d": "adaptive_avg_pool3d", "_unsafe_view": "reshape", "_unsafe_index": "index",
    "_conj": "conj", "_conj_physical": "conj_physical", "_aminmax": "aminmax", "_stack": "stack",
    "inverse": "linalg_inv", "det": "linalg_det", "slogdet": "linalg_slogdet",
    "matrix_power": "linalg_matrix_power",
    "linalg_matmul": "matmul", "mvlgamma": "special_multigammaln", "orgqr": "linalg_householder_product",
    # torch.special
    "special_digamma": "digamma", "special_psi": "digamma", "special_erf": "erf", "special_erfc": "erfc",
    "special_erfinv": "erfinv", "special_exp2": "exp2", "special_expit": "sigmoid", "special_expm1": "expm1",
    "special_gammainc": "igamma", "special_gammaincc": "igammac", "special_gammaln": "lgamma",
    "special_i0": "i0",
    "special_log1p": "log1p", "special_log_softmax": "log_softmax", "special_logit": "logit",
    "special_logsumexp": "logsumexp", "special_polygamma": "polygamma", "special_round": "round",
    "special_sinc": "sinc", "special_softmax": "softmax", "special_xlogy": "xlogy",
    "special_multigammaln": "mvlgamma",
}


def _add(space, name, operator):
    found = vars(space).get(operator)
    if isinstance(found, _C._Operator) and name not in vars(space):
        setattr(space, name, _C._alias(found, name))


def install():
    for name, operator in ALIASES.items():
        for ending in ("", "_"):
            for space in (_C, Tensor):
                _add(space, name + ending, operator + ending)


install()
