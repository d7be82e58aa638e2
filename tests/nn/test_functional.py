"""Functions of nn.functional are the layers they name, with the weights given."""

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import ShapeError
from needle.nn import functional


def tensor(values, device):
    return ndl.Tensor(values, device=device, dtype="float32")


def assert_equal(got, expected):
    assert got.device == expected.device
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3)], ids=str)
def test_linear(device, rng, shape, bias):
    layer = nn.Linear(3, 4, bias=bias, device=device)
    x = tensor(rng.standard_normal(shape), device)
    assert_equal(functional.linear(x, layer.weight, layer.bias), layer(x))


@pytest.mark.parametrize("bias", [True, False])
def test_conv2d(device, rng, bias):
    layer = nn.Conv(3, 4, (3, 5), stride=2, bias=bias, device=device, padding=(1, 0))
    x = tensor(rng.standard_normal((2, 3, 7, 8)), device)
    assert_equal(functional.conv2d(x, layer.weight, layer.bias, 2, (1, 0)), layer(x))


@pytest.mark.parametrize("name", ["MaxPool2d", "AvgPool2d"])
def test_pools(device, rng, name):
    x = tensor(rng.standard_normal((2, 3, 7, 8)), device)
    function = {"MaxPool2d": functional.max_pool2d, "AvgPool2d": functional.avg_pool2d}[name]
    assert_equal(function(x, 3, 2, 1), getattr(nn, name)(3, 2, 1)(x))
    assert_equal(function(x, 2), getattr(nn, name)(2)(x))


def test_embedding(device):
    layer = nn.Embedding(5, 3, device=device)
    ids = np.array([[0, 4], [2, 2]])
    assert_equal(functional.embedding(ids, layer.weight), layer(ids))


def test_layer_norm(device, rng):
    layer = nn.LayerNorm(4, device=device)
    layer.weight.data = tensor(rng.standard_normal(4), device)
    layer.bias.data = tensor(rng.standard_normal(4), device)
    x = tensor(rng.standard_normal((2, 3, 4)), device)
    assert_equal(functional.layer_norm(x, layer.weight, layer.bias), layer(x))


def test_dropout_draws_as_the_layer_does(device):
    x = ndl.ones(50, device=device)
    np.random.seed(1)
    expected = nn.Dropout(0.3)(x)
    np.random.seed(1)
    assert_equal(functional.dropout(x, 0.3), expected)
    assert functional.dropout(x, 0.3, training=False) is x


@pytest.mark.parametrize("is_causal", [True, False])
def test_attention(device, rng, is_causal):
    q, k, v = (tensor(rng.standard_normal((2, 3, 5, 4)), device) for _ in range(3))
    expected, _ = nn.MultiHeadAttention(causal=is_causal, device=device)(q, k, v)
    assert_equal(functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal), expected)


def test_losses(device, rng):
    logits, target = (tensor(rng.standard_normal((4, 3)), device) for _ in range(2))
    labels = tensor([0, 2, 1, 1], device)
    assert_equal(functional.cross_entropy(logits, labels), nn.CrossEntropyLoss()(logits, labels))
    assert_equal(functional.mse_loss(logits, target), nn.MSELoss()(logits, target))


def test_one_hot(device):
    got = functional.one_hot(tensor([2, 0], device), 3)
    assert got.device == device and got.numpy().tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh"])
def test_ops_under_their_names(name):
    assert getattr(functional, name) is getattr(ndl, name)


def test_softmax_along_dim(device, rng):
    x = tensor(rng.standard_normal((2, 3)), device)
    assert_equal(functional.softmax(x, dim=0), ndl.softmax(x, 0))
    assert_equal(functional.log_softmax(x, dim=0), ndl.logsoftmax(x, 0))
    assert_equal(functional.softmax(x), nn.Softmax()(x))


def test_images_need_four_axes(device):
    with pytest.raises(ShapeError, match=r"\[conv2d\] input \(3, 7, 8\) is not \(batch, channels"):
        functional.conv2d(ndl.zeros(3, 7, 8, device=device), ndl.zeros(3, 3, 3, 4, device=device))
