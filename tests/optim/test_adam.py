"""Adam: the update against numpy, the step counter, bias correction, weight decay."""

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim


def parameter(values, device):
    return nn.Parameter(ndl.Tensor(values, device=device, dtype="float32", requires_grad=False))


def give_gradient(p, values):
    p.grad = ndl.Tensor(values, device=p.device, dtype="float32", requires_grad=False)


def adam(values, grads, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    """Return the values after each gradient, None meaning no gradient at that step, in float64."""
    values = np.array(values, np.float64)
    m, v = np.zeros_like(values), np.zeros_like(values)
    path = []
    for t, grad in enumerate(grads, start=1):
        if grad is not None:
            g = grad + weight_decay * values
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            values = values - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
        path.append(values)
    return path


def run(p, opt, grads):
    """Return the values of `p` after a step with each gradient."""
    path = []
    for grad in grads:
        opt.reset_grad()
        if grad is not None:
            give_gradient(p, grad)
        opt.step()
        path.append(p.numpy())
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weight_decay": 0.1},
        {"beta1": 0.5, "beta2": 0.7},
        {"beta1": 0.0},
        {"eps": 0.5},
        {"beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(3, 2), ()], ids=str)
def test_adam_against_numpy(device, settings, shape, rng):
    values = rng.standard_normal(shape)
    grads = [rng.standard_normal(shape) for _ in range(6)]
    p = parameter(values, device)
    path = run(p, optim.Adam([p], lr=0.1, **settings), grads)
    np.testing.assert_allclose(path, adam(values, grads, 0.1, **settings), rtol=1e-4, atol=1e-5)


def test_two_parameters_share_a_counter_that_starts_at_1(device):
    p, q = parameter(1.0, device), parameter(-2.0, device)
    opt = optim.Adam([p, q], lr=0.01)
    path = []
    for p_grad, q_grad in [(0.5, 3.0), (-1.0, 3.0), (2.0, 3.0)]:
        give_gradient(p, p_grad)
        give_gradient(q, q_grad)
        opt.step()
        path.append((p.item(), q.item()))
    # With corrected moments stored, p would be 0.9883552 at step 2; with a counter for each
    # parameter, q would first move by 0.00744.
    np.testing.assert_allclose(
        path, [(0.99, -2.01), (0.993661, -2.02), (0.9894645, -2.03)], rtol=1e-6
    )


def test_weight_decay_goes_into_the_gradient(device):
    p = parameter(1.0, device)
    path = run(p, optim.Adam([p], lr=0.01, weight_decay=0.1), [0.0] * 3)
    np.testing.assert_allclose(path, [0.99, 0.9800027, 0.9700101], rtol=1e-6)  # AdamW: 0.999 first


def test_the_counter_rises_once_a_step_whoever_has_a_gradient(device):
    p, unused = parameter(1.0, device), parameter(1.0, device)
    opt = optim.Adam([unused, p])
    assert opt.t == 0
    run(p, opt, [1.0, None, 1.0])
    assert opt.t == 3 and unused.item() == 1


def test_a_parameter_that_comes_late_is_corrected_by_the_common_counter(device):
    grads = [None, None, 1.0, None, 2.0]
    p = parameter(1.0, device)
    path = run(p, optim.Adam([p], lr=0.1), grads)
    np.testing.assert_allclose(path, adam(1.0, grads, 0.1), rtol=1e-5)


def test_raw_moments_are_kept(device):
    p = parameter([1.0, 1.0], device)
    opt = optim.Adam([p])
    run(p, opt, [[1.0, -2.0], [3.0, 0.0]])
    np.testing.assert_allclose(opt.m[p].numpy(), [0.9 * 0.1 + 0.3, -0.18], rtol=1e-5)
    np.testing.assert_allclose(opt.v[p].numpy(), [0.999 * 0.001 + 0.009, 0.003996], rtol=1e-5)


def test_adam_defaults(device):
    p = parameter(1.0, device)
    np.testing.assert_allclose(
        run(p, optim.Adam([p]), [1.0, -3.0]), adam(1.0, [1.0, -3.0], 0.01), rtol=1e-6
    )


def test_tiny_gradients_divide_by_no_zero(device):
    p = parameter([1.0, 1.0], device)
    (values,) = run(p, optim.Adam([p]), [[0.0, 1e-30]])
    assert np.isfinite(values).all() and values[0] == 1
