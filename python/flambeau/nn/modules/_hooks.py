"""How a module is called: forward between hooks of the module and hooks of all modules."""
import warnings
from collections import OrderedDict

import flambeau as fl
from flambeau.utils.hooks import RemovableHandle

__all__ = [
    "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# Hooks of all modules.
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook = None
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()


def _add(hook, hooks, *marks):
    """Registers a hook; `marks` are dictionaries that say something more about it."""
    handle = RemovableHandle(hooks, extra_dict=list(marks) or None)
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    return handle


def register_module_buffer_registration_hook(hook):
    """hook(module, name, buffer) -> None or another buffer, whenever any module registers a buffer."""
    return _add(hook, _global_buffer_registration_hooks)


def register_module_module_registration_hook(hook):
    """hook(module, name, submodule) -> None or another module, whenever any module registers a submodule."""
    return _add(hook, _global_module_registration_hooks)


def register_module_parameter_registration_hook(hook):
    """hook(module, name, parameter) -> None or another parameter, whenever a module registers one."""
    return _add(hook, _global_parameter_registration_hooks)


def register_module_forward_pre_hook(hook):
    """hook(module, args) -> None or other args, before every module's own hooks and forward."""
    return _add(hook, _global_forward_pre_hooks)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """hook(module, args, output) -> None or another output, after the forward of every module."""
    marks = [_global_forward_hooks_with_kwargs] * with_kwargs
    marks += [_global_forward_hooks_always_called] * always_call
    return _add(hook, _global_forward_hooks, *marks)


def _claim_full_backward(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError("Global backward hooks are either all regular or all full: both kinds are "
                           "registered; keep one.")
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """The old form of register_module_full_backward_hook."""
    _claim_full_backward(False)
    return _add(hook, _global_backward_hooks)


def register_module_full_backward_pre_hook(hook):
    """hook(module, grad_output) -> None or another grad_output, before the backward of every module."""
    return _add(hook, _global_backward_pre_hooks)


def register_module_full_backward_hook(hook):
    """hook(module, grad_input, grad_output) -> None or another grad_input, after every module's backward."""
    _claim_full_backward(True)
    return _add(hook, _global_backward_hooks)


def _tensors_in(value):
    """The tensors of a tensor, tuple, list or dict (one level), and a function that puts others there."""
    if isinstance(value, fl.Tensor):
        return [value], lambda new: new[0]
    if isinstance(value, dict):
        places = [k for k, v in value.items() if isinstance(v, fl.Tensor)]
        return [value[k] for k in places], lambda new: type(value)({**value, **dict(zip(places, new))})
    if isinstance(value, (tuple, list)):
        places = [k for k, v in enumerate(value) if isinstance(v, fl.Tensor)]

        def rebuilt(new):
            items = list(value)
            for k, tensor in zip(places, new):
                items[k] = tensor
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)

        return [value[k] for k in places], rebuilt
    return [], lambda new: value


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class _BackwardHooks:
    """The full backward hooks of one call: identities around forward whose backward runs them."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.input_count, self.input_places, self.has_differentiable_input = 0, [], False

    def around_input(self, args):
        tensors, rebuilt = _tensors_in(args)
        self.input_count = len(args)
        self.input_places = [k for k, v in enumerate(args) if isinstance(v, fl.Tensor)]
        self.has_differentiable_input = fl.is_grad_enabled() and any(t.requires_grad for t in tensors)
        return rebuilt(_identity(self._input_gradients, tensors)) if self.has_differentiable_input else args

    def around_output(self, output):
        tensors, rebuilt = _tensors_in(output)
        if not (fl.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return output
        return rebuilt(_identity(self._output_gradients, tensors))

    def _output_gradients(self, grads):
        for hook in self.pre_hooks:
            result = hook(self.module, grads)
            grads = grads if result is None else _as_tuple(result)
        self.grad_outputs = grads
        if not self.has_differentiable_input:
            self._run_hooks((None,) * self.input_count)
        return grads

    def _input_gradients(self, grads):
        by_argument = [None] * self.input_count
        for place, grad in zip(self.input_places, grads):
            by_argument[place] = grad
        result = self._run_hooks(tuple(by_argument))
        return tuple(result[place] for place in self.input_places)

    def _run_hooks(self, grad_inputs):
        grads_out, self.grad_outputs = self.grad_outputs, None
        for hook in self.hooks:
            result = hook(self.module, grad_inputs, grads_out)
            if result is None:
                continue
            result = _as_tuple(result)
            if len(result) != len(grad_inputs):
                raise RuntimeError(f"A backward hook gave {len(result)} values for grad_input, "
                                   f"{len(grad_inputs)} are needed")
            if not self.has_differentiable_input and any(g is not None for g in result):
                raise RuntimeError("No input of this module requires a gradient: its backward hooks may give "
                                   "only None, or None in every place.")
            grad_inputs = result
        return grad_inputs


def _identity(on_backward, tensors):
    """Views of the tensors whose gradients pass through on_backward(grads) -> grads."""
    class Identity(fl.autograd.Function):
        @staticmethod
        def forward(ctx, *values):
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*[v for v in values if not (v.is_floating_point() or v.is_complex())])
            return tuple(v.view_as(v) for v in values)

        @staticmethod
        def backward(ctx, *grads):
            return on_backward(grads)

    Identity.__name__ = "BackwardHookFunction"
    return Identity.apply(*tensors)


class _Hooks:
    """The part of Module that registers hooks and runs them."""

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """hook(module, grad_output) -> None or another grad_output, before the module's backward."""
        return self._insert(hook, self._backward_pre_hooks, prepend)

    def register_backward_hook(self, hook):
        """The old form of register_full_backward_hook: its grad_input are the last operator's gradients."""
        self._claim_full(False)
        return _add(hook, self._backward_hooks)

    def register_full_backward_hook(self, hook, prepend=False):
        """hook(module, grad_input, grad_output) -> None or another grad_input, after the inputs' gradients.

        grad_input has one entry for each positional argument of forward, None where it is no tensor.
        """
        self._claim_full(True)
        return self._insert(hook, self._backward_hooks, prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """hook(module, args) -> None, an argument or a tuple of arguments, before forward.

        with_kwargs: hook(module, args, kwargs) -> None or (args, kwargs).
        """
        marks = [self._forward_pre_hooks_with_kwargs] * with_kwargs
        return self._insert(hook, self._forward_pre_hooks, prepend, *marks)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """hook(module, args, output) -> None or another output, after forward.

        with_kwargs: hook(module, args, kwargs, output). always_call: also where forward raised.
        """
        marks = [self._forward_hooks_with_kwargs] * with_kwargs
        marks += [self._forward_hooks_always_called] * always_call
        return self._insert(hook, self._forward_hooks, prepend, *marks)

    def _insert(self, hook, hooks, prepend, *marks):
        handle = _add(hook, hooks, *marks)
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def _claim_full(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("The backward hooks of one Module are either all regular or all full: both "
                               "kinds are registered; keep one.")
        self._is_full_backward_hook = full

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        if (self._backward_hooks or self._backward_pre_hooks or _global_backward_hooks
                or _global_backward_pre_hooks):
            # They hang on the history between operators, which a compiled part does not have.
            return fl.compiler.run_plainly(self._call_and_run_hooks, args, kwargs)
        if (self._forward_hooks or self._forward_pre_hooks or _global_forward_hooks
                or _global_forward_pre_hooks):
            return self._call_and_run_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_and_run_hooks(self, args, kwargs):
        done = set()
        try:
            return self._call_with_hooks(args, kwargs, done)
        except Exception:
            self._run_always_called(args, kwargs, done)
            raise

    __call__ = _wrapped_call_impl

    def _call_with_hooks(self, args, kwargs, done):
        args, kwargs = self._before_forward(args, kwargs)
        full, old = self._backward_hooks_of_call()
        around = _BackwardHooks(self, full,
                                [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()])
        if around.hooks or around.pre_hooks:
            args = around.around_input(args)
        output = self.forward(*args, **kwargs)
        for key, hook, with_kwargs in self._forward_hooks_in_order():
            done.add(key)
            result = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
            output = output if result is None else result
        if around.hooks or around.pre_hooks:
            output = around.around_output(output)
        if old:
            _hook_last_node(self, old, output)
        return output

    def _before_forward(self, args, kwargs):
        for key, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError("A forward pre-hook with_kwargs has to give None or the pair (args, "
                                       f"kwargs), not {result}.")
                args, kwargs = result
            else:
                result = hook(self, args)
                args = args if result is None else _as_tuple(result)
        return args, kwargs

    def _backward_hooks_of_call(self):
        full, old = [], []
        (old if _global_is_full_backward_hook is False else full).extend(_global_backward_hooks.values())
        (old if self._is_full_backward_hook is False else full).extend(self._backward_hooks.values())
        return full, old

    def _forward_hooks_in_order(self):
        for key, hook in [*_global_forward_hooks.items()]:
            yield key, hook, key in _global_forward_hooks_with_kwargs
        for key, hook in [*self._forward_hooks.items()]:
            yield key, hook, key in self._forward_hooks_with_kwargs

    def _run_always_called(self, args, kwargs, done):
        """After an error: the hooks that were to be called in any case and weren't yet."""
        for key, hook, with_kwargs in self._forward_hooks_in_order():
            always = key in _global_forward_hooks_always_called or key in self._forward_hooks_always_called
            if always and key not in done:
                try:
                    hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
                except Exception as error:
                    warnings.warn("forward failed, and then so did a forward hook registered with "
                                  f"always_call; the hook's own error: {error}")


def _hook_last_node(module, hooks, output):
    """The old backward hooks: on the node that made the (first) output."""
    tensors, _ = _tensors_in(output)
    node = tensors[0].grad_fn if tensors else None
    for hook in hooks if node is not None else ():
        node.register_hook(lambda grad_in, grad_out, hook=hook: hook(module, grad_in, grad_out))
