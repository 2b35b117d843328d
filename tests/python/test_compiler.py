"""Around compile(): modules, what is not captured, marks of sizes, and messages about wrong arguments."""
import copy
import pickle
import sys

import pytest

import flambeau as fl

needs_capture = pytest.mark.skipif(not fl._C._has_capture, reason="capture needs another version of CPython")


def test_these_versions_of_python_have_capture():
    assert fl._C._has_capture is ((3, 11) <= sys.version_info[:2] <= (3, 13))


class Scaled(fl.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.weight, self.factor = fl.nn.Parameter(fl.ones(3)), factor

    def forward(self, x):
        return x * self.weight * self.factor

    def next(self):
        return type(self)(self.factor + 1)


def test_a_compiled_module_is_the_module():
    module = Scaled(2)
    compiled = fl.compile(module)
    assert compiled.__dict__ is module.__dict__ and compiled._orig_mod is module
    assert isinstance(compiled, Scaled) and isinstance(compiled, fl._dynamo.OptimizedModule)
    assert not isinstance(module, fl._dynamo.OptimizedModule)
    assert compiled.state_dict().keys() == module.state_dict().keys() == {"weight"}
    compiled.eval().factor = 5
    assert not module.training and compiled(fl.ones(3)).tolist() == module(fl.ones(3)).tolist() == [5] * 3
    assert fl.compile(compiled)._orig_mod is module


@needs_capture
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_compiled_module(again):
    compiled = fl.compile(Scaled(2))
    other = again(compiled)
    other.factor = 3
    assert compiled(fl.ones(3)).tolist() == [2] * 3 and other(fl.ones(3)).tolist() == [3] * 3
    assert len(other.explain()["graphs"]) == 1


def test_a_module_that_makes_another_of_its_class():
    made = fl.compile(Scaled(2)).next()
    assert type(made) is Scaled and made(fl.ones(3)).tolist() == [3] * 3

    class Doubles(Scaled):
        def forward(self, x):
            return type(self).mro()[-1] is object and Scaled.forward(type(self)(2 * self.factor), x)

    assert fl.compile(Doubles(2))(fl.ones(3)).tolist() == [4] * 3


@fl.compile
def plus_one(x):
    return x + 1


def test_a_compiled_function_is_copied_as_a_function_is():
    assert copy.deepcopy([plus_one])[0] is plus_one is copy.copy(plus_one)
    assert pickle.loads(pickle.dumps(plus_one)) is plus_one


@needs_capture
def test_compiling_what_is_compiled():
    found = fl._dynamo.explain(fl.compile(lambda x: x * 2))(fl.ones(2))
    assert found.graph_count == 1 and found.op_count == 1
    with fl.compiler.set_stance("force_eager"):
        assert plus_one(fl.ones(1)).tolist() == [2]


@needs_capture
def test_what_is_disabled_is_not_captured():
    seen = []

    def inner(x):
        seen.append(fl.compiler.is_compiling())
        return x + 1

    @fl.compiler.disable
    class Part(fl.nn.Module):
        def forward(self, x):
            return inner(x)

    model = fl.nn.Sequential(fl.nn.Tanh(), Part(), Scaled(2))
    model[0] = fl.compiler.disable(model[0])
    assert type(model[0]).__name__ == "Tanh" and isinstance(model[1], Part)
    plain = fl.compiler.disable(inner)
    compiled = fl.compile(lambda x: model(x * 2) + plain(x))
    assert compiled(fl.zeros(3)).tolist() == [3] * 3 and seen == [False, False]
    assert "_run_plainly" in compiled.explain()["breaks"][0]
    assert fl.compile(lambda x: (inner(x), x + 1)[1], fullgraph=True)(fl.ones(1)).tolist() == [2]
    assert seen[2:] == [True] and not fl.compiler.is_exporting()


@needs_capture
def test_marks_of_sizes():
    def graphs(mark, *sizes):
        compiled = fl.compile(lambda x: x * x.shape[0])
        for size in sizes:
            x = fl.ones(size, 2)
            mark(x)
            assert compiled(x).sum().item() == 2 * size * size
        return len(compiled.explain()["graphs"])

    assert graphs(lambda x: None, 3, 4, 5) == 2
    assert graphs(lambda x: fl._dynamo.mark_dynamic(x, -2), 3, 4, 5) == 1
    assert graphs(lambda x: fl._dynamo.mark_static(x, [0]), 3, 4, 5) == 3
    assert graphs(lambda x: fl._dynamo.mark_static(x), 3, 4, 5) == 3


@needs_capture
def test_a_break_that_is_asked_for():
    def f(x):
        y = x * 2
        fl._dynamo.graph_break()
        return y + 1

    compiled = fl.compile(f)
    assert compiled(fl.ones(2)).tolist() == [3, 3] and len(compiled.explain()["graphs"]) == 2


def test_functions_of_arrays():
    numpy = pytest.importorskip("numpy")
    twice = fl.compiler.wrap_numpy(lambda pair, plus: {"sum": numpy.add(*pair) + plus})
    assert twice((fl.ones(2), fl.ones(2)), plus=1)["sum"].tolist() == [3, 3]


def test_without_capture_functions_run_as_they_are(monkeypatch):
    def f(x):
        return x + 1

    monkeypatch.setattr(fl._C, "_has_capture", False)
    with pytest.warns(UserWarning, match="run eagerly") as warned:
        assert fl.compile(f) is f
        assert fl.compile(Scaled(2))(fl.ones(3)).tolist() == [2] * 3
    assert {w.filename for w in warned} == {__file__}
    assert fl.compile(f, backend="eager") is f


@pytest.mark.parametrize("call, error, part", [
    (lambda f, x: fl.compile(x), TypeError, "expected a function, method or module, got Tensor"),
    (lambda f, x: fl.compile(f, mode=3), TypeError, "mode to be of type str or None, got 3"),
    (lambda f, x: fl.compile(f, dynamic="yes"), TypeError, "dynamic to be of type bool or None, got 'yes'"),
    (lambda f, x: fl.compile(f, recompile_limit=1.5), TypeError, "recompile_limit to be of type int"),
    (lambda f, x: fl.compile(f, options=3), TypeError, "options to be of type dict"),
    (lambda f, x: fl.compile(f, mode="default", options={}), RuntimeError, "not both"),
    (lambda f, x: fl.compile(f, backend=3), TypeError, "backend to be a name or a function, got int"),
    (lambda f, x: fl.compile(f, backend="nothing"), ValueError, "known are aot_eager, eager, "),
    (lambda f, x: fl._dynamo.OptimizedModule(f), TypeError, "compile.module. makes one"),
    (lambda f, x: fl._dynamo.explain(3)(x), TypeError, "expected a function, method or module, got int"),
    (lambda f, x: fl.compiler.disable(3), TypeError, "expected a function, class or module, got int"),
    (lambda f, x: fl._dynamo.mark_dynamic(3, 0), TypeError, "expected a Tensor whose sizes .* got int"),
    (lambda f, x: fl._dynamo.mark_dynamic(x, "a"), TypeError, "expected an int or a list of them .* got 'a'"),
    (lambda f, x: fl._dynamo.mark_static(x, [0, 2]), IndexError, "no dimension 2 .* of 2 dimensions"),
])
def test_wrong_arguments(call, error, part):
    with pytest.raises(error, match=part):
        call(lambda x: x, fl.ones(2, 3))


def test_default_backend():
    assert fl.compiler.get_default_backend() == "inductor"
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    try:
        fl.compiler.set_default_backend(backend)
        assert fl.compile(lambda x: x + 1)(fl.ones(2)).tolist() == [2, 2] and len(seen) == 1
        assert fl.compile(lambda x: x + 1, backend="eager")(fl.ones(2)).tolist() == [2, 2] and len(seen) == 1
        with pytest.raises(TypeError, match="expected a name"):
            fl.compiler.set_default_backend(3)
    finally:
        fl.compiler.set_default_backend(None)
    assert fl.compiler.get_default_backend() == "inductor"
    assert fl.compile(lambda x: x + 1, backend=None, name="plus")(fl.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="dynamic_shapes"):
        fl.compile(lambda x: x, dynamic_shapes={})
    assert fl.compiler.skip_guard_on_globals_unsafe([1, 2]) == [True, True]
