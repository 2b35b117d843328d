"""Hooks of modules and of gradients, and calls of modules from functions."""
import collections

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from program import program


def rows():
    return torch.arange(6.0).reshape(2, 3) / 5


class Double(nn.Module):
    def forward(self, x, extra=0):
        return x * 2 + extra


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        return x * self.weight


def with_hook(kind, hook):
    module = Double()
    getattr(module, f"register_{kind}")(hook)
    return module


@program(
    lambda: (with_hook("forward_hook", lambda m, args, out: out * 10), rows()), lambda: (Double(), rows())
)
def forward_hook(module, x):
    return module(x) + 1


@program(lambda: (with_hook("forward_pre_hook", lambda m, args: (args[0] + 1,)), rows()))
def forward_pre_hook(module, x):
    return module(x), module(x, extra=5)


def add_hook(module, x):
    module.register_forward_hook(lambda m, args, out: out + 100)


@program(lambda: (Double(), rows()), change=add_hook)
def hook_registered_later(module, x):
    return module(x)


def counting_module():
    module = Double()
    module.calls = []
    module.register_forward_hook(lambda m, args, out: m.calls.append(tuple(args[0].shape)))
    return module


@program(lambda: (counting_module(), rows()))
def hook_with_side_effects(module, x):
    return module(module(x)), len(module.calls)


def keyword_hook(module, args, kwargs):
    return args, {**kwargs, "extra": 7}


def module_with_keyword_hook():
    module = Double()
    module.register_forward_pre_hook(keyword_hook, with_kwargs=True)
    return module


@program(lambda: (module_with_keyword_hook(), rows()))
def hook_with_keywords(module, x):
    return module(x), module(x, extra=1)


@program(lambda: (Double(), rows()))
def hook_registered_inside(module, x):
    handle = module.register_forward_hook(lambda m, args, out: out - 1)
    y = module(x)
    handle.remove()
    return y, module(x)


@program(lambda: (with_hook("forward_hook", lambda m, args, out: (out, "hooked")), rows()))
def hook_changes_the_kind_of_result(module, x):
    y, text = module(x)
    return y * 2, text


def refuse(module, args):
    raise ValueError(f"refused {tuple(args[0].shape)}")


@program(lambda: (with_hook("forward_pre_hook", refuse), rows()))
def hook_that_raises(module, x):
    return module(x)


def with_gradient_hook():
    x = rows().requires_grad_()
    x.register_hook(lambda g: g * 3)
    return x


@program(lambda: (with_gradient_hook(),))
def gradient_hook_of_an_argument(x):
    return (x * x).sum()


@program(lambda: (rows().requires_grad_(),))
def gradient_hook_registered_inside(x):
    y = x * 2
    y.register_hook(lambda g: g + 100)
    return y * y


@program(lambda: (Scale(), rows()), lambda: (Scale().double(), rows().double()))
def module_argument(module, x):
    return module(x), module.weight.sum(), module.training


@program(lambda: ([Scale(), Double(), nn.ReLU()], rows()))
def list_of_modules(modules, x):
    for module in modules:
        x = module(x)
    return x


SCALE = Scale()


def double_scale(*_):
    with torch.no_grad():
        SCALE.weight.mul_(2)


def new_scale(*_):
    global SCALE
    SCALE = Double()


@program(lambda: (rows(),), change=[double_scale, new_scale])
def global_module(x):
    return SCALE(x) + 1


@program(lambda: (Scale(), rows()), change=lambda m, x: m.train(not m.training))
def switches_flags_inside(module, x):
    was = module.training
    module.eval()
    y = module(x)
    module.train(was)
    return y, module.training


@program(lambda: (Scale(), rows()))
def one_training_step(module, x):
    loss = (module(x) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in module.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss.detach()


@program(lambda: (Scale(), rows()))
def state_dict_inside(module, x):
    state = module.state_dict()
    state["weight"] = state["weight"] * 2
    module.load_state_dict(state)
    return module(x), list(state)


@program(lambda: (Scale(), rows()))
def functional_call(module, x):
    return (
        F.linear(x, torch.ones(2, 3), module.weight[:2]),
        F.layer_norm(x, (3,), module.weight),
        module.weight.shape,
    )


@program(lambda: (nn.Sequential(collections.OrderedDict(a=Double(), b=Scale())), rows()))
def named_sequence(module, x):
    return module.a(x), module[1](x), module(x), len(module), [name for name, _ in module.named_children()]


@program(lambda: (Double(), rows()))
def forward_called_directly(module, x):
    return module.forward(x), nn.Module.__call__(module, x), Double.forward(module, x, 3)


@program(lambda: (Double(), rows()))
def attributes_set_from_outside(module, x):
    module.note = {"calls": getattr(module, "note", {"calls": 0})["calls"] + 1}
    module.inner = Scale()
    module.register_buffer("extra", x + 1)
    return module(x) + module.extra, [name for name, _ in module.named_modules()]


class Wrapper:
    """Passes what it lacks on to a module."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return getattr(self.module, name)

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs) * 2


@program(lambda: (Wrapper(Scale()), rows()))
def wrapped_module(wrapper, x):
    return wrapper(x), wrapper.weight.shape, [p.numel() for p in wrapper.parameters()]


class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * scale + 1

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.scale * 10 + 0 * x, None


@program(
    lambda: (rows().requires_grad_(), 2.0), lambda: (rows(), 3.0), lambda: (rows().requires_grad_(), 5.0)
)
def own_autograd_function(x, scale):
    return AddOne.apply(x, scale).sin()
