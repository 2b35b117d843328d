"""Integers that vary become symbols of a graph at their second value."""
import pytest

import flambeau as fl

pytestmark = pytest.mark.skipif(not fl._C._has_capture, reason="capture needs another version of CPython")


def graphs(compiled):
    return len(compiled.explain()["graphs"])


def test_an_argument():
    def f(x, n):
        return (x * n + n // 2)[:, :n], n + 1, n - 7

    compiled, x = fl.compile(f), fl.arange(150.0).reshape(3, 50)
    for n in (3, 5, 9, 12, 20, 1, 0, -3, 40):
        got, expected = compiled(x, n), f(x, n)
        assert fl.equal(got[0], expected[0]) and got[1:] == expected[1:] and type(got[1]) is int
    assert graphs(compiled) == 5  # 3; any of 2 or more; 1; 0; -3


def test_a_position_in_a_cache():
    class Cache:
        def __init__(self):
            self.keys, self.position = fl.zeros(2, 32, 4), 0

        def update(self, x):
            self.keys[:, self.position:self.position + x.shape[1]] = x
            self.position += x.shape[1]
            return self.keys[:, :self.position]

    def step(cache, x):
        return cache.update(x).sum(1) * 2

    compiled, ours, plain = fl.compile(step), Cache(), Cache()
    for k in range(20):
        x = fl.full((2, 1, 4), float(k))
        assert fl.equal(compiled(ours, x), step(plain, x))
        assert ours.position == plain.position and type(ours.position) is int
    assert graphs(compiled) <= 4 and not compiled.explain()["breaks"]


def test_what_needs_the_number_follows_it():
    def f(x, n):
        for k in range(n):
            x = x + k
        return x, f"{n}", {n: n}, [0] * n

    compiled = fl.compile(f)
    for n in (2, 3, 4, 3, 2):
        got, expected = compiled(fl.ones(2), n), f(fl.ones(2), n)
        assert fl.equal(got[0], expected[0]) and got[1:] == expected[1:]


def test_dynamic_false_keeps_numbers():
    compiled = fl.compile(lambda x, n: x * n, dynamic=False)
    for n in (3, 4, 5):
        assert compiled(fl.ones(1), n).item() == n
    assert graphs(compiled) == 3
