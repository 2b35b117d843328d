"""What depends on the values in tensors, NumPy, and random numbers."""
import random

import flambeau as torch
import numpy as np
from flambeau.nn import functional as F
from program import program


def positive():
    return (torch.tensor([1.0, 2.0, 3.0]),)


def negative():
    return (torch.tensor([-1.0, -2.0, 3.0]),)


@program(positive, negative)
def branch_on_a_sum(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@program(positive, negative)
def branch_on_an_item(x):
    value = x[0].item()
    y = x * value
    if value > 0:
        y = y + 1
    return y, value


@program(positive, negative)
def while_on_a_tensor(x):
    while x.abs().max() > 0.5:
        x = x / 2
    return x


@program(positive, negative, lambda: (torch.zeros(3),))
def truth_of_tensors(x):
    return bool(x[0] > 0), not x[0], x if (x > 0).all() else -x, (x[1] > 0) and x[2], any(v > 2 for v in x)


@program(positive)
def truth_of_many_elements(x):
    y = x * 2
    if y:
        return y
    return x


@program(positive, negative, lambda: (torch.zeros(2),))
def nonzero(x):
    index = (x > 0).nonzero()
    return index, x[x > 0], index.shape[0], torch.where(x > 0)


@program(positive, negative)
def size_of_a_selection(x):
    chosen = x[x > 0]
    y = torch.zeros(chosen.size(0), 2)
    return y + chosen[:, None], chosen.numel() * 2


@program(positive, negative)
def tolist(x):
    values = x.tolist()
    return [v * 2 for v in values], x * values[0], max(values), int(x[2]), float(x.sum())


@program(lambda: (torch.ones(5, 2), torch.tensor(3)), lambda: (torch.ones(5, 2), torch.tensor(1)))
def integer_tensor_as_size(x, n):
    k = int(n)
    return x[:k] * k, x[n], torch.zeros(k), list(range(k)), x[:n]


@program(lambda: (torch.tensor([3, 1, 2, 3]),))
def unique(x):
    values, counts = x.unique(return_counts=True)
    return values, counts, len(values), x.bincount()


@program(lambda: (torch.tensor([2, 0, 1]),))
def lengths_to_mask(lengths):
    longest = lengths.max().item()
    return torch.arange(longest)[None, :] < lengths[:, None], longest


@program(positive, negative)
def item_in_a_loop(x):
    total = 0.0
    for v in x:
        if v > 0:
            total += v.item()
        else:
            x = x + 1
    return x, total


@program(positive, negative)
def equality_of_tensors(x):
    return torch.equal(x, x + 0), torch.allclose(x, x + 1e-9), x[0] in [x[0]], (x == x.clone()).all().item()


@program(positive, negative)
def print_between(x):
    y = x * 2
    print(y[0].item())
    z = y + 1
    print("max", max(z.tolist()))
    return z


@program(positive, negative)
def raises_on_a_value(x):
    if (x < 0).any():
        raise ValueError(f"negative: {x.min().item():.1f}")
    return x.sqrt()


@program(lambda: (torch.tensor([3.0, 1.0, 2.0]),), lambda: (torch.tensor([1.0, 5.0]),))
def argmax_as_index(x):
    best = int(x.argmax())
    order = sorted(range(len(x)), key=lambda i: x[i].item())
    return x[best], order, {best: x}


@program(lambda: (torch.ones(2, requires_grad=True),))
def item_of_what_needs_grad(x):
    y = x * 3
    scale = y.sum().item()
    return y * scale


# NumPy ----------------------------------------------------------------------------------------------------
@program(positive, negative)
def through_numpy(x):
    a = x.numpy()
    return torch.from_numpy(np.sqrt(a * a) + 1), a.sum(), a.shape


@program(positive)
def numpy_shares_memory(x):
    a = x.numpy()
    a[0] = 100
    y = x * 2
    x[1] = -5
    return y, a, torch.from_numpy(a)


@program(
    lambda: (np.arange(4.0), torch.ones(4, dtype=torch.float64)),
    lambda: (np.arange(4, dtype=np.int32), torch.ones(4)),
)
def numpy_argument(a, x):
    a[0] += 7
    return x * torch.from_numpy(a), a * 2, a.dtype.name, a.reshape(2, 2).T


@program(positive)
def numpy_scalars(x):
    n = np.float64(2.5)
    i = np.int64(3)
    return x * n, x * i, n + i, float(n), type(n * 2).__name__, list(range(i)), np.array([1, 2])[i - 2]


@program(lambda: (torch.ones(2), np.array([1, 2, 3])))
def numpy_functions(x, a):
    return (
        x * np.sum(a).item(),
        np.concatenate([a, a]),
        np.where(a > 1, a, 0),
        a.mean(),
        np.linspace(0, 1, 3),
        a.tolist(),
        np.dot(a, a),
        a[a > 1],
    )


@program(lambda: (np.ones((2, 2)),))
def only_numpy(a):
    b = a @ a + 1
    b[0] = 0
    return b, np.allclose(a, 1)


# Random numbers -------------------------------------------------------------------------------------------
@program(positive)
def draws(x):
    return (
        torch.rand(3) + x,
        torch.randn(2, 2),
        torch.randint(0, 10, (4,)),
        torch.randperm(5),
        torch.rand_like(x),
    )


@program(positive)
def draws_after_a_seed(x):
    torch.manual_seed(3)
    a = torch.randn(3)
    torch.manual_seed(3)
    return a + x, torch.randn(3)


@program(positive, negative)
def draws_on_a_branch(x):
    y = torch.rand(3)
    if x[0] > 0:
        y = y + torch.rand(3)
    return y * x


@program(lambda: (torch.ones(4, requires_grad=True),))
def dropouts_in_order(x):
    a = F.dropout(x, 0.5)
    b = F.dropout(x, 0.25)
    return a + b, F.dropout(a * b, 0.5, training=False)


def a_generator():
    g = torch.Generator()
    g.manual_seed(5)
    return g


@program(lambda: (torch.ones(3), a_generator()))
def own_generator(x, g):
    return x + torch.rand(3, generator=g), torch.randn(3, generator=g)


@program(positive)
def random_state_kept(x):
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    return a, torch.rand(2), x


@program(positive)
def random_of_python(x):
    items = [1, 2, 3, 4]
    random.shuffle(items)
    return x * random.random(), items, random.randint(0, 9), random.choice("abc")


@program(positive)
def random_of_numpy(x):
    return x * float(np.random.rand()), np.random.randint(0, 9, 3), np.random.permutation(4)


@program(positive)
def fills_in_place(x):
    x.uniform_()
    y = torch.empty(3).normal_()
    return x + y, torch.bernoulli(torch.full((4,), 0.5)), torch.multinomial(torch.ones(4), 2)
