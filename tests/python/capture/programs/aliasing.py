"""In-place operations, views, and objects that are reachable in two ways."""
import flambeau as torch
from program import program


def x4():
    return (torch.arange(4.0),)


def square():
    return (torch.arange(9.0).reshape(3, 3),)


def leaf():
    return (torch.arange(4.0).requires_grad_(),)


def same_twice():
    x = torch.arange(4.0)
    return x, x


def view_and_base():
    x = torch.arange(4.0)
    return x, x[1:3]


def apart():
    return torch.arange(4.0), torch.arange(4.0)


@program(x4)
def in_place(x):
    x.add_(1).mul_(2)
    x += 1
    x[0] = 100
    return x


@program(x4)
def in_place_on_a_copy(x):
    y = x.clone()
    y.zero_()
    return y + 1, x


@program(same_twice, apart, same_twice)
def same_tensor_twice(a, b):
    a.add_(1)
    return a * b, a is b


@program(view_and_base, lambda: (torch.arange(4.0), torch.arange(2.0)), view_and_base)
def view_of_an_argument(base, view):
    view.mul_(10)
    y = base + 1
    base[1] = -1
    return y, view * 1


def overlap():
    x = torch.arange(6.0)
    return x[:4], x[2:]


@program(overlap, apart)
def overlapping_views(a, b):
    a.add_(b)
    b.add_(1)
    return a.sum() + b.sum()


def alias_list(x, items):
    items[0] = x


@program(lambda: (torch.ones(2), [torch.zeros(2)]), change=alias_list)
def alias_through_a_list(x, items):
    items[0].add_(5)
    return x * 2, items[0] is x


@program(x4)
def views_are_returned(x):
    return x[1:], x.view(2, 2), x.view(2, 2).t(), x[None], x.detach(), x[::2]


@program(x4)
def argument_is_returned(x):
    return x, [x], x


@program(x4)
def same_result_twice(x):
    y = x + 1
    return y, y, y.view(2, 2), y[1:]


@program(x4)
def view_then_mutation(x):
    y = x + 1
    v = y[1:3]
    y.add_(10)
    v.mul_(2)
    return y, v


@program(square)
def transpose_then_mutation(x):
    t = x.t()
    t[0].fill_(7)
    x[0, 0] = -1
    return t + 1, t


@program(square)
def copy_of_own_transpose(x):
    x.copy_(x.t() * 1.0)
    return x


@program(square)
def diagonal(x):
    x.diagonal().zero_()
    return x.sum(), x.diagonal()


@program(x4)
def expanded(x):
    y = x.unsqueeze(0).expand(3, -1)
    z = y + 1
    x.add_(1)
    return y, z, y.stride()


@program(x4)
def reshape_may_copy(x):
    v = x.view(2, 2)
    a, b = v.reshape(4), v.t().reshape(4)
    a[0], b[1] = 50, 60
    return x, a, b


@program(x4)
def contiguous_may_return_itself(x):
    y = x.contiguous()
    z = x.view(2, 2).t().contiguous()
    return y is x, y, z, x.to(torch.float32) is x, x.float()


@program(square)
def split_and_chunk(x):
    a, b, c = x.split(1)
    a.add_(100)
    p, q = x.chunk(2, dim=1)
    q.zero_()
    return b, c, p, x.unbind(1)


@program(square, lambda: (torch.arange(16.0).reshape(4, 4),))
def strides_of_results(x):
    return (
        x.t() + 1,
        x.permute(1, 0).contiguous(),
        (x.t() * x),
        x.t().clone(),
        torch.empty_like(x.t()).fill_(0),
        x[:, ::2] * 2,
    )


@program(leaf)
def in_place_on_a_result(x):
    y = x * 2
    y.add_(1)
    y[0] = 0
    return y * x


@program(leaf)
def in_place_on_a_view_of_a_result(x):
    y = x * 2
    y[1:3].mul_(3)
    return y


@program(leaf)
def in_place_on_a_leaf(x):
    y = x * 2
    x.add_(1)
    return y


@program(lambda: ((torch.arange(6.0).requires_grad_() * 2)[::2],))
def argument_is_a_view_of_a_non_leaf(x):
    x.add_(1)
    return x * 2


@program(leaf)
def detached(x):
    y = (x * 3).detach()
    y.add_(1)
    return y, x.detach(), x * y


@program(lambda: (torch.arange(4.0), torch.zeros(4)))
def out_argument(x, out):
    torch.add(x, 1, out=out)
    torch.mul(out, 2, out=out)
    return out


@program(lambda: (torch.arange(4.0), torch.tensor([0, 2]), torch.tensor([10.0, 20.0])))
def indexed_updates(x, index, values):
    x[index] = values
    x.index_add_(0, index, values)
    x.scatter_(0, index, 1.0)
    x.masked_fill_(x > 15, 0)
    y = x.index_put((index,), values)
    return y, x


@program(lambda: (torch.ones(4, dtype=torch.int64), torch.ones(4)))
def in_place_keeps_dtype(n, x):
    n += 2
    n *= True
    x.add_(n)
    return n, x


@program(lambda: (torch.ones(4, dtype=torch.int64),))
def in_place_of_the_wrong_dtype(n):
    n += 1
    n += 0.5
    return n


@program(x4)
def mutation_between_reads(x):
    a = x.sum()
    x.mul_(2)
    b = x.sum()
    x.zero_()
    return a, b, x.sum()


@program(x4)
def mutation_in_a_callee(x):
    def update(y, step):
        y.add_(step)
        return y

    a = update(x, 1)
    b = update(x.clone(), 2)
    return a is x, b, update(update(x, 1), 1)


@program(x4)
def loop_of_in_place(x):
    for i in range(x.numel()):
        x[i] += i
        if i:
            x[i - 1] *= 2
    return x


@program(lambda: (torch.arange(4.0), {"state": torch.zeros(4)}))
def state_in_a_dict(x, d):
    d["state"] += x
    d["new"] = d["state"]
    d["state"] = d["state"] * 2
    return d["new"] is d["state"], d["new"][1:]


@program(x4)
def tensor_attributes(x):
    x.tag = "seen"
    y = x + 1
    y.origin = x
    return y, hasattr(x, "tag"), x.__dict__["tag"]


@program(x4, change=lambda x: setattr(x, "data", torch.ones(2, dtype=torch.float64)))
def data_is_replaced(x):
    return x * 2, x.dtype


@program(x4)
def sets_data(x):
    old = x
    x.data = torch.full((2,), 5.0)
    return x + 1, old


@program(x4)
def swaps_contents(x):
    y = x + 10
    x.copy_(y)
    y.copy_(x * 2)
    return y, x


@program(square)
def results_share_memory_with_arguments(x):
    a = x[0]
    b = x.view(-1)
    a.add_(1)
    return {"row": a, "flat": b, "same": x, "part": b[4:6]}


@program(lambda: (torch.ones(2), [1], {"k": [2]}))
def containers_alias_each_other(x, items, table):
    table["items"] = items
    items.append(table["k"])
    table["k"].append(x)
    other = items
    other += [5]
    return items, other is items, table
