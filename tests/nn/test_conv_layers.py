"""Conv, BatchNorm2d and the pooling layers in NCHW: values, gradients, random order, messages."""

import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import ShapeError
from tests.image_reference import np_avg_pool, np_conv, np_max_pool
from tests.nn.module_gradcheck import FLOAT64, check_module


def parts(**kwargs):
    """Return one of each layer with the shape of an input, by name."""
    return {
        "Conv": (nn.Conv(2, 3, 3, **kwargs), (2, 2, 4, 3)),
        "Conv of stride 2": (nn.Conv(2, 3, 3, stride=2, **kwargs), (2, 2, 5, 4)),
        "Conv without bias": (nn.Conv(2, 3, 2, bias=False, **kwargs), (1, 2, 3, 3)),
        "Conv of pairs": (
            nn.Conv(1, 2, (2, 3), stride=(2, 1), padding=(0, 2), **kwargs),
            (2, 1, 5, 3),
        ),
        "Conv of pixels": (nn.Conv(3, 2, 1, **kwargs), (2, 3, 2, 2)),
        "BatchNorm2d": (nn.BatchNorm2d(3, **kwargs), (2, 3, 2, 3)),
        "BatchNorm2d in eval mode": (nn.BatchNorm2d(3, **kwargs).eval(), (2, 3, 2, 3)),
        "MaxPool2d": (nn.MaxPool2d(2), (2, 3, 4, 5)),
        "MaxPool2d of pairs": (nn.MaxPool2d((3, 2), (1, 2), (1, 0)), (1, 2, 4, 5)),
        "AvgPool2d": (nn.AvgPool2d(3, 2, 1), (2, 3, 4, 5)),
    }


def tensor(values, device):
    return ndl.Tensor(values, device=device, dtype="float32")


def to_nhwc(x):
    return x.transpose(0, 2, 3, 1)


def to_nchw(x):
    return x.transpose(0, 3, 1, 2)


# --- every layer ---


@pytest.mark.parametrize("name", parts())
def test_gradients_of_inputs_and_parameters(name, rng):
    layer, shape = parts(**FLOAT64)[name]
    check_module(layer, rng.standard_normal(shape), rng=rng)


@pytest.mark.parametrize("name", parts())
def test_devices_agree_with_float64(device, name, rng):
    layer, shape = parts(device=device)[name] if "Pool" not in name else parts()[name]
    exact, _ = parts(**FLOAT64)[name]
    for p, q in zip(layer.parameters(), exact.parameters(), strict=True):
        q.data = ndl.Tensor(p.numpy(), requires_grad=False, **FLOAT64)
    values = rng.standard_normal(shape)
    x, wide = tensor(values, device), ndl.Tensor(values, **FLOAT64)
    y, z = layer(x), exact(wide)
    np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-5, atol=1e-5)
    out_grad = rng.standard_normal(y.shape)
    y.backward(tensor(out_grad, device))
    z.backward(ndl.Tensor(out_grad, **FLOAT64))
    pairs = [(x, wide), *zip(layer.parameters(), exact.parameters(), strict=True)]
    for p, q in pairs:
        assert p.grad.device == device and p.grad.numpy().dtype == np.float32
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", parts())
def test_forward_draws_nothing(device, name):
    layer, shape = parts(device=device)[name]
    np.random.seed(5)
    layer(tensor(np.ones(shape), device))
    assert np.random.rand() == np.random.RandomState(5).rand()


@pytest.mark.parametrize(
    "name, message",
    [
        ("Conv", "[Conv] input {} is not (batch, 2, height, width)"),
        ("BatchNorm2d", "[BatchNorm2d] input {} is not (batch, 3, height, width)"),
        ("MaxPool2d", "[MaxPool2d] input {} is not (batch, channels, height, width)"),
        ("AvgPool2d", "[AvgPool2d] input {} is not (batch, channels, height, width)"),
    ],
)
@pytest.mark.parametrize("shape", [(2, 4, 6, 6), (2, 6, 6), (3,), ()], ids=str)
def test_another_shape_is_refused(device, name, message, shape):
    layer, _ = parts(device=device)[name]
    if len(shape) == 4 and "Pool" in name:
        assert layer(tensor(np.ones(shape), device)).shape[:2] == (2, 4)
        return
    with pytest.raises(ShapeError, match=re.escape(message.format(shape))):
        layer(tensor(np.ones(shape), device))


