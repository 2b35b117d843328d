"""make_graphed_callables(): forward and backward as CUDA graphs under a function of autograd."""
from .. import _C, autograd, is_autocast_cache_enabled, is_autocast_enabled
from ..nn import Module
from ..utils._pytree import tree_flatten, tree_unflatten
from .graphs import CUDAGraph, graph
from .streams import Stream, current_stream, stream


class _Recorded:
    """One callable: its graphs, and the tensors that they read and write."""

    def __init__(self, call, args, allow_unused):
        self.call, self.args, self.allow_unused = call, args, allow_unused
        self.inputs, self.structure = tree_flatten(args)
        if not all(isinstance(t, _C.Tensor) for t in self.inputs):
            raise TypeError("make_graphed_callables(): expected sample_args of tensors alone")
        parameters = []
        if isinstance(call, Module):
            _check_module(call)
            parameters = [p for p in call.parameters() if p.requires_grad]
        self.all_inputs = [*self.inputs, *parameters]
        self.forward, self.backward = CUDAGraph(), CUDAGraph()

    def run(self):
        outputs, self.output_structure = tree_flatten(self.call(*self.args))
        return outputs

    def wanted(self):
        return [t for t in self.all_inputs if t.requires_grad]

    def gradients(self, outputs, grads):
        """Of the inputs that want one, None for others."""
        ends = [(o, g) for o, g in zip(outputs, grads) if o.requires_grad]
        wanted = self.wanted()
        if not ends or not wanted:
            return [None] * len(self.all_inputs)
        found = iter(autograd.grad([o for o, _ in ends], wanted, [g for _, g in ends],
                                   allow_unused=self.allow_unused))
        return [next(found) if t.requires_grad else None for t in self.all_inputs]

    def warm_up(self, count):
        for _ in range(count):
            outputs = self.run()
            self.gradients(outputs, [_C.empty_like(o) for o in outputs])

    def record_forward(self, pool):
        with graph(self.forward, pool=pool):
            self.outputs = self.run()

    def record_backward(self, pool):
        self.grads = [_C.empty_like(o) if o.requires_grad else None for o in self.outputs]
        self.input_grads = [None] * len(self.all_inputs)
        if self.wanted() and any(o.requires_grad for o in self.outputs):
            with graph(self.backward, pool=pool):
                self.input_grads = self.gradients(self.outputs, self.grads)
        else:
            self.backward = None


def _check_module(module):
    if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
        raise RuntimeError("make_graphed_callables(): hooks of a module would be recorded, too; register them "
                           "afterwards")
    if any(b.requires_grad for b in module.buffers()):
        raise RuntimeError("make_graphed_callables(): a buffer of the module requires a gradient; only parameters "
                           "and arguments may")


def _function(recorded):
    """What launches the graphs, as a function of the callable's arguments."""

    class Graphed(autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            for place, given in zip(recorded.inputs, inputs):
                if place.data_ptr() != given.data_ptr():
                    place.copy_(given)
            recorded.forward.replay()
            return tuple(o.detach() for o in recorded.outputs)

        @staticmethod
        @autograd.function.once_differentiable
        def backward(ctx, *grads):
            for place, given in zip(recorded.grads, grads):
                if place is not None and place.data_ptr() != given.data_ptr():
                    place.copy_(given)
            if recorded.backward is not None:
                recorded.backward.replay()
            return tuple(None if g is None else g.detach() for g in recorded.input_grads)

    def graphed(*args):
        given, structure = tree_flatten(args)
        if structure != recorded.structure:
            raise ValueError(f"a graphed callable was recorded for arguments {recorded.structure}, "
                             f"got {structure}")
        for place, tensor in zip(recorded.inputs, given):
            if place.shape != tensor.shape or place.dtype != tensor.dtype:
                raise ValueError(f"a graphed callable was recorded for a tensor of shape {tuple(place.shape)} "
                                 f"and {place.dtype}, got {tuple(tensor.shape)} and {tensor.dtype}")
        outputs = Graphed.apply(*given, *recorded.all_inputs[len(recorded.inputs):])
        return tree_unflatten(list(outputs), recorded.output_structure)

    return graphed


def _replace_forward(module, graphed):
    plain, training = module.forward, module.training

    def forward(*args):
        return graphed(*args) if module.training == training else plain(*args)

    module.forward = forward
    return module


def make(callables, sample_args, warm_up, allow_unused, pool):
    if is_autocast_enabled() and is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables(): autocast keeps casts of parameters, and graphs would read old "
                           "ones: autocast(..., cache_enabled=False) does not")
    all_recorded = [_Recorded(f, tuple(a), allow_unused) for f, a in zip(callables, sample_args)]
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side):
        for r in all_recorded:
            r.warm_up(warm_up)
    current_stream().wait_stream(side)
    # In the order in which they will run: a later graph may use memory that an earlier one is done with.
    for r in all_recorded:
        r.record_forward(pool)
    for r in reversed(all_recorded):
        r.record_backward(pool)
    made = []
    for r in all_recorded:
        graphed = _function(r)
        made.append(_replace_forward(r.call, graphed) if isinstance(r.call, Module) else graphed)
    return tuple(made)
