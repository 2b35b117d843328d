"""Slices, ranges, subscripts of tensors, and arithmetic on sizes."""
import flambeau as torch
from program import program


@program(lambda: (torch.arange(6.0).reshape(2, 3),), lambda: (torch.arange(12.0).reshape(3, 4),))
def unpack_a_shape(x):
    rows, columns = x.shape
    return x.reshape(columns, rows), rows * columns


@program(lambda: (torch.arange(4.0).reshape(2, 2),))
def unpack_a_tensor(x):
    a, b = x
    c, *d = b
    return a, c, d


@program(lambda: (torch.arange(10.0),))
def slices(x):
    s = slice(1, 8, 2)
    items = list(range(10))
    return (
        x[s],
        items[s],
        s.indices(5),
        x[2:],
        x[:-1],
        x[::3],
        "hello"[1:3],
        (1, 2, 3)[:2],
        x[None, ..., 1:2],
        s.start,
        range(10)[s],
    )


@program(lambda: (torch.arange(24.0).reshape(2, 3, 4),))
def tensor_subscripts(x):
    index = torch.tensor([0, 2])
    return (
        x[0],
        x[-1, 1],
        x[..., 0],
        x[:, None],
        x[:, index],
        x[x > 20],
        x[1, :, ::2],
        x[0, 1, 2],
        x[[0, 1]],
        x[:, 1:, index],
    )


@program(lambda: (torch.zeros(3, 4),))
def tensor_subscript_stores(x):
    x[0] = 1
    x[1, 2] = 5.0
    x[:, 0] += 2
    x[x == 0] = -1
    x[2, 1:3] = torch.tensor([7.0, 8.0])
    x[..., -1] *= 3
    return x.sum()


@program(lambda: (torch.ones(2), range(2, 10, 3)))
def ranges(x, r):
    return (
        x * len(r),
        r[1],
        5 in r,
        list(r),
        r.start,
        r.stop,
        r[::-1],
        range(3) == range(0, 3),
        [*range(3, 0, -1)],
        r.index(8),
    )


@program(lambda: (torch.ones(2, 3, 4),), lambda: (torch.ones(5, 3, 4),))
def size_arithmetic(x):
    s = x.size()
    return (
        x.view(s[0], -1),
        s[:-1] + (2, 2),
        s + (1,),
        s.numel(),
        s[1:] * 2,
        tuple(s),
        len(s),
        s == torch.Size([2, 3, 4]),
        s[-1] // 2,
        x.view(*s[:-1], 2, 2),
        x.new_zeros(s[::2]),
        isinstance(s, tuple),
        3 in s,
        max(s),
        list(s),
    )