# --- Conv ---


@pytest.mark.parametrize("kernel, stride, padding", [(3, 1, 1), (7, 4, 3), (2, 2, 1), (1, 1, 0)])
def test_conv_is_the_op_in_another_order(device, rng, kernel, stride, padding):
    layer = nn.Conv(3, 4, kernel, stride, device=device)
    assert layer.padding == (padding, padding)
    x = rng.standard_normal((2, 3, 8, 9)).astype(np.float32)
    y = layer(tensor(x, device))
    expected = np_conv(to_nhwc(x), layer.weight.numpy(), stride, padding) + layer.bias.numpy()
    assert y.shape == to_nchw(expected).shape and y.device == device
    np.testing.assert_allclose(y.numpy(), to_nchw(expected), rtol=1e-4, atol=1e-4)


def test_conv_takes_pairs(device, rng):
    layer = nn.Conv(2, 3, (3, 2), (1, 2), padding=(2, 0), device=device)
    assert (layer.kernel_size, layer.stride, layer.padding) == ((3, 2), (1, 2), (2, 0))
    assert layer.weight.shape == (3, 2, 2, 3) and layer.bias.shape == (3,)
    x = rng.standard_normal((2, 2, 4, 5)).astype(np.float32)
    expected = np_conv(to_nhwc(x), layer.weight.numpy(), (1, 2), (2, 0)) + layer.bias.numpy()
    y = layer(tensor(x, device))
    np.testing.assert_allclose(y.numpy(), to_nchw(expected), rtol=1e-4, atol=1e-4)


def test_an_odd_kernel_keeps_the_size(device):
    x = tensor(np.ones((1, 2, 5, 6)), device)
    assert nn.Conv(2, 1, 5, device=device)(x).shape == (1, 1, 5, 6)
    assert nn.Conv(2, 1, (3, 1), device=device)(x).shape == (1, 1, 5, 6)
    assert nn.Conv(2, 1, 3, padding=0, device=device)(x).shape == (1, 1, 3, 4)


