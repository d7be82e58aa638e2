"""Layers without state of their own but weights: values, gradients, shapes, random order, devices.

Normalisation and dropout have files of their own.
"""

import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import ShapeError
from tests.nn.module_gradcheck import FLOAT64, check_module


def parts(**kwargs):
    """Return one of each layer with the shape of an input, by name."""
    return {
        "Identity": (nn.Identity(), (2, 3)),
        "Linear": (nn.Linear(3, 4, **kwargs), (5, 3)),
        "Linear without bias": (nn.Linear(3, 4, bias=False, **kwargs), (5, 3)),
        "Linear on 3 axes": (nn.Linear(3, 4, **kwargs), (2, 5, 3)),
        "Linear of one feature": (nn.Linear(1, 1, **kwargs), (1, 1)),
        "Flatten": (nn.Flatten(), (2, 3, 4)),
        "ReLU": (nn.ReLU(), (4, 5)),
        "Sigmoid": (nn.Sigmoid(), (4, 5)),
        "Tanh": (nn.Tanh(), (4, 5)),
        "Softmax": (nn.Softmax(), (4, 5)),
        "Softmax of rows": (nn.Softmax(dim=0), (4, 5)),
        "Sequential": (
            nn.Sequential(nn.Linear(3, 4, **kwargs), nn.Tanh(), nn.Linear(4, 2, **kwargs)),
            (5, 3),
        ),
        "Sequential of nothing": (nn.Sequential(), (2, 3)),
        "Residual": (nn.Residual(nn.Linear(3, 3, **kwargs)), (5, 3)),
    }


def kaiming(fan_in, fan_out):
    """Return the next kaiming_uniform numbers of numpy's stream."""
    bound = math.sqrt(2) * math.sqrt(3 / fan_in)
    return np.random.rand(fan_in, fan_out) * 2 * bound - bound


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# --- every layer ---


@pytest.mark.parametrize("name", parts())
def test_gradients_of_inputs_and_parameters(name, rng):
    layer, shape = parts(**FLOAT64)[name]
    check_module(layer, rng.standard_normal(shape), rng=rng)


@pytest.mark.parametrize("name", parts())
def test_results_and_gradients_stay_on_the_device(device, name, rng):
    layer, shape = parts(device=device)[name]
    x = ndl.Tensor(rng.standard_normal(shape), device=device, dtype="float32")
    y = layer(x)
    y.backward(ndl.Tensor(rng.standard_normal(y.shape), device=device, dtype="float32"))
    for tensor in (y, x.grad, *layer.parameters(), *(p.grad for p in layer.parameters())):
        assert tensor.device == device and tensor.numpy().dtype == np.float32
    assert x.grad.shape == x.shape
    assert [p.grad.shape for p in layer.parameters()] == [p.shape for p in layer.parameters()]


@pytest.mark.parametrize("name", parts())
def test_devices_agree_with_float64(device, name, rng):
    layer, shape = parts(device=device)[name]
    exact, _ = parts(**FLOAT64)[name]
    for p, q in zip(layer.parameters(), exact.parameters(), strict=True):
        q.data = ndl.Tensor(p.numpy(), requires_grad=False, **FLOAT64)
    values = rng.standard_normal(shape)
    y, z = (
        layer(ndl.Tensor(values, device=device, dtype="float32")),
        exact(ndl.Tensor(values, **FLOAT64)),
    )
    np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", parts())
def test_forward_draws_nothing(device, name):
    layer, shape = parts(device=device)[name]
    np.random.seed(5)
    layer(ndl.Tensor(np.ones(shape), device=device, dtype="float32"))
    assert np.random.rand() == np.random.RandomState(5).rand()


# --- Linear ---


def test_linear_draws_its_weight_then_its_bias(device):
    np.random.seed(7)
    linear = nn.Linear(3, 5, device=device)
    after = np.random.rand()
    np.random.seed(7)
    np.testing.assert_allclose(linear.weight.numpy(), kaiming(3, 5), rtol=1e-6)
    np.testing.assert_allclose(linear.bias.numpy(), kaiming(5, 1).reshape(1, 5), rtol=1e-6)
    assert np.random.rand() == after
    assert linear.bias.shape == (1, 5)


