"""Branches and loops."""
import flambeau as torch
from program import program


def x3():
    return (torch.tensor([1.0, -2.0, 3.0]),)


def with_n(*values):
    return [lambda n=n: (torch.tensor([1.0, -2.0, 3.0]), n) for n in values]


@program(*with_n(0, 1, 2, -1))
def if_elif_else(x, n):
    if n == 0:
        y = x + 1
    elif n == 1:
        y = x * 2
    elif n > 0:
        y = x - 3
    else:
        y = -x
    return y


@program(*with_n(1, 4, 9))
def nested_ifs(x, n):
    if n > 0:
        if n % 2:
            if n > 5:
                return x + n
            x = x * 2
        else:
            x = x - n
    return x.relu()


@program(*with_n(3, 0, 5))
def for_over_range(x, n):
    for i in range(n):
        x = x + i
    return x


@program(*with_n(4, 1))
def for_with_break(x, n):
    for i in range(10):
        if i == n:
            break
        x = x * 2 + i
    else:
        x = x * 100
    return x, i


@program(*with_n(20, 3))
def for_else(x, n):
    for i in range(n):
        if i > 5:
            found = i
            break
    else:
        found = None
    return x if found is None else x + found


@program(*with_n(6))
def for_with_continue(x, n):
    total = 0
    for i in range(n):
        if i % 2:
            continue
        total += i
        x = x + total
    return x, total


@program(*with_n(5, 1, 0))
def while_loop(x, n):
    while n > 0:
        x = x * 1.5
        n -= 2
    return x, n


@program(*with_n(7, 100))
def while_else(x, n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 20:
            break
    else:
        x = x + steps
    return x, steps, n


@program(*with_n(3))
def while_true(x, n):
    i = 0
    while True:
        x = x + 1
        i += 1
        if i >= n:
            return x, i


@program(*with_n(3, 4))
def nested_loops(x, n):
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            x = x + i * j
        else:
            x = x - 1
    return x


@program(*with_n(3))
def break_out_of_inner_loop(x, n):
    seen = []
    for i in range(n):
        for j in range(n):
            if i * j == 2:
                break
            seen.append((i, j))
        if len(seen) > 4:
            break
    return x * len(seen), seen


@program(lambda: (torch.ones(2, 3),), lambda: (torch.ones(4, 3),))
def for_over_rows(x):
    total = torch.zeros(3)
    for i, row in enumerate(x):
        total = total + row * i
    return total


@program(lambda: (torch.ones(2), [1, 2, 3]), lambda: (torch.ones(2), []), lambda: (torch.ones(2), [0.5]))
def for_over_list(x, items):
    for item in items:
        x = x * item
    return x


@program(lambda: (torch.ones(2), {"a": 1, "b": 2}), lambda: (torch.ones(2), {"b": 2, "a": 1}))
def for_over_dict(x, table):
    keys = ""
    for key, value in table.items():
        x = x * 3 + value
        keys += key
    for key in table:
        x = x + len(key)
    return x, keys


@program(lambda: (torch.ones(2), "hello"), lambda: (torch.ones(2), ""))
def for_over_string(x, text):
    for letter in text:
        if letter == "l":
            x = x + 1
    return x


@program(*with_n(0, 1))
def early_returns(x, n):
    if n == 0:
        return x
    y = x.sum()
    if n == 1:
        return y, x
    return None


@program(x3)
def no_return(x):
    x + 1


@program(lambda: (torch.ones(3), []))
def return_in_a_loop(x, log):
    for i in range(5):
        log.append(i)
        if i == 2:
            return x * i
    return x


@program(*with_n(3, 6))
def loop_variable_after_the_loop(x, n):
    for k in range(n):
        pass
    return x + k


@program(*with_n(5))
def list_grows_while_read(x, n):
    queue, seen = [1], []
    while queue:
        item = queue.pop(0)
        seen.append(item)
        if item < n:
            queue += [item * 2, item * 2 + 1]
    return x * len(seen), seen


@program(lambda: (torch.ones(2, 3),), lambda: (torch.ones(3, 3),), lambda: (torch.ones(5, 2),))
def branch_on_shape(x):
    if x.shape[0] == x.shape[1]:
        return x @ x
    if x.size(0) > 4:
        return x.T
    return x.sum(0)


@program(
    lambda: (torch.ones(2),),
    lambda: (torch.ones(2, dtype=torch.float64),),
    lambda: (torch.ones(2, dtype=torch.int64),),
)
def branch_on_dtype(x):
    if x.dtype is torch.float32:
        return x + 1
    return x.float() if x.is_floating_point() else x * 2


@program(lambda: (torch.ones(2),), lambda: (torch.ones(2, 2),), lambda: (torch.tensor(1.0),))
def branch_on_rank(x):
    if x.dim() == 0:
        return x[None]
    return x.sum(-1) if x.ndim > 1 else x.prod()


@program(lambda: (torch.ones(2), None, 3), lambda: (torch.ones(2), 4, None))
def branch_on_none(x, a, b):
    a = a if a is not None else 10
    if b is None:
        b = 1
    return x * a - b


@program(*with_n(1, 2, 3))
def deep_nesting(x, n):
    for i in range(2):
        if i < n:
            while n > i:
                for j in (1, 2):
                    if j == n:
                        if i:
                            x = x - 1
                        else:
                            x = x * 2
                    else:
                        x = x + 0.5
                n -= 1
    return x, n


@program(lambda: (torch.ones(2), iter([1, 2, 3, 4])))
def loop_over_half_used_iterator(x, items):
    first = next(items)
    for item in items:
        x = x + item * first
        if item == 3:
            break
    return x


@program(lambda: (torch.ones(2), 3))
def pass_and_del(x, n):
    y = x * n
    z = y + 1
    del y
    for _ in range(n):
        pass
    return z


@program(*with_n(2, 3))
def unbound_local(x, n):
    if n == 2:
        y = x
    return y + 1


@program(*with_n(2))
def many_locals(x, n):
    a = x
    b = a + n
    c = b * 2
    d = c - a
    e = d / n
    f = e + b  # noqa: E702
    a, b, c, d, e, f = f, e, d, c, b, a
    return a, b, c, d, e, f
