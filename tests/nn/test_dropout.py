"""Dropout: which elements it drops, how it scales the rest, what it draws."""

import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import NeedleError
from tests.nn.module_gradcheck import FLOAT64, check_module


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(4, 5), (7,), (2, 3, 4), ()], ids=str)
def test_an_element_stays_where_the_draw_is_at_most_1_minus_p(device, p, shape, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    np.random.seed(5)
    y = nn.Dropout(p)(ndl.Tensor(x, device=device))
    after = np.random.rand()
    np.random.seed(5)
    kept = np.random.rand(*shape) <= 1 - p
    assert np.random.rand() == after, "another number of draws than one of the full shape"
    assert y.device == device and y.shape == shape and y.numpy().dtype == np.float32
    np.testing.assert_allclose(y.numpy(), np.where(kept, x / (1 - p), 0), rtol=1e-6)


def test_the_boundary_is_kept(device, monkeypatch):
    monkeypatch.setattr(np.random, "rand", lambda *shape: np.array([0.75, 0.75000001]))
    y = nn.Dropout(0.25)(ndl.init.ones(2, device=device))
    np.testing.assert_allclose(y.numpy(), [4 / 3, 0], rtol=1e-6)


def test_a_tenth_is_dropped_and_the_mean_kept(device):
    y = nn.Dropout(0.1)(ndl.init.ones(100_000, device=device)).numpy()
    assert 0.09 < (y == 0).mean() < 0.11
    np.testing.assert_allclose(y[y != 0], 1 / 0.9, rtol=1e-6)
    assert abs(y.mean() - 1) < 0.02


def test_p_of_0_keeps_everything_and_still_draws(device):
    x = ndl.init.randn(4, 5, device=device)
    np.random.seed(5)
    np.testing.assert_array_equal(nn.Dropout(0)(x).numpy(), x.numpy())
    after = np.random.rand()
    np.random.seed(5)
    np.random.rand(4, 5)
    assert np.random.rand() == after


def test_p_of_1_drops_everything_without_dividing_by_0(device):
    x = ndl.Tensor(np.full((3, 4), 5.0), device=device)
    y = nn.Dropout(1)(x)
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), np.zeros((3, 4)))
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((3, 4)))


def test_eval_is_the_identity_and_draws_nothing(device):
    x = ndl.init.randn(4, 5, device=device)
    np.random.seed(5)
    np.testing.assert_array_equal(nn.Dropout(0.5).eval()(x).numpy(), x.numpy())
    assert np.random.rand() == np.random.RandomState(5).rand()


def test_each_call_draws_a_new_mask(device):
    dropout, x = nn.Dropout(0.5), ndl.init.ones(100, device=device)
    assert (dropout(x).numpy() != dropout(x).numpy()).any()


def test_the_gradient_uses_the_same_mask(device, rng):
    x = ndl.Tensor(np.ones((20, 10)), device=device)
    out_grad = rng.standard_normal((20, 10)).astype(np.float32)
    y = nn.Dropout(0.3)(x)
    y.backward(ndl.Tensor(out_grad, device=device))
    assert x.grad.device == device
    np.testing.assert_allclose(x.grad.numpy(), out_grad * y.numpy(), rtol=1e-6)
    assert 0 < (x.grad.numpy() == 0).sum() < 200


@pytest.mark.parametrize("p", [0, 0.4, 1])
def test_gradients(p, rng):
    class SameDraw(nn.Dropout):
        def forward(self, x):
            np.random.seed(8)
            return super().forward(x)

    check_module(SameDraw(p), rng.standard_normal((4, 5)), rng=rng)


def test_dtype_follows_the_input():
    x = ndl.Tensor(np.ones(5), **FLOAT64)
    assert nn.Dropout(0.5)(x).numpy().dtype == np.float64


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_p_is_a_probability(p):
    with pytest.raises(NeedleError, match=re.escape(f"[Dropout] p={p} is not a probability")):
        nn.Dropout(p)
