"""Modules that hold modules or parameters."""
from collections import OrderedDict

import pytest

import flambeau as fl
from flambeau import nn


def test_sequential():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    s = nn.Sequential(a, b)
    assert s[0] is a and s[-1] is b and len(s) == 2 and list(s[1:]) == [b]
    s.append(c).insert(0, nn.Identity())
    assert [type(m).__name__ for m in s] == ["Identity", "ReLU", "Tanh", "Sigmoid"]
    del s[1]
    assert list(s._modules) == ["0", "1", "2"] and s.pop(0) is not None and len(s) == 2
    assert len(s + nn.Sequential(a)) == 3 and len(s * 2) == 4
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a and list(named._modules) == ["first", "second"]
    with pytest.raises(IndexError, match="out of range"):
        s[5]


def test_module_list_and_dict():
    layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(2))
    layers += [nn.Linear(1, 1)]
    assert len(list(layers.parameters())) == 6 and len(layers[:2]) == 2
    layers.insert(0, nn.ReLU())
    assert type(layers[0]) is nn.ReLU and "3" in layers._modules
    choice = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    choice["c"] = nn.Sigmoid()
    assert list(choice) == ["a", "b", "c"] and "b" in choice and type(choice.pop("a")) is nn.ReLU
    with pytest.raises(NotImplementedError):
        layers(1)


def test_parameter_list_and_dict():
    p = nn.ParameterList([fl.zeros(2), nn.Parameter(fl.ones(1)), 3])
    assert len(list(p.parameters())) == 1 + 1 and p[2] == 3 and isinstance(p[0], nn.Parameter)
    p.append(fl.ones(1))
    assert len(p) == 4 and list(p.state_dict()) == ["0", "1", "3"]
    d = nn.ParameterDict({"w": fl.ones(2)})
    d.update({"v": fl.zeros(1)})
    assert list(d.keys()) == ["w", "v"] and list(d.state_dict()) == ["w", "v"]
    assert d.pop("w").tolist() == [1, 1] and "w" not in d
    assert list((d | nn.ParameterDict({"u": fl.ones(1)})).keys()) == ["v", "u"]
