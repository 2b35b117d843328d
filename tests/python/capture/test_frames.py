"""What depends on the version of CPython: how frames are entered, left and shown."""
import gc
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import flambeau as torch

pytestmark = pytest.mark.skipif(not torch._C._has_capture, reason="no capture on this Python")


def test_frames_are_as_expected():
    assert torch._C._frames_problem() == ""


def test_other_frames_mean_eager_and_one_warning():
    # The trial before the first capture uses max with a key: here that gives another result each time.
    program = """
        import builtins, itertools, warnings
        import flambeau as torch
        numbers = itertools.count()
        real = builtins.max
        builtins.max = lambda *args, **given: next(numbers) if "key" in given else real(*args, **given)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            functions = [torch.compile(lambda x: x * 2 + 1, fullgraph=True) for _ in range(3)]
        builtins.max = real
        assert functions[0](torch.ones(2)).tolist() == [3, 3]
        assert functions[0].explain()["graphs"] == []
        print([w.category.__name__ for w in seen], seen[0].message)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("['RuntimeWarning'] compile() runs functions eagerly"), run.stdout


def broken(*args):
    """What no capture goes through."""
    torch._C._break()
    return sys._getframe(1) if not args else args[0]


def test_a_frame_object_outlives_its_frame():
    def f(x, y=4):
        y = x + y
        frame = broken()
        z = y * 2
        return frame, z  # the last line

    compiled = torch.compile(f)
    for _ in range(3):
        frame, z = compiled(torch.ones(2))
        wanted_frame, wanted = f(torch.ones(2))
        assert z.tolist() == wanted.tolist()
        assert frame.f_lineno == wanted_frame.f_lineno
        assert frame.f_lasti == wanted_frame.f_lasti
        assert frame.f_code is f.__code__ and frame.f_locals["y"].tolist() == [5, 5]
        assert set(wanted_frame.f_locals) - set(frame.f_locals) <= {"x"}  # which was not used any more


def test_functions_that_return_constants_and_have_no_stack():
    def nothing():
        pass

    def one_of_two(x):
        x.add_(1)
        if x.dim() == 1:
            return "one"
        return "two"

    assert torch.compile(nothing)() is None
    compiled = torch.compile(one_of_two)
    for shape, text in [((2,), "one"), ((2, 2), "two"), ((2,), "one")]:
        x = torch.zeros(shape)
        assert compiled(x) == text and x.sum().item() == x.numel()


def depth_of(function):
    """How deep a function that calls itself gets."""
    low, high = 10, sys.getrecursionlimit() + 100
    while low < high:
        middle = (low + high + 1) // 2
        try:
            function(middle)
            low = middle
        except RecursionError:
            high = middle - 1
    return low


def test_recursion_is_as_deep_as_without_a_hook():
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    def with_break(n):
        return broken(down(n))

    plain = depth_of(with_break)
    assert plain > sys.getrecursionlimit() - 200
    assert depth_of(torch.compile(with_break)) >= plain - 10


def test_recursion_through_frames_with_regions():
    def down(n, x):
        x = x + 1
        broken()
        return x if n == 0 else down(n - 1, x)

    def start(n):
        return down(n, torch.zeros(1)).item()

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(160)
    try:
        plain = depth_of(start)
        compiled = depth_of(torch.compile(start))
    finally:
        sys.setrecursionlimit(limit)
    assert plain - 40 <= compiled <= plain + 40


def test_a_new_limit_of_recursion_raises_the_error_of_python():
    def endless(x):
        broken()
        return endless(x + 1)

    with pytest.raises(RecursionError):
        torch.compile(endless)(torch.zeros(1))
    assert torch.compile(lambda x: x + 1)(torch.zeros(1)).item() == 1


def test_instructions_that_only_python_runs():
    def groups(x):
        x = x + 1
        broken()
        try:
            raise ExceptionGroup("both", [ValueError("v"), KeyError("k")])
        except* ValueError as e:
            x = x * len(e.exceptions)
        except* KeyError:
            x = x + 10
        return x + 1

    compiled = torch.compile(groups)
    for _ in range(3):
        assert compiled(torch.zeros(2)).tolist() == [12, 12]


def test_reraising_in_the_middle():
    def f(x, log):
        x = x + 1
        try:
            try:
                broken()
                raise KeyError("a")
            finally:
                log.append(x.sum().item())
        except LookupError as e:
            log.append(str(e))
        return x * 2

    compiled = torch.compile(f)
    for _ in range(3):
        log = []
        assert compiled(torch.zeros(2), log).tolist() == [2, 2] and log == [2.0, "'a'"]


def test_generators_that_are_closed_thrown_into_and_delegate():
    def inner(x):
        try:
            sent = yield x
            while sent is not None:
                sent = yield x * sent
        except KeyError:
            yield x - 1
        finally:
            x.add_(100)
        return x + 5

    def outer(x):
        got = yield from inner(x)
        yield got

    def f(x):
        x = x + 1
        g = outer(x)
        out = [next(g).clone(), g.send(3), g.throw(KeyError).clone(), next(g)]
        try:
            next(g)
        except StopIteration:
            out.append(x * 2)
        h = inner(x * 0)
        next(h)
        h.close()
        return out

    wanted = [t.tolist() for t in f(torch.ones(2))]
    compiled = torch.compile(f)
    for _ in range(3):
        assert [t.tolist() for t in compiled(torch.ones(2))] == wanted


def test_a_generator_must_not_stop_by_stop_iteration():
    def bad(x):
        yield x
        raise StopIteration

    def f(x):
        try:
            return [t + 1 for t in bad(x)]
        except RuntimeError as e:
            return [x, str(e), type(e.__cause__).__name__]

    compiled = torch.compile(f)
    for _ in range(2):
        x, text, cause = compiled(torch.ones(2))
        assert (text, cause) == ("generator raised StopIteration", "StopIteration")


def test_comprehensions_leave_locals_of_their_names():
    def f(x):
        i = 7
        rows = [x * i for i in range(3)]
        broken()
        more = {i: [j for j in range(i)] for i in range(3)}
        return rows[2] + i, more, i

    compiled = torch.compile(f)
    for _ in range(3):
        row, more, i = compiled(torch.ones(2))
        assert row.tolist() == [9, 9] and more == {0: [], 1: [0], 2: [0, 1]} and i == 7


def test_super_in_all_its_forms():
    class Base:
        scale = 3

        def forward(self, x):
            return x * self.scale

        @classmethod
        def make(cls):
            return cls.__name__

    class Derived(Base):
        def forward(self, x):
            return super().forward(x) + super(Derived, self).forward(x) + super().scale

        @classmethod
        def make(cls):
            return super().make() + "!"

    class Last(Derived):
        def forward(self, x):
            forward = super().forward
            return forward(x), self.make()

    compiled = torch.compile(Last().forward, fullgraph=True)
    for _ in range(2):
        y, name = compiled(torch.ones(2))
        assert y.tolist() == [9, 9] and name == "Last!"


def lines_seen(function, *args):
    seen = []

    def trace(frame, event, arg):
        if frame.f_code is function.__code__ and event == "line":
            seen.append(frame.f_lineno)
        return trace

    return seen, trace


def test_a_debugger_sees_each_line():
    def f(x):
        y = x + 1
        z = y * 2
        return z

    compiled = torch.compile(f)
    compiled(torch.ones(2))
    before = sys.gettrace()
    for _ in range(2):
        seen, trace = lines_seen(f)
        sys.settrace(trace)
        try:
            compiled(torch.ones(2))
        finally:
            sys.settrace(before)
        first = f.__code__.co_firstlineno
        assert seen == [first + 1, first + 2, first + 3]
    assert len(compiled.explain()["graphs"]) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
@pytest.mark.parametrize("everywhere", [True, False])
def test_monitoring_sees_each_line(everywhere):
    def f(x):
        y = x + 1
        return y * 2

    compiled = torch.compile(f)
    compiled(torch.ones(2))
    monitoring, tool, seen = sys.monitoring, 4, []
    monitoring.use_tool_id(tool, "test")
    try:
        monitoring.register_callback(tool, monitoring.events.LINE,
                                     lambda code, line: seen.append((code, line)))
        if everywhere:
            monitoring.set_events(tool, monitoring.events.LINE)
        else:
            monitoring.set_local_events(tool, f.__code__, monitoring.events.LINE)
        compiled(torch.ones(2))
        monitoring.set_events(tool, 0)
        monitoring.set_local_events(tool, f.__code__, 0)
    finally:
        monitoring.free_tool_id(tool)
    first = f.__code__.co_firstlineno
    assert [line for code, line in seen if code is f.__code__] == [first + 1, first + 2]
    assert compiled(torch.ones(2)).tolist() == [4, 4]


def test_attributes_that_change_are_seen_however_objects_keep_them():
    class Plain:
        def __init__(self):
            self.scale = 2

    class Slotted:
        __slots__ = ("scale",)

        def __init__(self):
            self.scale = 2

    class Many:
        def __init__(self):
            for k in range(60):
                setattr(self, f"a{k}", k)
            self.scale = 2

    for kind in (Plain, Slotted, Many):
        o = kind()
        compiled = torch.compile(lambda x: x * o.scale, recompile_limit=1000)
        for scale in (2, 2, 2, 3, 3, 5, 2, 7, 7):
            o.scale = scale
            assert compiled(torch.ones(1)).item() == scale
            if kind is not Slotted and scale == 5:
                o.__dict__["scale"] = 11
                assert compiled(torch.ones(1)).item() == 11
                o.__dict__ = {"scale": 13}
                assert compiled(torch.ones(1)).item() == 13


def test_collections_of_garbage_are_no_part_of_the_program():
    def callback(phase, info):
        sorted([time.perf_counter()], key=lambda t: t)

    def f(x, n):
        rows = [[x * k, {k: [k]}] for k in range(n)]
        return rows[-1][0] + 1

    thresholds = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(1, 1, 1)
    try:
        compiled = torch.compile(f, fullgraph=True)
        assert compiled(torch.ones(2), 40).tolist() == [40, 40]
        assert len(compiled.explain()["graphs"]) == 1 and not compiled.explain()["breaks"]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(callback)


def test_a_plain_thread_beside_a_compiled_call():
    def f(x):
        x = x + 1
        broken()
        return x * 2

    compiled, results = torch.compile(f), []
    threads = [
        threading.Thread(target=lambda: results.append(compiled(torch.ones(2)).tolist())) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[4, 4]] * 4
