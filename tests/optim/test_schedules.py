"""Schedules: the learning rate after each step, by formula; going on from a saved state."""

import math

import pytest

from needle import optim
from needle.errors import NeedleError
from tests.optim.test_adam import parameter


def sgd(lr=0.8):
    return optim.SGD([parameter([1.0], None)], lr=lr)


def rates(make, steps):
    """Return the learning rates before the first step and after each."""
    opt = sgd()
    schedule = make(opt)
    path = [opt.lr]
    for _ in range(steps):
        schedule.step()
        path.append(opt.lr)
    return path


CASES = {
    "lambda": (lambda opt: optim.LambdaLR(opt, lambda n: 1 / (n + 1)), [0.8, 0.4, 0.8 / 3, 0.2]),
    "step": (lambda opt: optim.StepLR(opt, 2, gamma=0.5), [0.8, 0.8, 0.4, 0.4, 0.2]),
    "exponential": (lambda opt: optim.ExponentialLR(opt, 0.5), [0.8, 0.4, 0.2, 0.1]),
    "cosine": (
        lambda opt: optim.CosineAnnealingLR(opt, 4, lr_min=0.1),
        [0.1 + 0.35 * (1 + math.cos(math.pi * n / 4)) for n in range(5)] + [0.1, 0.1],
    ),
    "warmup": (lambda opt: optim.LinearWarmup(opt, 3), [0.2, 0.4, 0.6, 0.8, 0.8]),
    "warmup-then-exponential": (
        lambda opt: optim.LinearWarmup(opt, 1, then=optim.ExponentialLR(opt, 0.5)),
        [0.4, 0.8, 0.4, 0.2],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rates(name):
    make, expected = CASES[name]
    assert rates(make, len(expected) - 1) == pytest.approx(expected)


@pytest.mark.parametrize("name", CASES)
def test_going_on(name):
    make, expected = CASES[name]
    opt = sgd()
    schedule = make(opt)
    schedule.step()
    resumed_opt = sgd(lr=123.0)
    resumed = make(resumed_opt)
    resumed.load_state_dict(schedule.state_dict())
    assert resumed_opt.lr == pytest.approx(expected[1])
    resumed.step()
    assert resumed_opt.lr == pytest.approx(expected[2])


@pytest.mark.parametrize(
    "make",
    [
        lambda opt: optim.StepLR(opt, 0),
        lambda opt: optim.CosineAnnealingLR(opt, 0),
        lambda opt: optim.LinearWarmup(opt, 0),
    ],
)
def test_refusals(make):
    with pytest.raises(NeedleError, match="is 0; give a number from 1 up"):
        make(sgd())


def test_a_rate_of_zero_stays_zero():
    opt = sgd(lr=0.0)
    optim.CosineAnnealingLR(opt, 3).step()
    assert opt.lr == 0
