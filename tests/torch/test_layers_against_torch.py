"""Layers, losses and optimizers against PyTorch: values, gradients, steps."""

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from tests.torch.pairs import pair

pytestmark = pytest.mark.torch


def assert_close(got, expected):
    np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def compare(ours, theirs, parameters, shape, device, torch, rng):
    """Compare outputs and gradients of modules; `parameters` lists (ours, theirs, transposed)."""
    x, tx = pair(rng.standard_normal(shape), device, torch)
    y, ty = ours(x), theirs(tx)
    assert_close(y, ty)
    out_grad = rng.standard_normal(y.shape).astype(np.float32)
    y.backward(ndl.Tensor(out_grad, device=device))
    ty.backward(torch.from_numpy(out_grad))
    assert_close(x.grad, tx.grad)
    for p, q, transposed in parameters:
        assert_close(
            p.grad.reshape(q.T.shape if transposed else q.shape), q.grad.T if transposed else q.grad
        )


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (nn.ReLU(), "ReLU"),
        (nn.Sigmoid(), "Sigmoid"),
        (nn.Tanh(), "Tanh"),
        (nn.Flatten(), "Flatten"),
        (nn.Softmax(), "Softmax"),
    ],
    ids=repr,
)
def test_layers_without_weights(device, torch, rng, ours, theirs):
    settings = {"dim": -1} if theirs == "Softmax" else {}
    compare(ours, getattr(torch.nn, theirs)(**settings), [], (4, 5), device, torch, rng)


@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3)], ids=str)
def test_linear(device, torch, rng, shape):
    ours, theirs = nn.Linear(3, 4, device=device), torch.nn.Linear(3, 4)
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(ours.weight.numpy().T.copy()))
        theirs.bias.copy_(torch.from_numpy(ours.bias.numpy()[0]))
    parameters = [(ours.weight, theirs.weight, True), (ours.bias, theirs.bias, False)]
    compare(ours, theirs, parameters, shape, device, torch, rng)


def norm_pair(kind, theirs, device, torch, rng):
    """Return both libraries' norm of 4 features, with the same random weight and bias."""
    ours = kind(4, device=device)
    for name in ("weight", "bias"):
        values = rng.standard_normal(4).astype(np.float32)
        getattr(ours, name).data = ndl.Tensor(values, device=device)
        with torch.no_grad():
            getattr(theirs, name).copy_(torch.from_numpy(values))
    return ours, theirs, [(getattr(ours, n), getattr(theirs, n), False) for n in ("weight", "bias")]


def test_layer_norm(device, torch, rng):
    modules = norm_pair(nn.LayerNorm1d, torch.nn.LayerNorm(4), device, torch, rng)
    compare(*modules, (6, 4), device, torch, rng)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_batch_norm(device, torch, rng, training):
    ours, theirs, parameters = norm_pair(
        nn.BatchNorm1d, torch.nn.BatchNorm1d(4), device, torch, rng
    )
    ours.running_mean.data = ndl.Tensor([1.0, 0.0, -1.0, 2.0], device=device)
    ours.running_var.data = ndl.Tensor([1.0, 2.0, 0.5, 4.0], device=device)
    with torch.no_grad():
        theirs.running_mean.copy_(torch.from_numpy(ours.running_mean.numpy()))
        theirs.running_var.copy_(torch.from_numpy(ours.running_var.numpy()))
    compare(ours.train(training), theirs.train(training), parameters, (6, 4), device, torch, rng)
    assert_close(ours.running_mean, theirs.running_mean)


def test_running_variance_is_biased_where_pytorchs_is_not(device, torch, rng):
    ours, theirs = nn.BatchNorm1d(3, device=device), torch.nn.BatchNorm1d(3)
    x, tx = pair(rng.standard_normal((5, 3)), device, torch)
    ours(x), theirs(tx)
    # new = 0.9 * 1 + 0.1 * variance: take the batch's variance out of both.
    biased, unbiased = (ours.running_var.numpy() - 0.9), (theirs.running_var.numpy() - 0.9)
    np.testing.assert_allclose(biased, unbiased * 4 / 5, rtol=1e-4)


@pytest.mark.parametrize("scale", [1, 1e4])
def test_softmax_loss(device, torch, rng, scale):
    z, tz = pair(rng.standard_normal((6, 5)) * scale, device, torch)
    labels = rng.integers(0, 5, 6)
    loss = nn.SoftmaxLoss()(z, ndl.Tensor(labels, device=device))
    expected = torch.nn.functional.cross_entropy(tz, torch.from_numpy(labels))
    loss.backward()
    expected.backward()
    assert_close(loss, expected)
    assert_close(z.grad, tz.grad)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("with_labels", [True, False])
def test_cross_entropy(device, torch, rng, batched, with_labels):
    shape = (4, 3) if batched else (3,)
    x, tx = pair(rng.standard_normal(shape), device, torch)
    if with_labels:
        target = rng.integers(0, 3, shape[:-1])
    else:
        target = rng.dirichlet(np.ones(3), shape[:-1]).astype(np.float32)
    y = ndl.Tensor(target, device=device, requires_grad=False)
    loss = nn.CrossEntropyLoss()(x, y)
    expected = torch.nn.CrossEntropyLoss()(tx, torch.tensor(target))
    loss.backward()
    expected.backward()
    assert_close(loss, expected)
    assert_close(x.grad, tx.grad)


def test_mse_loss(device, torch, rng):
    a, ta = pair(rng.standard_normal((4, 3)), device, torch)
    b, tb = pair(rng.standard_normal((4, 3)), device, torch)
    loss, expected = nn.MSELoss()(a, b), torch.nn.functional.mse_loss(ta, tb)
    loss.backward()
    expected.backward()
    for got, wanted in ((loss, expected), (a.grad, ta.grad), (b.grad, tb.grad)):
        assert_close(got, wanted)


@pytest.mark.parametrize(
    "name, settings",
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "weight_decay": 0.3}),
        ("Adam", {"lr": 0.1}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.3, "eps": 1e-3}),
        ("AdamW", {"lr": 0.1}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "eps": 1e-3}),
        ("RMSprop", {"lr": 0.1}),
        ("RMSprop", {"lr": 0.1, "alpha": 0.5, "weight_decay": 0.3, "momentum": 0.9}),
    ],
    ids=str,
)
def test_optimizers(device, torch, rng, name, settings):
    values = rng.standard_normal((3, 2)).astype(np.float32)
    p, q = nn.Parameter(ndl.Tensor(values, device=device)), torch.nn.Parameter(torch.tensor(values))
    ours = getattr(optim, name)([p], **settings)
    theirs = getattr(torch.optim, name)([q], **settings)
    for _ in range(5):
        grad = rng.standard_normal((3, 2)).astype(np.float32)
        p.grad, q.grad = ndl.Tensor(grad, device=device), torch.from_numpy(grad.copy())
        ours.step()
        theirs.step()
        assert_close(p, q)


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(device, torch, rng, max_norm):
    shapes = [(3, 2), (4,)]
    ours = [nn.Parameter(ndl.init.zeros(*shape, device=device)) for shape in shapes]
    theirs = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for p, q in zip(ours, theirs, strict=True):
        grad = rng.standard_normal(p.shape).astype(np.float32)
        p.grad, q.grad = ndl.Tensor(grad, device=device), torch.from_numpy(grad.copy())
    norm = optim.clip_grad_norm(ours, max_norm)
    assert norm == pytest.approx(float(torch.nn.utils.clip_grad_norm_(theirs, max_norm)), rel=1e-5)
    for p, q in zip(ours, theirs, strict=True):
        assert_close(p.grad, q.grad)
