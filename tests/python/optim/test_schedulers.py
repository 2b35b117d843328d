"""Every learning rate scheduler against PyTorch's rates; combinations and state."""
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import flambeau as fl
from flambeau import optim
from flambeau.optim import lr_scheduler

from optim_cases import EPOCHS, SCHEDULERS, case_name, measure

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text())["schedulers"]


def optimizer(**options):
    p = fl.zeros(1).requires_grad_()
    return optim.SGD([p], lr=0.1, momentum=0.9, **options)


def rates(optimizer, scheduler, epochs, start=0):
    out = []
    for epoch in range(start, start + epochs):
        group = optimizer.param_groups[0]
        out.append([group["lr"], group["momentum"]])
        optimizer.step()
        scheduler.step(measure(epoch)) if isinstance(scheduler,
                                                     lr_scheduler.ReduceLROnPlateau) else scheduler.step()
    return out


@pytest.mark.parametrize("name, kwargs", SCHEDULERS, ids=[case_name(*c) for c in SCHEDULERS])
def test_rates(name, kwargs):
    o = optimizer()
    scheduler = getattr(lr_scheduler, name)(o, **kwargs)
    np.testing.assert_allclose(rates(o, scheduler, EPOCHS), EXPECTED[case_name(name, kwargs)], rtol=1e-12)
    assert scheduler.get_last_lr() == [o.param_groups[0]["lr"]]


@pytest.mark.parametrize("name, kwargs", SCHEDULERS, ids=[case_name(*c) for c in SCHEDULERS])
def test_state_goes_on(name, kwargs):
    o = optimizer()
    scheduler = getattr(lr_scheduler, name)(o, **kwargs)
    rates(o, scheduler, 5)
    after = optimizer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = getattr(lr_scheduler, name)(after, **kwargs)
    second.load_state_dict(scheduler.state_dict())
    after.load_state_dict(o.state_dict())
    expected = EXPECTED[case_name(name, kwargs)][5:]
    np.testing.assert_allclose(rates(after, second, EPOCHS - 5, 5), expected, rtol=1e-12)


def test_lambdas():
    o = optimizer()
    scheduler = lr_scheduler.LambdaLR(o, lambda epoch: 0.5**epoch)
    assert [r[0] for r in rates(o, scheduler, 3)] == [0.1, 0.05, 0.025]
    o = optimizer()
    scheduler = lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.5)
    assert [r[0] for r in rates(o, scheduler, 3)] == [0.1, 0.05, 0.025]
    assert scheduler.state_dict()["lr_lambdas"] == [None]


def test_one_after_the_other():
    o = optimizer()
    warm = lr_scheduler.LinearLR(o, start_factor=0.5, total_iters=2)
    scheduler = lr_scheduler.SequentialLR(o, [warm, lr_scheduler.ExponentialLR(o, gamma=0.5)], milestones=[2])
    np.testing.assert_allclose([r[0] for r in rates(o, scheduler, 5)], [0.05, 0.075, 0.1, 0.05, 0.025])


def test_all_at_once():
    o = optimizer()
    scheduler = lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, factor=0.1, total_iters=2),
                                               lr_scheduler.ExponentialLR(o, gamma=0.9)])
    np.testing.assert_allclose([r[0] for r in rates(o, scheduler, 4)], [0.01, 0.009, 0.081, 0.0729])
    with pytest.raises(ValueError, match="same optimizer"):
        lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o), lr_scheduler.ConstantLR(optimizer())])


def test_a_rate_that_is_a_tensor_stays_it():
    p, rate = fl.zeros(1).requires_grad_(), fl.tensor(0.5)
    o = optim.SGD([p], lr=rate)
    scheduler = lr_scheduler.StepLR(o, 1, gamma=0.5)
    o.step()
    scheduler.step()
    assert o.param_groups[0]["lr"] is rate and rate.item() == 0.25


def test_warns_when_it_comes_first():
    scheduler = lr_scheduler.StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match="before optimizer.step"):
        scheduler.step()


def test_refuses():
    with pytest.raises(TypeError, match="is not an Optimizer"):
        lr_scheduler.StepLR(1, 2)
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optimizer(), 2, last_epoch=3)
    with pytest.raises(ValueError, match="factor"):
        lr_scheduler.ConstantLR(optimizer(), factor=2)
    o = optimizer()
    scheduler = lr_scheduler.OneCycleLR(o, 0.1, total_steps=2)
    o.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match="total steps is 2"):
        scheduler.step()
