"""Gradients against finite differences."""
import itertools

from .. import _C
from .._C import Tensor
from .grad_mode import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient that gradcheck found wrong."""


def _as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differentiable(values):
    return [v for v in values if isinstance(v, Tensor) and v.requires_grad]


def _outputs(func, inputs):
    return [y for y in _as_tuple(func(*inputs)) if isinstance(y, Tensor)
            and (y.dtype.is_floating_point or y.dtype.is_complex)]


def _difference(func, inputs, x, index, step):
    """(f(x + step) - f(x - step)) / (2 step) in one element of an input, for every output."""
    with no_grad():
        before = x.data[index].clone()
        x.data[index] = before + step
        above = [y.detach().clone() for y in _outputs(func, inputs)]
        x.data[index] = before - step
        below = [y.detach().clone() for y in _outputs(func, inputs)]
        x.data[index] = before
    size = abs(step)
    return [((a - b) / (2 * size)).reshape(-1) for a, b in zip(above, below)]


def _numerical(func, inputs, eps):
    """[input][element of the input][output]: the derivatives of the output's elements by finite differences,
    by the element's real and (None for a real input) imaginary part.
    """
    result = []
    for x in _differentiable(inputs):
        columns = []
        for index in itertools.product(*map(range, x.shape)):
            real = _difference(func, inputs, x, index, eps)
            imaginary = (_difference(func, inputs, x, index, eps * 1j) if x.dtype.is_complex
                         else [None] * len(real))
            columns.append(list(zip(real, imaginary)))
        result.append(columns)
    return result


def _analytical(output, inputs, seed_value):
    """For every element of an output: the gradients of all inputs, for the cotangent seed_value there."""
    rows = []
    for k in range(output.numel()):
        seed = _C.zeros_like(output).reshape(-1)
        seed[k] = seed_value
        rows.append(_C._grad([output], list(inputs), [seed.view(output.shape)], True, False, True))
    return rows


def _expected(numerical, k_output, row, cotangent):
    """The gradient that finite differences give for a cotangent at one element of an output."""
    values = []
    for column in numerical:
        real, imaginary = column[k_output]
        # The derivative of Re(conj(cotangent) * output) by the real and the imaginary part of the input.
        g = complex(cotangent)
        dr = (g.conjugate() * complex(real[row].item())).real
        di = 0.0 if imaginary is None else (g.conjugate() * complex(imaginary[row].item())).real
        values.append(dr if imaginary is None else complex(dr, di))
    return values


def _close(a, b, atol, rtol):
    return abs(a - b) <= atol + rtol * abs(b)


def _compare(func, inputs, eps, atol, rtol):
    wanted = _differentiable(inputs)
    # Before the recorded call: it changes the inputs, and back.
    numerical = _numerical(func, inputs, eps)
    outputs = _outputs(func, inputs)
    for k, y in enumerate(outputs):
        if not y.requires_grad:
            for i, columns in enumerate(numerical):
                if any(bool((c[k][0].abs() > atol).any()) for c in columns):
                    raise GradcheckError(f"Numerical gradient for function expected to be zero (output {k}, "
                                         f"input {i})")
            continue
        for cotangent in (1.0, 1j) if y.dtype.is_complex else (1.0,):
            rows = _analytical(y, wanted, cotangent)
            for row, gradients in enumerate(rows):
                for i, g in enumerate(gradients):
                    got = [0.0] * wanted[i].numel() if g is None else g.reshape(-1).tolist()
                    expected = _expected(numerical[i], k, row, cotangent)
                    for element, (a, b) in enumerate(zip(got, expected)):
                        if not _close(a, b, atol, rtol):
                            raise GradcheckError(
                                f"Jacobian mismatch for output {k} with respect to input {i}: element {row} "
                                f"of the output by element {element} of the input, numerical: {b}, "
                                f"analytical: {a}")
    return outputs


def _forward_derivatives(func, inputs, x, tangent):
    """Of every output, in forward mode, with a tangent for one input alone."""
    from . import forward_ad

    with forward_ad.dual_level():
        args = [a if not isinstance(a, Tensor) else forward_ad.make_dual(a.detach(), tangent) if a is x
                else a.detach() for a in inputs]
        outputs = _outputs(func, args)
        tangents = [forward_ad.unpack_dual(y).tangent for y in outputs]
        return [_C.zeros_like(y.detach()) if t is None else t for y, t in zip(outputs, tangents)]


def _compare_forward(func, inputs, eps, atol, rtol):
    numerical = _numerical(func, inputs, eps)
    for i, x in enumerate(_differentiable(inputs)):
        for element, outputs in enumerate(numerical[i]):
            for part, direction in enumerate((1.0, 1j) if x.dtype.is_complex else (1.0,)):
                tangent = _C.zeros_like(x).detach().reshape(-1)
                tangent[element] = direction
                for k, got in enumerate(_forward_derivatives(func, inputs, x, tangent.view(x.shape))):
                    expected = outputs[k][part]
                    if bool(((got.reshape(-1) - expected).abs() > atol + rtol * expected.abs()).any()):
                        raise GradcheckError(
                            f"Jacobian computed with forward mode mismatch for output {k} with respect to "
                            f"input {i}: element {element} of the input, numerical: {expected.tolist()}, "
                            f"analytical: {got.reshape(-1).tolist()}")


def _check_inputs(inputs):
    wanted = _differentiable(inputs)
    if not wanted:
        raise ValueError("gradcheck has nothing to check: no input is a tensor with requires_grad=True.")
    for k, x in enumerate(wanted):
        if x.dtype not in (_C.float64, _C.complex128):
            import warnings

            warnings.warn(f"gradcheck: input {k} has dtype {x.dtype}. Differences of less than double "
                          "precision are inexact, so the check may fail: use float64 or "
                          "complex128.", stacklevel=3)
        if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            raise RuntimeError(f"gradcheck: input {k} has stride 0 along a dimension, so several of its "
                               "elements share memory and cannot be changed one by one. Pass x.contiguous() "
                               "instead.")


def _check_undefined(func, inputs):
    """A gradient that is left out counts as zeros."""
    outputs, wanted = [y for y in _outputs(func, inputs) if y.requires_grad], _differentiable(inputs)
    ones = [_C.ones_like(y) for y in outputs]
    for k in range(len(outputs) if len(outputs) > 1 else 0):
        seeds = [_C.zeros_like(g) if i == k else g for i, g in enumerate(ones)]
        expected = _C._grad(outputs, wanted, seeds, True, False, True)
        others = [i for i in range(len(outputs)) if i != k]
        got = _C._grad([outputs[i] for i in others], wanted, [ones[i] for i in others], True, False, True)
        for i, (a, b) in enumerate(zip(got, expected)):
            a, b = (_C.zeros_like(wanted[i]) if g is None else g for g in (a, b))
            if not bool((a == b).all()):
                raise GradcheckError(f"gradcheck: without a gradient for output {k}, the gradient by input "
                                     f"{i} is another one than with zeros for it")


def _check_repeats(func, inputs, tolerance):
    """Two backward passes give the same gradients."""
    wanted = _differentiable(inputs)
    for k, y in enumerate(y for y in _outputs(func, inputs) if y.requires_grad):
        first, second = (_C._grad([y], wanted, [_C.ones_like(y)], True, False, True) for _ in range(2))
        for i, (a, b) in enumerate(zip(first, second)):
            if a is not None and bool(((a - b).abs() > tolerance).any()):
                raise GradcheckError(f"Backward is not reentrant: two passes from output {k} give gradients "
                                     f"by input {i} that differ by more than nondet_tol={tolerance}")


def _check_dtypes(func, inputs):
    wanted = _differentiable(inputs)
    for y in (y for y in _outputs(func, inputs) if y.requires_grad):
        for i, g in enumerate(_C._grad([y], wanted, [_C.ones_like(y)], False, False, True)):
            if g is not None and g.dtype != wanted[i].dtype:
                raise GradcheckError(f"the gradient by input {i} has dtype {g.dtype}, the input "
                                     f"{wanted[i].dtype}")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True,
              fast_mode=False, masked=None):
    """Compares gradients of func(*inputs), by every input that requires grad, with finite differences.

    Raises GradcheckError naming the elements that differ (or returns False, unless raise_exception).
    check_forward_ad: derivatives in forward mode, too. fast_mode compares all elements; check_batched_grad
    has no effect: a batch of gradients is several passes.
    """
    inputs = _as_tuple(inputs)
    try:
        _check_inputs(inputs)
        if check_forward_ad:
            _compare_forward(func, inputs, eps, atol, rtol)
        if not check_backward_ad:
            return True
        _compare(func, inputs, eps, atol, rtol)
        _check_repeats(func, inputs, nondet_tol)
        if check_undefined_grad:
            _check_undefined(func, inputs)
        if check_grad_dtypes:
            _check_dtypes(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0,
                  check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """gradcheck of the gradient, as a function of the inputs and of the outputs' gradients."""
    inputs = _as_tuple(inputs)
    wanted = _differentiable(inputs)
    if grad_outputs is None:
        outputs = [y for y in _outputs(func, inputs) if y.requires_grad]
        grad_outputs = tuple(_C.randn_like(y).requires_grad_() for y in outputs)
    else:
        grad_outputs = _as_tuple(grad_outputs)
    count = len(grad_outputs)

    def gradient(*args):
        with enable_grad():
            return gradient_of(*args)

    def gradient_of(*args):
        given, seeds = args[:-count], args[-count:]
        outputs = [y for y in _outputs(func, given) if y.requires_grad]
        grads = _C._grad(outputs, _differentiable(given)[:len(wanted)], list(seeds), True, True, True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(gradient, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes)
