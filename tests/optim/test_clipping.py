"""clip_grad_norm: the joint norm of all gradients, scaled down to a maximum."""

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim


def parameter(gradient, device):
    p = nn.Parameter(ndl.init.zeros(*np.shape(gradient), device=device))
    p.grad = ndl.Tensor(gradient, device=device, dtype="float32", requires_grad=False)
    return p


def test_gradients_are_scaled_to_the_joint_norm(device):
    params = [parameter([3.0, 0.0], device), parameter([[4.0]], device), parameter(12.0, device)]
    norm = optim.clip_grad_norm(params, 6.5)
    assert type(norm) is float and norm == pytest.approx(13)
    np.testing.assert_allclose(params[0].grad.numpy(), [1.5, 0], rtol=1e-6)
    np.testing.assert_allclose(params[1].grad.numpy(), [[2]], rtol=1e-6)
    np.testing.assert_allclose(params[2].grad.numpy(), 6, rtol=1e-6)
    assert optim.clip_grad_norm(params, 100) == pytest.approx(6.5)


@pytest.mark.parametrize("max_norm", [5.0, 5.5, float("inf")])
def test_gradients_within_the_norm_stay(device, max_norm):
    p = parameter([3.0, -4.0], device)
    grad = p.grad
    assert optim.clip_grad_norm([p], max_norm) == pytest.approx(5)
    assert p.grad is grad
    np.testing.assert_array_equal(p.grad.numpy(), [3, -4])


def test_zero_gradients_stay_zero(device):
    p = parameter([0.0, 0.0], device)
    assert optim.clip_grad_norm([p], 1.0) == 0
    np.testing.assert_array_equal(p.grad.numpy(), [0, 0])


def test_parameters_without_gradient_are_passed_over(device):
    p, without = parameter([3.0, 4.0], device), nn.Parameter(ndl.init.ones(2, device=device))
    assert optim.clip_grad_norm(iter([without, p]), 1.0) == pytest.approx(5)
    assert without.grad is None
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-6)


def test_nothing_to_clip():
    assert optim.clip_grad_norm([], 1.0) == 0


def test_the_optimizer_clips_its_own_parameters_to_a_quarter(device):
    p, other = parameter([3.0, 4.0], device), parameter([3.0, 4.0], device)
    opt = optim.SGD([p], lr=1.0)
    assert opt.clip_grad_norm() == pytest.approx(5)
    np.testing.assert_allclose(p.grad.numpy(), [0.15, 0.2], rtol=1e-6)
    np.testing.assert_array_equal(other.grad.numpy(), [3, 4])
    opt.step()
    np.testing.assert_allclose(p.numpy(), [-0.15, -0.2], rtol=1e-6)


def test_clipped_gradients_are_constants_on_their_device(device, rng):
    model = nn.Linear(3, 2, device=device)
    model(ndl.Tensor(rng.standard_normal((4, 3)), device=device, dtype="float32")).sum().backward()
    optim.clip_grad_norm(model.parameters(), 1e-3)
    for p in model.parameters():
        assert p.grad.device == device and p.grad.shape == p.shape
        assert p.grad.op is None and not p.grad.requires_grad
        assert p.grad.numpy().dtype == np.float32