def test_conv_draws_its_weight_then_its_bias(device):
    np.random.seed(0)
    layer = nn.Conv(16, 8, 3, device=device)
    after = np.random.rand()
    np.random.seed(0)
    bound = math.sqrt(2) * math.sqrt(3 / 144)
    weight = np.random.rand(3, 3, 16, 8) * 2 * bound - bound
    bias = (np.random.rand(8) * 2 - 1) / math.sqrt(144)
    np.testing.assert_allclose(layer.weight.numpy(), weight, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(layer.bias.numpy(), bias, rtol=1e-5, atol=1e-7)
    assert layer.weight.numpy().sum() == pytest.approx(-2.57192, abs=1e-4)
    assert np.random.rand() == after
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_conv_without_bias_draws_its_weight_alone(device):
    np.random.seed(3)
    layer = nn.Conv(2, 3, 3, bias=False, device=device)
    after = np.random.rand()
    np.random.seed(3)
    np.random.rand(3, 3, 2, 3)
    assert np.random.rand() == after
    assert layer.bias is None and len(layer.parameters()) == 1


def test_conv_says_its_sizes():
    assert repr(nn.Conv(3, 16, 7, stride=4)) == (
        "Conv(3, 16, kernel_size=(7, 7), stride=(4, 4), padding=(3, 3), bias=True)"
    )
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"
    assert repr(nn.BatchNorm2d(3)) == "BatchNorm2d(3, eps=1e-05, momentum=0.1)"


@pytest.mark.parametrize(
    "arguments, settings, message",
    [
        ((2, 3, 0), {}, "kernel size (0, 0), stride (1, 1), padding (0, 0)"),
        ((2, 3, 3), {"stride": 0}, "stride (0, 0), padding"),
        ((2, 3, 3), {"padding": (0, -1)}, "padding (0, -1); the first two begin at 1"),
        ((2, 3, (1, 2, 3)), {}, "kernel size (1, 2, 3) is neither an int nor an (h, w) pair"),
        ((0, 3, 3), {}, "in_channels=0, out_channels=3; both begin at 1"),
        ((2, 0, 3), {}, "in_channels=2, out_channels=0; both begin at 1"),
    ],
)
def test_conv_refuses_sizes_when_it_is_made(arguments, settings, message):
    with pytest.raises(ShapeError, match=r"^\[Conv\] .*" + re.escape(message)):
        nn.Conv(*arguments, **settings)


def test_an_image_smaller_than_the_kernel_is_refused(device):
    layer = nn.Conv(2, 3, 5, padding=0, device=device)
    with pytest.raises(
        ShapeError, match=r"is smaller than the kernel \(5, 5\); there is no output"
    ):
        layer(tensor(np.ones((1, 2, 4, 6)), device))


# --- BatchNorm2d ---


def test_batch_norm_is_the_one_of_rows_over_all_pixels(device, rng):
    layer, rows = nn.BatchNorm2d(3, device=device), nn.BatchNorm1d(3, device=device)
    assert isinstance(layer, nn.BatchNorm1d)
    x = rng.normal(2, 3, (2, 3, 4, 5)).astype(np.float32)
    for mode in (True, False):
        y = layer.train(mode)(tensor(x, device))
        expected = rows.train(mode)(tensor(to_nhwc(x).reshape(-1, 3), device)).numpy()
        np.testing.assert_allclose(
            y.numpy(), to_nchw(expected.reshape(2, 4, 5, 3)), rtol=1e-5, atol=1e-5
        )
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * x.mean((0, 2, 3)), rtol=1e-4)
    biased = 0.9 + 0.1 * x.var((0, 2, 3))
    np.testing.assert_allclose(layer.running_var.numpy(), biased, rtol=1e-4)
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var"]


@pytest.mark.parametrize("shape", [(0, 3, 2, 2), (2, 3, 0, 2)], ids=str)
def test_batch_norm_needs_a_pixel(device, shape):
    with pytest.raises(ShapeError, match=re.escape(f"[BatchNorm2d] input {shape} has no pixel")):
        nn.BatchNorm2d(3, device=device)(tensor(np.ones(shape), device))


# --- pooling ---


@pytest.mark.parametrize("settings", [(2,), (3, 2, 1), ((2, 3), (1, 2), (1, 0))], ids=str)
def test_pooling_is_the_op_in_another_order(device, rng, settings):
    x = rng.standard_normal((2, 3, 6, 7)).astype(np.float32)
    for layer, reference in ((nn.MaxPool2d, np_max_pool), (nn.AvgPool2d, np_avg_pool)):
        y = layer(*settings)(tensor(x, device))
        expected = to_nchw(reference(to_nhwc(x), *settings))
        assert y.shape == expected.shape
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer", [nn.MaxPool2d, nn.AvgPool2d])
def test_pooling_refuses_sizes_when_it_is_made(layer):
    name = layer.__name__
    with pytest.raises(ShapeError, match=rf"\[{name}\] padding \(2, 2\) is more than half of the"):
        layer(3, padding=2)
    with pytest.raises(ShapeError, match=rf"\[{name}\] kernel size \(2, 0\), stride"):
        layer((2, 0))


# --- together ---


def test_a_small_network_learns(device, rng):
    """Every layer in a row: where a bright corner is."""
    np.random.seed(0)
    model = nn.Sequential(
        nn.Conv(1, 4, 3, device=device),
        nn.BatchNorm2d(4, device=device),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv(4, 4, 3, stride=2, device=device),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 4, device=device),
    )
    labels = rng.integers(0, 4, 32)
    images = rng.uniform(0, 0.3, (32, 1, 8, 8))
    for image, label in zip(images, labels, strict=True):
        image[0, 4 * (label // 2) :, 4 * (label % 2) :][:4, :4] += 1
    x, y = tensor(images, device), tensor(labels, device)
    optimizer = ndl.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(30):
        loss = nn.SoftmaxLoss()(model(x), y)
        optimizer.reset_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.2 * losses[0]
