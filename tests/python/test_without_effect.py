"""What programs set that has no effect here, and what says that it cannot."""
import pytest

import flambeau as fl


@pytest.mark.parametrize("call, error, part", [
    (lambda: fl.compiler.set_stance("fail_on_recompile"), NotImplementedError, "force_eager"),
    (lambda: fl.compiler.load_cache_artifacts(b""), NotImplementedError, "FLAMBEAU_CACHE_DIR"),
    (lambda: fl.jit.load("model.pt"), RuntimeError, "state_dict"),
    (lambda: fl.mps.current_device(), RuntimeError, "'mps'"),
    (lambda: fl.backends.cudnn.flags(fast=True), TypeError, "fast"),
    (lambda: fl.lobpcg, AttributeError, "lobpcg"),
])
def test_what_cannot_be_done_says_so(call, error, part):
    with pytest.raises(error, match=part):
        call()


def test_switches_are_kept():
    cudnn, config = fl.backends.cudnn, fl._dynamo.config
    with cudnn.flags(enabled=False):
        assert not cudnn.enabled
    assert cudnn.enabled and cudnn.set_flags(_benchmark=True)[1] is False and cudnn.benchmark
    cudnn.set_flags(_benchmark=False)
    with config.patch({"new": 1}, verbose=True), config.patch("cache_size_limit", 2):
        assert config.new == 1 and config.verbose and config.cache_size_limit == 2
    assert not hasattr(config, "new") and not config.verbose and config.cache_size_limit == 8


def test_decorators_give_their_function_back():
    def f(x):
        return x + 1

    for decorate in (fl.compiler.substitute_in_graph(f), fl.compiler.allow_in_graph, fl.jit.script,
                     fl.jit.trace, fl.jit.ignore, fl.fx.wrap, fl._dynamo.run):
        assert decorate(f) is f
    assert fl.compiler.disable(f)(2) == fl.compiler.disable()(f)(2) == 3
    assert fl.jit.fork(f, 2).wait() == 3


def test_functions_without_a_device_in_a_scope_of_one():
    with fl.device("cpu"):
        assert fl.complex(fl.ones(1), fl.ones(1)).tolist() == [1 + 1j]
        assert fl.frombuffer(bytearray(4), dtype=fl.float32).tolist() == [0]
        assert fl.normal(fl.ones(2), 1.0).shape == (2,)


def test_the_steps_of_a_profile(tmp_path):
    action = fl.profiler.schedule(wait=2, warmup=1, active=1, skip_first=1, skip_first_wait=1)
    assert [action(step).name for step in range(4)] == ["NONE", "WARMUP", "RECORD_AND_SAVE", "NONE"]
    with fl.profiler.profile() as profile:
        with fl.profiler.record_function("part"):
            pass
    profile.add_metadata("run", "7")
    profile.export_chrome_trace(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    assert '"run": "7"' in text and '"part"' in text