def test_linear_without_bias_draws_its_weight_alone(device):
    np.random.seed(7)
    linear = nn.Linear(3, 5, bias=False, device=device)
    after = np.random.rand()
    np.random.seed(7)
    np.testing.assert_allclose(linear.weight.numpy(), kaiming(3, 5), rtol=1e-6)
    assert np.random.rand() == after
    assert linear.bias is None and len(linear.parameters()) == 1


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(4,), (2, 4), (0,), ()], ids=str)
def test_linear_maps_the_last_axis(device, bias, batch, rng):
    linear = nn.Linear(3, 5, bias=bias, device=device)
    x = rng.standard_normal((*batch, 3)).astype(np.float32)
    expected = x @ linear.weight.numpy() + (linear.bias.numpy()[0] if bias else 0)
    y = linear(ndl.Tensor(x, device=device, dtype="float32"))
    assert y.shape == (*batch, 5)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_linear_works_with_a_bias_of_one_axis(device, rng):
    linear = nn.Linear(3, 5, device=device)
    bias = rng.standard_normal(5).astype(np.float32)
    linear.bias.data = ndl.Tensor(bias, device=device, dtype="float32")
    x = rng.standard_normal((2, 3)).astype(np.float32)
    y = linear(ndl.Tensor(x, device=device, dtype="float32"))
    np.testing.assert_allclose(y.numpy(), x @ linear.weight.numpy() + bias, rtol=1e-5, atol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(linear.bias.grad.numpy(), np.full(5, 2))


@pytest.mark.parametrize("shape", [(2, 4), (3, 2), (), (3, 1)], ids=str)
def test_linear_says_which_input_does_not_fit(device, shape):
    linear = nn.Linear(3, 5, device=device)
    message = f"[Linear] input {shape} does not end in in_features=3"
    with pytest.raises(ShapeError, match=re.escape(message)):
        linear(ndl.Tensor(np.ones(shape), device=device, dtype="float32"))


# --- the others ---


@pytest.mark.parametrize(
    "shape, flat",
    [
        ((2, 3, 4), (2, 12)),
        ((2, 3), (2, 3)),
        ((5,), (5, 1)),
        ((0, 3, 2), (0, 6)),
        ((2, 0, 3), (2, 0)),
    ],
)
def test_flatten_keeps_the_batch(device, shape, flat):
    values = np.arange(math.prod(shape)).reshape(shape)
    y = nn.Flatten()(ndl.Tensor(values, device=device, dtype="float32"))
    assert y.shape == flat
    np.testing.assert_array_equal(y.numpy(), values.reshape(flat))


def test_flatten_follows_a_transposed_input(device):
    x = ndl.Tensor(np.arange(12).reshape(2, 2, 3), device=device, dtype="float32")
    y = nn.Flatten()(x.permute((0, 2, 1)))
    np.testing.assert_array_equal(y.numpy(), [[0, 3, 1, 4, 2, 5], [6, 9, 7, 10, 8, 11]])


def test_flatten_needs_a_batch_axis(device):
    with pytest.raises(ShapeError, match=r"\[Flatten\].*batch axis"):
        nn.Flatten()(ndl.Tensor(3.0, device=device, dtype="float32"))


@pytest.mark.parametrize(
    "layer, expected",
    [
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x.astype(np.float64)))),
        (nn.Tanh(), np.tanh),
        (nn.Identity(), lambda x: x),
        (nn.Softmax(), lambda x: softmax(x, 1)),
        (nn.Softmax(dim=0), lambda x: softmax(x, 0)),
        (nn.Softmax(dim=-2), lambda x: softmax(x, 0)),
    ],
    ids=["relu", "sigmoid", "tanh", "identity", "softmax", "softmax 0", "softmax -2"],
)
def test_activations(device, layer, expected):
    x = np.array([[-90, -1.5, 0, 0.25, 90], [3, 2, 1, -1, -2]], np.float32)
    y = layer(ndl.Tensor(x, device=device, dtype="float32"))
    np.testing.assert_allclose(y.numpy(), expected(x), rtol=1e-5, atol=1e-6)


def test_relu_has_no_gradient_at_zero(device):
    x = ndl.Tensor([-1.0, 0.0, 2.0], device=device, dtype="float32")
    nn.ReLU()(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 1])


def test_sigmoid_and_softmax_survive_large_inputs(device):
    x = ndl.Tensor([[-1e4, 0.0, 1e4]], device=device, dtype="float32")
    np.testing.assert_allclose(nn.Sigmoid()(x).numpy(), [[0, 0.5, 1]], atol=1e-6)
    logits = [[-249.873, -424.127, -460.293, 378.097, -292.615]]
    np.testing.assert_allclose(
        nn.Softmax()(ndl.Tensor(logits, device=device, dtype="float32")).numpy(),
        [[0, 0, 0, 1, 0]],
        atol=1e-6,
    )


def test_identity_returns_its_input_itself():
    x = ndl.Tensor([1.0])
    assert nn.Identity()(x) is x


def test_sequential_applies_its_modules_in_order(device):
    class Add(nn.Module):
        def forward(self, x):
            return x + 1

    class Double(nn.Module):
        def forward(self, x):
            return x * 2

    modules = (Add(), Double(), Add())
    model = nn.Sequential(*modules)
    assert model.modules == modules and isinstance(model.modules, tuple)
    assert model(ndl.Tensor([1.0, 2.0], device=device, dtype="float32")).numpy().tolist() == [5, 7]


def test_sequential_creates_and_draws_in_order(device):
    np.random.seed(11)
    model = nn.Sequential(nn.Linear(2, 3, device=device), nn.Linear(3, 4, device=device))
    np.random.seed(11)
    drawn = [kaiming(2, 3), kaiming(3, 1).T, kaiming(3, 4), kaiming(4, 1).T]
    for p, expected in zip(model.parameters(), drawn, strict=True):
        np.testing.assert_allclose(p.numpy(), expected, rtol=1e-6)


def test_residual_adds_its_input(device):
    x = np.array([[1, -2], [3, 4]], np.float32)
    linear = nn.Linear(2, 2, device=device)
    y = nn.Residual(linear)(ndl.Tensor(x, device=device, dtype="float32"))
    expected = x @ linear.weight.numpy() + linear.bias.numpy() + x
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)
