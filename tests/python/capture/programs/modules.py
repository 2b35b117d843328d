"""nn.Module: what is called is an instance. Containers, parameters, buffers, and attributes that change."""
import math

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from program import program


def rows():
    return (torch.arange(6.0).reshape(2, 3) / 5 - 0.4,)


def more_rows():
    return (torch.arange(12.0).reshape(4, 3) / 10 - 0.5,)


def fixed(module):
    """Gives a module parameters without random numbers."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(float(p.numel())).reshape(p.shape) % 7 - 3) / (4 + i))
    return module


def replace_weight(model, *_):
    model.layer.weight = nn.Parameter(torch.ones(2, 3))


def fill_weight(model, *_):
    with torch.no_grad():
        model.layer.weight.fill_(0.5)


def freeze(model, *_):
    for p in model.parameters():
        p.requires_grad_(False)


def to_double(model, x):
    model.double()
    x.data = x.double()


@program(rows, more_rows, change=[fill_weight, replace_weight, freeze, to_double])
class OneLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = fixed(nn.Linear(3, 2))

    def forward(self, x):
        return self.layer(x).relu()


def drop_last(model, *_):
    model.layers = model.layers[:2]


@program(rows, more_rows, change=drop_last)
class InSequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = fixed(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)))

    def forward(self, x):
        return self.layers(x) + x[:, :1]


def append_layer(model, *_):
    if len(model.blocks) < 5:
        model.blocks.append(fixed(nn.Linear(3, 3)))


@program(rows, change=append_layer)
class InList(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(fixed(nn.Linear(3, 3)) for _ in range(3))

    def forward(self, x):
        outs = []
        for i, block in enumerate(self.blocks):
            x = block(x) + i
            outs.append(x)
        return outs, len(self.blocks), self.blocks[-1](x)


@program(lambda: (*rows(), "up"), lambda: (*rows(), "down"), lambda: (*rows(), "sideways"))
class InDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = nn.ModuleDict({"up": fixed(nn.Linear(3, 5)), "down": fixed(nn.Linear(3, 1))})

    def forward(self, x, way):
        return self.ways[way](x), list(self.ways), "up" in self.ways


@program(rows)
class ParameterContainers(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.full((3,), i + 1.0)) for i in range(2)])
        self.shifts = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})
        self.bare = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        for scale in self.scales:
            x = x * scale
        return x + self.shifts["a"] * self.bare


@program(rows, change=lambda model, x: model.mean.fill_(3.0))
class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("steps", torch.tensor(0), persistent=False)
        self.register_buffer("nothing", None)

    def forward(self, x):
        self.mean.mul_(0.5).add_(x.mean(0))
        self.steps += 1
        if self.nothing is None:
            x = x - self.mean
        return x / self.steps


@program(rows)
class BufferIsReplaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(2, 3))

    def forward(self, x):
        self.state = self.state + x
        return self.state * 2


@program(rows)
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = 0
        self.seen = []

    def forward(self, x):
        self.counter += 1
        self.seen.append(self.counter)
        return x + self.counter


@program(rows, more_rows, change=[lambda model, x: model.eval(), lambda model, x: model.train()])
class TrainAndEval(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        y = self.norm(x)
        return y * 2 if self.training else y


@program(rows, change=[lambda model, x: model.eval(), lambda model, x: model.train()])
class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) + F.dropout(x, 0.25, self.training)


def set_config(model, *_):
    model.config["scale"] = 7


def new_activation(model, *_):
    model.activation = torch.sigmoid


@program(rows, change=[set_config, new_activation, lambda model, x: setattr(model, "residual", False)])
class Configured(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = {"scale": 2, "names": ["a"]}
        self.activation = torch.tanh
        self.residual = True

    def forward(self, x):
        y = self.activation(x * self.config["scale"])
        return y + x if self.residual else y


@program(
    lambda: (*rows(), None),
    lambda: (*rows(), torch.ones(2, 3)),
    lambda: (*rows(), torch.zeros(2, 3, dtype=torch.bool)),
)
class OptionalMask(nn.Module):
    def forward(self, x, mask=None, *, scale=None):
        scale = 1 / math.sqrt(x.size(-1)) if scale is None else scale
        if mask is not None:
            x = x.masked_fill(mask == 0, float("-inf")) if mask.dtype == torch.bool else x + mask
        return F.softmax(x * scale, dim=-1)


class Inner(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, *, shift=0, **more):
        return x * self.scale + shift + len(more)


@program(rows)
class SubmoduleWithKeywords(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner(2)

    def forward(self, x):
        kwargs = {"shift": 3, "a": None}
        return self.inner(x), self.inner(x, shift=1), self.inner(x, **kwargs), self.inner(x=x)


@program(rows)
class ModuleMadeInForward(nn.Module):
    def forward(self, x):
        y = nn.Softmax(dim=-1)(x)
        return Inner(3)(y), nn.Sequential(nn.ReLU(), Inner(5))(x)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = fixed(nn.Linear(3, 3))

    def forward(self, x):
        return self.project(self.layer(x))

    def project(self, x):
        return x

    @property
    def width(self):
        return self.layer.out_features


@program(rows)
class Inherited(Base):
    def forward(self, x):
        return super().forward(x) + self.width

    def project(self, x):
        return x * 10


@program(rows)
class SharedSubmodule(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = fixed(nn.Linear(3, 3))
        self.b = self.a
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x)) + self.tied(x), self.a is self.b


@program(rows)
class WalksItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = fixed(nn.Linear(3, 3)), fixed(nn.Linear(3, 1))

    def forward(self, x):
        names = [name for name, _ in self.named_parameters()]
        total = sum(p.sum() for p in self.parameters())
        kinds = [type(m).__name__ for m in self.modules()]
        for child in self.children():
            x = child(x) if x.size(-1) == 3 else x
        return x + total, names, kinds, dict(self.named_children()).keys(), next(self.parameters()).dtype


@program(rows)
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = fixed(nn.Conv2d(1, 2, 3, padding=1)), fixed(nn.GroupNorm(1, 2))
        self.pool, self.flat = nn.AdaptiveAvgPool2d(2), nn.Flatten()

    def forward(self, x):
        x = x.view(1, 1, *x.shape).repeat(1, 1, 2, 1)
        return self.flat(self.pool(F.relu(self.norm(self.conv(x)))))


@program(lambda: (torch.tensor([[1, 2, 0], [3, 3, 1]]),))
class Attention(nn.Module):
    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.width = heads, width
        self.embed = fixed(nn.Embedding(5, width))
        self.qkv, self.out = fixed(nn.Linear(width, 3 * width)), fixed(nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)))

    def forward(self, tokens):
        x = self.norm(self.embed(tokens))
        batch, length, _ = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, self.width)
        return x + self.out(y), {"scores": scores.shape}


def delete_submodule(model, *_):
    model.extra = None


@program(rows, change=delete_submodule)
class SubmoduleBecomesNone(nn.Module):
    def __init__(self):
        super().__init__()
        self.extra = fixed(nn.Linear(3, 3))

    def forward(self, x):
        return self.extra(x) if self.extra is not None else x


def method_of_an_instance(model, *_):
    model.step = lambda x: x * 100


def method_of_the_class(model, *_):
    type(model).step = lambda self, x: x - 100


@program(rows, change=[method_of_the_class, method_of_an_instance])
class ReplacedMethods(nn.Module):
    def step(self, x):
        return x + 1

    def forward(self, x):
        return self.step(x) * 2


@program(rows)
class CacheOfTables(nn.Module):
    """Makes a table at the first call and when the input grows."""

    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        n = x.size(0)
        if self.table is None or self.table.size(0) < n:
            self.table = torch.arange(float(n)).unsqueeze(1)
        return x + self.table[:n]


@program(rows)
class ListOfPlainModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = [Inner(2), Inner(3)]
        self.by_name = {"relu": F.relu, "inner": Inner(4)}

    def forward(self, x):
        for module in self.plain:
            x = module(x)
        return [f(x) for f in self.by_name.values()]


@program(rows)
class MissingAttribute(nn.Module):
    def forward(self, x):
        y = x * 2
        return self.no_such_layer(y)
