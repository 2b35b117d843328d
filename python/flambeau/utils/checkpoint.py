"""checkpoint(): a part of a model keeps its inputs only, and is computed again when gradients need it."""
import contextlib
import warnings
from enum import Enum

from .. import _C, amp, random
from ..autograd import Function
from ..autograd import backward as run_backward
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks

__all__ = ["CheckpointFunction", "CheckpointError", "checkpoint", "checkpoint_sequential",
           "check_backward_validity", "detach_variable", "get_device_states", "noop_context_fn",
           "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states"]


class CheckpointError(RuntimeError):
    """The second run was not like the first."""


class CheckpointPolicy(Enum):
    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


def noop_context_fn():
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Accepted; the error that is raised says which tensors differ in any case."""
    yield


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Whether the second run ends once all that was saved is there again."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


_early_stop = True


class _State:
    """Random numbers and autocast as they were, for the second run."""

    def __init__(self, preserve_rng_state):
        self._random = random.get_rng_state() if preserve_rng_state else None
        self._autocast = {"enabled": amp.autocast_mode.is_autocast_enabled("cpu"),
                          "dtype": amp.autocast_mode.get_autocast_dtype("cpu"),
                          "cache_enabled": amp.autocast_mode.is_autocast_cache_enabled()}

    @contextlib.contextmanager
    def again(self):
        with random.fork_rng(enabled=self._random is not None), amp.autocast("cpu", **self._autocast):
            if self._random is not None:
                random.set_rng_state(self._random)
            yield


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default",
               debug=False, early_stop=True, preserve_rng_state=True, **kwargs):
    """function(*args, **kwargs), which runs a second time in backward.

    use_reentrant=False (recommended) keeps nothing that the first run saved; the second run stops when all of
    it is there again. use_reentrant=True runs backward within backward: it takes no keyword arguments, and
    one of the arguments must require grad. context_fn() gives scopes for the two runs.
    determinism_check="none": the second run may save tensors of other sizes and dtypes.
    """
    if use_reentrant is None:
        warnings.warn("checkpoint(): say use_reentrant=False (recommended) or True; without it, it is True",
                      stacklevel=2)
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first_scope, second_scope = context_fn()
    again = _Again(function, args, kwargs, second_scope, _State(preserve_rng_state),
                   determinism_check != "none", early_stop and _early_stop)
    if not _C.is_grad_enabled():
        return function(*args, **kwargs)
    with saved_tensors_hooks(again.pack, again.unpack), first_scope:
        result = function(*args, **kwargs)
    again.forward_done = True
    return result


class _Stop(Exception):
    """Ends the second run."""


class _Again:
    """What one call of checkpoint() needs in backward. Tensors that the first run saves become numbers."""

    def __init__(self, function, args, kwargs, scope, state, checks, early_stop):
        self._call, self._scope, self._state = (function, args, kwargs), scope, state
        self._checks, self._early_stop, self.forward_done = checks, early_stop, False
        self._described, self._tensors = [], {}

    def pack(self, tensor):
        self._described.append((tuple(tensor.shape), tensor.dtype, tensor.device))
        return len(self._described) - 1

    def unpack(self, number):
        if number not in self._tensors:
            self._run()
        return self._tensors.pop(number)

    def _run(self):
        function, args, kwargs = self._call
        saved = []

        def keep(tensor):
            saved.append(tensor.detach())
            if self._early_stop and self.forward_done and len(saved) == len(self._described):
                raise _Stop
            return tensor.detach()

        with self._state.again(), enable_grad(), saved_tensors_hooks(keep, lambda x: x), self._scope:
            try:
                function(*args, **kwargs)
            except _Stop:
                pass
        self._compare(saved)
        self._tensors = dict(enumerate(saved))

    def _compare(self, saved):
        if len(saved) != len(self._described):
            raise CheckpointError("checkpoint(): the recomputation saved a different number of tensors: "
                                  f"{len(saved)}, and the first forward {len(self._described)}. Does the "
                                  "function depend on a state?")
        if not self._checks:
            return
        for number, (tensor, first) in enumerate(zip(saved, self._described)):
            second = tuple(tensor.shape), tensor.dtype, tensor.device
            if first != second:
                raise CheckpointError("checkpoint(): the recomputation saved a different tensor at position "
                                      f"{number} (shape, dtype or device).\nfirst: {first}\nrecomputed: "
                                      f"{second}")


def check_backward_validity(inputs):
    if not any(x.requires_grad for x in inputs if isinstance(x, _C.Tensor)):
        warnings.warn("checkpoint(): no input has requires_grad=True, so the gradients are "
                      "None", stacklevel=2)


def detach_variable(inputs):
    """The same arguments, tensors cut from their graph."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable() takes a tuple of tensors, not {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, _C.Tensor) else x
                 for x in inputs)


def get_device_states(*args):
    """Random number states of other devices than the CPU: there is none."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Has no effect: there is no other device."""


class CheckpointFunction(Function):
    """The reentrant kind."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function, ctx.state = run_function, _State(preserve_rng_state)
        ctx.tensor_at = [i for i, x in enumerate(args) if isinstance(x, _C.Tensor)]
        ctx.inputs = [None if isinstance(x, _C.Tensor) else x for x in args]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_at))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_at, ctx.saved_tensors):
            inputs[i] = tensor
        inputs = detach_variable(tuple(inputs))
        with ctx.state.again(), enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, _C.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, _C.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("checkpoint(): no output has requires_grad=True, so the checkpoint is of no "
                               "use")
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, _C.Tensor) else None for x in inputs))


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A Sequential (or list of functions) in segments; each but the last is a checkpoint."""
    if use_reentrant is None:
        warnings.warn("checkpoint_sequential(): say use_reentrant=False or True; without it, it is "
                      "True", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children() if hasattr(functions, "children") else functions)

    def run(part):
        def forward(x):
            for function in part:
                x = function(x)
            return x

        return forward

    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size) if size else ():
        input = checkpoint(run(functions[start:start + size]), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)
    return run(functions[size * (segments - 1):])(input)


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    raise NotImplementedError("selective checkpoints are not supported: every operator of a checkpoint runs "
                              "again")
