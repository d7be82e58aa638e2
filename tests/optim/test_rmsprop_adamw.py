"""AdamW and RMSprop: the updates against numpy, defaults, decoupled weight decay."""

import numpy as np
import pytest

from needle import optim
from tests.optim.test_adam import adam, parameter, run

GRADS = [np.array([0.5, -1.0]), np.array([2.0, 0.1]), None, np.array([-0.3, 3.0])]


def adamw(values, grads, lr, weight_decay, **settings):
    """Return the values after each gradient: Adam's moves, with the parameter shrunk before each.

    Adam's move depends on the gradients alone, so it can be read off a run from zero.
    """
    values = np.array(values, np.float64)
    positions = [np.zeros_like(values), *adam(np.zeros_like(values), grads, lr, **settings)]
    path = []
    for grad, before, after in zip(grads, positions, positions[1:], strict=False):
        if grad is not None:
            values = values * (1 - lr * weight_decay) + (after - before)
        path.append(values)
    return path


def rmsprop(values, grads, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0):
    """Return the values after each gradient, None meaning no gradient at that step, in float64."""
    values = np.array(values, np.float64)
    v, u = np.zeros_like(values), np.zeros_like(values)
    path = []
    for grad in grads:
        if grad is not None:
            g = grad + weight_decay * values
            v = alpha * v + (1 - alpha) * g * g
            u = momentum * u + g / (np.sqrt(v) + eps)
            values = values - lr * u
        path.append(values)
    return path


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("settings", [{}, {"beta1": 0.5, "beta2": 0.7}, {"eps": 0.1}], ids=str)
def test_adamw_against_numpy(device, weight_decay, settings):
    p = parameter([1.0, -2.0], device)
    opt = optim.AdamW([p], lr=0.1, weight_decay=weight_decay, **settings)
    expected = adamw([1.0, -2.0], GRADS, 0.1, weight_decay, **settings)
    np.testing.assert_allclose(run(p, opt, GRADS), expected, rtol=1e-5)


def test_adamw_decay_is_decoupled(device):
    """Zero gradients still shrink the parameter, by exactly lr * weight_decay."""
    p = parameter([1.0], device)
    path = run(p, optim.AdamW([p], lr=0.01, weight_decay=0.1), [np.zeros(1)] * 3)
    np.testing.assert_allclose(np.ravel(path), [0.999, 0.998001, 0.997002999], rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{}, {"alpha": 0.5}, {"eps": 0.1}, {"weight_decay": 0.1}, {"momentum": 0.9}],
    ids=str,
)
def test_rmsprop_against_numpy(device, settings):
    p = parameter([1.0, -2.0], device)
    path = run(p, optim.RMSprop([p], lr=0.05, **settings), GRADS)
    np.testing.assert_allclose(path, rmsprop([1.0, -2.0], GRADS, 0.05, **settings), rtol=1e-5)


def test_defaults(device):
    p, q = parameter([1.0], device), parameter([1.0], device)
    np.testing.assert_allclose(
        run(p, optim.AdamW([p]), [np.ones(1)]), adamw([1.0], [np.ones(1)], 0.001, 0.01), rtol=1e-6
    )
    np.testing.assert_allclose(
        run(q, optim.RMSprop([q]), [np.ones(1)]), rmsprop([1.0], [np.ones(1)], 0.01), rtol=1e-6
    )
