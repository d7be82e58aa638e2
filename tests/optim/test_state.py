"""What an optimizer saves and takes over: training goes on as if it had never stopped."""

import numpy as np
import pytest

from needle import optim
from needle.errors import NeedleError, ShapeError
from tests.optim.test_adam import give_gradient, parameter

MAKERS = {
    "sgd": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "adam": lambda params: optim.Adam(params, lr=0.1),
    "adamw": lambda params: optim.AdamW(params, lr=0.1),
    "rmsprop": lambda params: optim.RMSprop(params, lr=0.1, momentum=0.5),
}


def train(params, opt, grads):
    for grad in grads:
        for p, values in zip(params, grad, strict=True):
            p.grad = None
            if values is not None:
                give_gradient(p, values)
        opt.step()


@pytest.mark.parametrize("name", MAKERS)
def test_going_on_is_as_never_having_stopped(device, name, rng):
    grads = [(rng.standard_normal(3), rng.standard_normal((2, 2))) for _ in range(6)]
    grads[0] = (grads[0][0], None)  # the second parameter starts late
    start = rng.standard_normal(3), rng.standard_normal((2, 2))

    whole = [parameter(values, device) for values in start]
    opt = MAKERS[name](whole)
    train(whole, opt, grads[:3])
    opt.lr = 0.05
    train(whole, opt, grads[3:])

    first = [parameter(values, device) for values in start]
    opt = MAKERS[name](first)
    train(first, opt, grads[:3])
    opt.lr = 0.05
    second = [parameter(p.numpy(), device) for p in first]
    resumed = MAKERS[name](second)
    resumed.load_state_dict(opt.state_dict())
    train(second, resumed, grads[3:])

    assert resumed.lr == 0.05
    for p, q in zip(whole, second, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_what_is_saved(device):
    p, q = parameter([1.0, 2.0], device), parameter([3.0], device)
    opt = optim.Adam([p, q], lr=0.1)
    assert opt.state_dict() == {"lr": 0.1, "t": 0}
    train([p, q], opt, [(np.ones(2), None)])
    state = opt.state_dict()
    assert set(state) == {"lr", "t", "m.0", "v.0"} and state["t"] == 1
    np.testing.assert_allclose(state["m.0"], [0.1, 0.1], rtol=1e-6)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"lr": 1, "t": 1, "n.0": [1.0, 2.0]}, NeedleError, "Adam with 1 parameters .* 'n.0'"),
        ({"lr": 1, "t": 1, "m.1": [1.0, 2.0]}, NeedleError, "no state 'm.1'"),
        ({"lr": 1, "t": 1, "m": 1}, NeedleError, "no state 'm'"),
        (
            {"lr": 1, "t": 1, "m.0": [1.0]},
            ShapeError,
            r"m.0 has shape \(1,\), its parameter \(2,\)",
        ),
    ],
)
def test_what_does_not_fit_changes_nothing(device, state, error, message):
    opt = optim.Adam([parameter([1.0, 2.0], device)], lr=0.1)
    with pytest.raises(error, match=message):
        opt.load_state_dict(state)
    assert opt.state_dict() == {"lr": 0.1, "t": 0}


def test_zero_grad_is_reset_grad(device):
    p = parameter([1.0], device)
    give_gradient(p, [1.0])
    optim.SGD([p]).zero_grad()
    assert p.grad is None
