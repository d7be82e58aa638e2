"""apps/simple_ml.py: softmax loss, an epoch of a two-layer network by hand, loss and error rate."""

import importlib

import numpy as np
import pytest

import needle as ndl
import simple_ml
from tests.gradcheck import check_gradients, constant64


def softmax_loss(Z, y):
    Z = Z.astype(np.float64)
    return (np.log(np.exp(Z).sum(1)) - Z[np.arange(len(Z)), y]).mean()


def numpy_epoch(X, y, W1, W2, lr, batch):
    """Return (W1, W2) after one epoch in float64; both gradients come from the old weights."""
    X, W1, W2 = (a.astype(np.float64) for a in (X, W1, W2))
    for start in range(0, len(X), batch):
        x, labels = X[start : start + batch], y[start : start + batch]
        hidden = np.maximum(x @ W1, 0)
        e = np.exp(hidden @ W2)
        g = (e / e.sum(1, keepdims=True) - np.eye(W2.shape[1])[labels]) / len(x)
        W1, W2 = W1 - lr * x.T @ (g @ W2.T * (hidden > 0)), W2 - lr * hidden.T @ g
    return W1, W2


@pytest.fixture
def problem(rng):
    """Return X (50, 5), y (50,) of 3 classes, W1 (5, 10), W2 (10, 3)."""
    X, W1, W2 = (rng.standard_normal(s).astype(np.float32) for s in ((50, 5), (5, 10), (10, 3)))
    return X, rng.integers(0, 3, 50).astype(np.uint8), W1, W2


def test_softmax_loss(device, rng):
    Z = rng.standard_normal((7, 4)).astype(np.float32) * 3
    y = rng.integers(0, 4, 7)
    loss = simple_ml.softmax_loss(
        ndl.Tensor(Z, device=device), ndl.Tensor(np.eye(4)[y], device=device)
    )
    assert loss.shape == () and loss.device == device
    np.testing.assert_allclose(loss.numpy(), softmax_loss(Z, y), rtol=1e-5)


def test_softmax_loss_of_equal_logits_is_log_of_the_classes(device):
    one_hot = ndl.Tensor(np.eye(10), device=device)
    loss = simple_ml.softmax_loss(ndl.init.zeros(10, 10, device=device), one_hot)
    assert float(loss) == pytest.approx(np.log(10))


def test_softmax_loss_gradient(rng):
    one_hot = constant64(np.eye(3)[[0, 2, 1, 1]])
    check_gradients(
        lambda Z: simple_ml.softmax_loss(Z, one_hot), rng.standard_normal((4, 3)), rng=rng
    )


@pytest.mark.parametrize("batch", [50, 10, 7, 1, 100])
def test_nn_epoch_equals_a_numpy_loop(device, problem, batch):
    X, y, W1, W2 = problem
    weights = ndl.Tensor(W1, device=device), ndl.Tensor(W2, device=device)
    trained = simple_ml.nn_epoch(X, y, *weights, lr=0.2, batch=batch)
    for got, expected in zip(trained, numpy_epoch(X, y, W1, W2, 0.2, batch), strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-5)


def test_nn_epoch_returns_weights_and_keeps_what_it_was_given(device, problem):
    X, y, W1, W2 = problem
    weights = ndl.Tensor(W1, device=device), ndl.Tensor(W2, device=device)
    trained = simple_ml.nn_epoch(X, y, *weights, batch=10)
    for old, values, got in zip(weights, (W1, W2), trained, strict=True):
        np.testing.assert_array_equal(old.numpy(), values)
        assert got is not old and got.is_leaf() and got.requires_grad
        assert got.shape == old.shape and got.device == device
        assert (got.numpy() != values).any()


def test_nn_epoch_knows_the_classes_from_w2(device, problem):
    X, _, W1, W2 = problem
    y = np.zeros(50, np.uint8)  # no batch holds a label of classes 1 and 2
    trained = simple_ml.nn_epoch(
        X, y, ndl.Tensor(W1, device=device), ndl.Tensor(W2, device=device), lr=0.2, batch=10
    )
    for got, expected in zip(trained, numpy_epoch(X, y, W1, W2, 0.2, 10), strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-5)


def test_nn_epoch_defaults(problem):
    X, y, W1, W2 = problem
    trained = simple_ml.nn_epoch(X, y, ndl.Tensor(W1), ndl.Tensor(W2))
    for got, expected in zip(trained, numpy_epoch(X, y, W1, W2, 0.1, 100), strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-5)


def test_nn_epoch_learns(device, problem):
    X, y, W1, W2 = problem
    weights = ndl.Tensor(W1, device=device), ndl.Tensor(W2, device=device)
    X_on_device = ndl.Tensor(X, device=device)

    def loss():
        return float(simple_ml.loss_err(ndl.relu(X_on_device @ weights[0]) @ weights[1], y)[0])

    before = loss()
    for _ in range(5):
        weights = simple_ml.nn_epoch(X, y, *weights, lr=0.2, batch=10)
    assert loss() < before / 2


def test_loss_err(device):
    h = np.array([[2, 1, 0], [0, 3, 1], [1, 0, 0], [0, 1, 5]], np.float32)
    y = np.array([0, 2, 0, 2], np.uint8)
    loss, error = simple_ml.loss_err(ndl.Tensor(h, device=device), y)
    assert error == 0.25 and type(error) is float
    assert float(loss) == pytest.approx(softmax_loss(h, y))
    assert f"{loss:f}" == f"{float(loss):f}"


def test_the_module_is_the_same_needle_under_both_of_its_names(problem):
    X, y, W1, W2 = problem
    twin = importlib.import_module("apps.simple_ml")
    for module in (simple_ml, twin):
        trained = module.nn_epoch(X, y, ndl.Tensor(W1), ndl.Tensor(W2))
        assert all(isinstance(w, ndl.Tensor) for w in trained)
        assert module.parse_mnist is ndl.data.parse_mnist
