"""with statements: own context managers, contextlib's, and the library's modes."""
import contextlib

import flambeau as torch
from program import program

DEPTH = 0


def x2():
    return (torch.tensor([1.0, 2.0]),)


def leaf():
    return (torch.tensor([1.0, 2.0], requires_grad=True),)


class Tracker:
    def __init__(self, log, swallow=()):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(f"exit {kind.__name__ if kind else None}")
        return kind is not None and issubclass(kind, self.swallow)


@program(lambda: (torch.ones(2), []))
def own_context_manager(x, log):
    with Tracker(log) as t:
        x = x * 2
        t.log.append("body")
    return x


@program(lambda: (torch.ones(2), []))
def swallows_an_exception(x, log):
    with Tracker(log, (IndexError,)):
        x = x + 1
        log[10]
        x = x * 100
    return x


@program(lambda: (torch.ones(2), []))
def lets_an_exception_through(x, log):
    with Tracker(log, (IndexError,)):
        raise KeyError("through")


@program(lambda: (torch.ones(2), []))
def returns_from_inside(x, log):
    with Tracker(log):
        return x + len(log)


@program(lambda: (torch.ones(2), []))
def two_managers(x, log):
    with Tracker(log), Tracker(log, (ValueError,)) as second:
        second.log.append("both")
        raise ValueError
    return x * len(log)


@program(lambda: (torch.ones(2), []))
def breaks_out_of_with(x, log):
    for i in range(4):
        with Tracker(log):
            if i == 1:
                continue
            if i == 3:
                break
            x = x + i
    return x


@contextlib.contextmanager
def deeper(n=1):
    global DEPTH
    before, DEPTH = DEPTH, DEPTH + n
    try:
        yield DEPTH
    finally:
        DEPTH = before


@program(x2)
def generator_context_manager(x):
    with deeper() as a, deeper(3) as b:
        y = x * DEPTH + a * b
    return y, DEPTH


@program(x2)
def generator_context_manager_and_error(x):
    with deeper(2):
        y = x + DEPTH
        raise ValueError(f"at depth {DEPTH}")
    return y


@program(x2)
def context_manager_as_decorator(x):
    @deeper(5)
    def inner(y):
        return y * DEPTH

    return inner(x), DEPTH


@program(x2)
def suppress(x):
    with contextlib.suppress(ZeroDivisionError, KeyError):
        x = x + 1
        1 // 0
    return x


@program(lambda: (torch.ones(2), []), lambda: (torch.ones(2), [1]))
def null_context(x, log):
    with Tracker(log) if log else contextlib.nullcontext(5) as value:
        return x + 1, type(value).__name__


@program(lambda: (torch.ones(2), []))
def exit_stack(x, log):
    with contextlib.ExitStack() as stack:
        for i in range(2):
            stack.enter_context(Tracker(log))
        stack.callback(log.append, "callback")
        x = x + len(log)
    return x


@program(leaf, x2)
def no_grad(x):
    with torch.no_grad():
        a = x * 2
    b = x * 3
    return a, b, a.requires_grad, torch.is_grad_enabled()


@program(leaf)
def enable_grad_inside_no_grad(x):
    with torch.no_grad():
        with torch.enable_grad():
            a = x + 1
        b = x + 1
    return a, b


@torch.no_grad()
def frozen(x):
    return x * 2


@program(leaf)
def no_grad_decorator(x):
    return frozen(x), x * 2 + frozen(x)


@program(leaf)
def set_grad_enabled(x):
    with torch.set_grad_enabled(False):
        a = x * 2
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    b = x * 3
    torch.set_grad_enabled(True)
    return a, b, x * 4, before


@program(leaf)
def leaves_grad_mode_off(x):
    y = x * 2
    torch.set_grad_enabled(False)
    return y, x * 3


@program(leaf)
def grad_mode_after_an_error(x):
    with torch.no_grad():
        y = x + 1
        raise ValueError(str(y.requires_grad))


@program(x2)
def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return y, y.is_inference(), torch.is_inference_mode_enabled()


@program(lambda: (torch.ones(2, 3), torch.ones(3, 2)))
def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ w
        with torch.autocast("cpu", enabled=False):
            b = a.float() @ w
    return a, b, x @ w


@program(leaf)
def detach_and_no_grad(x):
    y = x * 2
    with torch.no_grad():
        z = y.detach() + y
    return y * z, z


@program(lambda: (torch.tensor([1.0, 2.0], requires_grad=True),))
def updates_a_leaf_under_no_grad(w):
    loss = (w * w).sum()
    with torch.no_grad():
        w.sub_(0.1 * w)
    return loss.detach(), w.requires_grad


@program(leaf)
def gradient_inside(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x)
    return g * 2, y.detach()


@program(leaf)
def backward_inside(x):
    y = (x * x * x).sum()
    y.backward()
    return x.grad * 1
