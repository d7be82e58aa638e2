"""Convolution, pooling and the layers of images against PyTorch: values and gradients."""

import numpy as np
import pytest

import needle as ndl
from needle import nn, ops

pytestmark = pytest.mark.torch


def assert_close(got, expected):
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-4, atol=1e-4)


def compare(ours, theirs, x, device, torch, rng):
    """Compare outputs and input gradients of two functions of NCHW images."""
    a = ndl.Tensor(x, device=device, dtype="float32")
    t = torch.tensor(x, dtype=torch.float32, requires_grad=True)
    y, expected = ours(a), theirs(t)
    assert_close(y.numpy(), expected)
    out_grad = rng.standard_normal(y.shape).astype(np.float32)
    y.backward(ndl.Tensor(out_grad, device=device, dtype="float32"))
    expected.backward(torch.from_numpy(out_grad))
    assert_close(a.grad.numpy(), t.grad)


def through_nhwc(op, *operands):
    """Return an op on NHWC images as a function of NCHW ones."""
    return lambda x: op(x.permute((0, 2, 3, 1)), *operands).permute((0, 3, 1, 2))


@pytest.mark.parametrize("padding", [0, 1, 3, (2, 0)])
@pytest.mark.parametrize("stride", [1, 2, (3, 1)])
@pytest.mark.parametrize("kernel", [(1, 1), (2, 2), (3, 3), (2, 3)], ids=str)
def test_conv(device, torch, rng, kernel, stride, padding):
    for size in ((3, 4), (5, 5), (8, 6)):
        weight = rng.standard_normal((*kernel, 2, 3)).astype(np.float32)
        b = ndl.Tensor(weight, device=device, dtype="float32")
        t = torch.tensor(weight.transpose(3, 2, 0, 1), requires_grad=True)
        compare(
            through_nhwc(ops.conv, b, stride, padding),
            lambda x, t=t: torch.nn.functional.conv2d(x, t, stride=stride, padding=padding),
            rng.standard_normal((2, 2, *size)),
            *(device, torch, rng),
        )
        assert_close(b.grad.numpy().transpose(3, 2, 0, 1), t.grad)


@pytest.mark.parametrize("kernel, padding", [(2, 0), (2, 1), (3, 1), ((3, 2), (1, 0)), (4, 2)])
@pytest.mark.parametrize("stride", [None, 1, 2, (2, 3)])
@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
def test_pools(device, torch, rng, name, kernel, stride, padding):
    theirs = getattr(torch.nn.functional, f"{name}2d")
    for size in ((4, 5), (7, 6)):
        compare(
            through_nhwc(getattr(ops, name), kernel, stride, padding),
            lambda x: theirs(x, kernel, stride, padding),
            rng.integers(-2, 2, (2, 3, *size)),  # many tie
            *(device, torch, rng),
        )


def conv_pair(arguments, settings, device, torch):
    """Return both libraries' convolution layer, with our weights."""
    ours = nn.Conv(*arguments, **settings, device=device)
    theirs = torch.nn.Conv2d(*arguments, **{**settings, "padding": ours.padding})
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(ours.weight.numpy().transpose(3, 2, 0, 1).copy()))
        if ours.bias is not None:
            theirs.bias.copy_(torch.from_numpy(ours.bias.numpy()))
    return ours, theirs


@pytest.mark.parametrize(
    "arguments, settings",
    [
        ((3, 4, 3), {}),
        ((3, 4, 7), {"stride": 4}),
        ((3, 4, 2), {"stride": 2, "bias": False}),
        ((3, 4, (1, 3)), {"stride": (2, 1), "padding": (0, 3)}),
    ],
    ids=str,
)
def test_conv_layer(device, torch, rng, arguments, settings):
    ours, theirs = conv_pair(arguments, settings, device, torch)
    compare(ours, theirs, rng.standard_normal((2, 3, 9, 8)), device, torch, rng)
    assert_close(ours.weight.grad.numpy().transpose(3, 2, 0, 1), theirs.weight.grad)
    if ours.bias is not None:
        assert_close(ours.bias.grad.numpy(), theirs.bias.grad)


def test_initial_bias_has_pytorchs_bound(torch):
    ours, theirs = nn.Conv(4, 500, 3), torch.nn.Conv2d(4, 500, 3)
    bound = 1 / 6
    for bias in (ours.bias.numpy(), theirs.bias.detach().numpy()):
        assert 0.95 * bound < np.abs(bias).max() <= bound


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_batch_norm(device, torch, rng, training):
    ours, theirs = nn.BatchNorm2d(3, device=device), torch.nn.BatchNorm2d(3)
    for name in ("weight", "bias"):
        values = rng.uniform(0.5, 1.5, 3).astype(np.float32)
        getattr(ours, name).data = ndl.Tensor(values, device=device, dtype="float32")
        with torch.no_grad():
            getattr(theirs, name).copy_(torch.from_numpy(values))
    for _ in range(2):  # two batches move the running statistics
        x = rng.normal(1, 2, (4, 3, 5, 6))
        compare(ours, theirs, x, device, torch, rng)
    ours.train(training), theirs.train(training)
    # PyTorch's running variance is the unbiased one: the batches had 120 pixels a channel.
    expected = 0.81 + (theirs.running_var.numpy() - 0.81) * 119 / 120
    np.testing.assert_allclose(ours.running_var.numpy(), expected, rtol=1e-4)
    assert_close(ours.running_mean.numpy(), theirs.running_mean)
    with torch.no_grad():
        theirs.running_var.copy_(torch.from_numpy(ours.running_var.numpy()))
    theirs.zero_grad()  # needle replaces gradients, PyTorch adds
    compare(ours, theirs, rng.normal(1, 2, (4, 3, 5, 6)), device, torch, rng)
    assert_close(ours.weight.grad.numpy(), theirs.weight.grad)
    assert_close(ours.bias.grad.numpy(), theirs.bias.grad)


@pytest.mark.parametrize("name", ["MaxPool2d", "AvgPool2d"])
@pytest.mark.parametrize("settings", [(2,), (3, 2, 1), ((2, 3), (1, 2))], ids=str)
def test_pooling_layers(device, torch, rng, name, settings):
    ours, theirs = getattr(nn, name)(*settings), getattr(torch.nn, name)(*settings)
    compare(ours, theirs, rng.standard_normal((2, 3, 7, 8)), device, torch, rng)


def test_stack_and_split(device, torch, rng):
    arrays = [rng.standard_normal((2, 3)).astype(np.float32) for _ in range(3)]
    parts = [ndl.Tensor(a, device=device, dtype="float32") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    for axis in (0, 1, -1):
        first, *_, last = ops.split(ops.stack(parts, axis), axis)
        expected, *_, expected_last = torch.unbind(torch.stack(theirs, axis), axis)
        (first * last).sum().backward()
        for t in theirs:
            t.grad = None
        (expected * expected_last).sum().backward()
        for p, t in zip(parts, theirs, strict=True):
            np.testing.assert_allclose(
                p.grad.numpy(), np.zeros((2, 3)) if t.grad is None else t.grad.numpy(), rtol=1e-6
            )
