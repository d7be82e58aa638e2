"""BatchNorm1d, LayerNorm1d and LayerNorm: values against numpy, gradients, running statistics."""

import gc
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import ShapeError
from tests.nn.module_gradcheck import FLOAT64, check_module

NORMS = {"BatchNorm1d": nn.BatchNorm1d, "LayerNorm1d": nn.LayerNorm1d}
BATCH = [[1, 2], [3, 6]]


def each_norm(function):
    return pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)(function)


def normed(x, axis, eps):
    """Return `x` less its mean along `axis`, by its biased deviation with eps in the root."""
    x = np.asarray(x, np.float64)
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)


def randomize(module, rng):
    """Give weights, biases and running statistics values that no mistake leaves alone."""
    for tensor in module._state().values():
        values = rng.uniform(0.5, 2, tensor.shape)
        tensor.data = ndl.Tensor(
            values, device=tensor.device, dtype=tensor.dtype, requires_grad=False
        )
    return module


# --- both ---


@each_norm
def test_it_starts_as_plain_normalisation_and_draws_nothing(device, norm):
    np.random.seed(2)
    layer = norm(3, device=device)
    assert np.random.rand() == np.random.RandomState(2).rand()
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    np.testing.assert_array_equal(layer.weight.numpy(), np.ones(3))
    np.testing.assert_array_equal(layer.bias.numpy(), np.zeros(3))
    assert all(
        t.device == device and t.numpy().dtype == np.float32 for t in layer._state().values()
    )


@each_norm
@pytest.mark.parametrize("eps", [1e-5, 0.5])
@pytest.mark.parametrize("shape", [(7, 5), (1, 5), (7, 1)], ids=str)
def test_values(device, norm, shape, eps, rng):
    layer = randomize(norm(shape[1], eps=eps, device=device), rng)
    x = rng.normal(3, 2, shape).astype(np.float32)
    axis = 0 if norm is nn.BatchNorm1d else 1
    expected = normed(x, axis, eps) * layer.weight.numpy() + layer.bias.numpy()
    y = layer(ndl.Tensor(x, device=device, dtype="float32"))
    assert y.shape == shape and y.device == device and y.numpy().dtype == np.float32
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-4)


@each_norm
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 1), (1, 3)], ids=str)
def test_gradients_of_inputs_and_parameters(norm, training, shape, rng):
    layer = randomize(norm(shape[1], eps=0.1, **FLOAT64), rng).train(training)
    check_module(layer, rng.standard_normal(shape), rng=rng)


@each_norm
def test_gradients_lie_on_the_device_of_the_parameters(device, norm, rng):
    layer = norm(3, device=device)
    x = ndl.Tensor(rng.standard_normal((4, 3)), device=device, dtype="float32")
    y = layer(x)
    y.backward(ndl.Tensor(rng.standard_normal(y.shape), device=device, dtype="float32"))
    for grad in (x.grad, layer.weight.grad, layer.bias.grad):
        assert grad.device == device and grad.numpy().dtype == np.float32
    assert x.grad.shape == (4, 3) and layer.weight.grad.shape == layer.bias.grad.shape == (3,)


@each_norm
@pytest.mark.parametrize("shape", [(4, 2), (3,), (2, 4, 3), ()], ids=str)
def test_another_shape_is_refused(device, norm, shape):
    layer = norm(3, device=device)
    message = f"[{norm.__name__}] input {shape} is not (batch, 3)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        layer(ndl.Tensor(np.ones(shape), device=device, dtype="float32"))


@each_norm
def test_an_empty_batch_is_refused(device, norm):
    layer = norm(3, device=device)
    with pytest.raises(ShapeError, match=re.escape("input (0, 3) has no sample")):
        layer(ndl.Tensor(np.ones((0, 3)), device=device, dtype="float32"))


@each_norm
def test_equal_inputs_stay_finite(device, norm):
    layer = norm(3, device=device)
    x = ndl.Tensor(np.full((4, 3), 7.0), device=device, dtype="float32")
    y = layer(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), np.zeros((4, 3)), atol=1e-5)
    assert np.isfinite(x.grad.numpy()).all()


# --- LayerNorm1d ---


def test_layer_norm_treats_every_row_alone(device):
    y = nn.LayerNorm1d(2, device=device)(
        ndl.Tensor([[1.0, 3.0], [-10.0, 30.0]], device=device, dtype="float32")
    )
    np.testing.assert_allclose(y.numpy(), [[-1, 1], [-1, 1]], rtol=1e-4)


def test_layer_norm_is_the_same_in_both_modes(device, rng):
    layer = nn.LayerNorm1d(3, device=device)
    x = ndl.Tensor(rng.standard_normal((4, 3)), device=device, dtype="float32")
    np.testing.assert_array_equal(layer(x).numpy(), layer.eval()(x).numpy())
    assert list(layer.state_dict()) == ["weight", "bias"]


# --- LayerNorm ---


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (2, 1, 4, 3), (3,), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("size", [3, (3,)], ids=str)
def test_layer_norm_of_any_rank_normalises_the_last_axis(device, shape, size, rng):
    layer = randomize(nn.LayerNorm(size, eps=0.1, device=device), rng)
    x = rng.normal(3, 2, shape).astype(np.float32)
    y = layer(ndl.Tensor(x, device=device, dtype="float32"))
    expected = normed(x, -1, 0.1) * layer.weight.numpy() + layer.bias.numpy()
    assert y.shape == shape and y.device == device
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3)], ids=str)
def test_layer_norm_of_any_rank_gradients(shape, rng):
    layer = randomize(nn.LayerNorm(3, eps=0.1, **FLOAT64), rng)
    check_module(layer, rng.standard_normal(shape), rng=rng)


@pytest.mark.parametrize("shape", [(2, 4), (3, 1), ()], ids=str)
def test_layer_norm_of_any_rank_refuses_another_last_size(device, shape):
    message = f"[LayerNorm] input {shape} does not end in normalized_size=3"
    with pytest.raises(ShapeError, match=re.escape(message)):
        nn.LayerNorm(3, device=device)(ndl.Tensor(np.ones(shape), device=device, dtype="float32"))


@pytest.mark.parametrize("sizes", [(2, 3), ()], ids=str)
def test_layer_norm_normalises_one_axis(sizes):
    with pytest.raises(ShapeError, match=re.escape(f"normalized_size {sizes} is not one size")):
        nn.LayerNorm(sizes)


# --- BatchNorm1d ---


def running(layer):
    return layer.running_mean.numpy(), layer.running_var.numpy()


def test_running_statistics_start_at_0_and_1_and_are_no_parameters(device):
    layer = nn.BatchNorm1d(2, device=device)
    mean, var = running(layer)
    np.testing.assert_array_equal(mean, [0, 0])
    np.testing.assert_array_equal(var, [1, 1])
    assert len(layer.parameters()) == 2


def test_one_batch_moves_running_statistics_with_the_biased_variance(device):
    layer = nn.BatchNorm1d(2, momentum=0.1, device=device)
    layer(ndl.Tensor(BATCH, device=device, dtype="float32"))
    mean, var = running(layer)
    np.testing.assert_allclose(mean, [0.2, 0.4], rtol=1e-6)
    np.testing.assert_allclose(var, [1.0, 1.3], rtol=1e-6)  # unbiased, it would be 1.1 and 1.7


@pytest.mark.parametrize("momentum", [0.0, 0.1, 0.7, 1.0])
def test_running_statistics_follow_the_formula(device, momentum, rng):
    layer = nn.BatchNorm1d(3, momentum=momentum, device=device)
    mean, var = np.zeros(3), np.ones(3)
    for batch in (4, 5, 1):
        x = rng.normal(2, 3, (batch, 3)).astype(np.float32)
        layer(ndl.Tensor(x, device=device, dtype="float32"))
        mean = (1 - momentum) * mean + momentum * x.mean(0)
        var = (1 - momentum) * var + momentum * x.var(0)
    np.testing.assert_allclose(running(layer)[0], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(running(layer)[1], var, rtol=1e-5, atol=1e-6)


def test_eval_uses_running_statistics_and_keeps_them(device):
    layer = nn.BatchNorm1d(2, momentum=0.1, device=device)
    layer(ndl.Tensor(BATCH, device=device, dtype="float32"))
    layer.weight.data = ndl.init.constant(2, c=2.0, device=device)
    layer.bias.data = ndl.init.ones(2, device=device)
    layer.eval()
    before = running(layer)
    for _ in range(2):
        y = layer(ndl.Tensor([[1.0, 2.0]], device=device, dtype="float32"))
        np.testing.assert_allclose(y.numpy(), [[2.599992, 3.806575]], rtol=1e-6)
        np.testing.assert_array_equal(running(layer), before)


def test_batches_in_training_ignore_running_statistics(device, rng):
    layer = nn.BatchNorm1d(3, device=device)
    x = ndl.Tensor(rng.standard_normal((6, 3)), device=device, dtype="float32")
    first = layer(x).numpy()
    randomize(layer, rng)
    layer.weight.data, layer.bias.data = (
        make(3, device=device) for make in (ndl.init.ones, ndl.init.zeros)
    )
    np.testing.assert_array_equal(layer(x).numpy(), first)


def test_running_statistics_have_no_graph_and_stay_the_same_tensors(device, rng):
    layer = nn.BatchNorm1d(3, device=device)
    tensors = (layer.running_mean, layer.running_var)
    for _ in range(3):
        layer(
            ndl.Tensor(rng.standard_normal((4, 3)), device=device, dtype="float32")
        ).sum().backward()
    assert (layer.running_mean, layer.running_var) == tensors
    for tensor in tensors:
        assert tensor.op is None and len(tensor.inputs) == 0 and not tensor.requires_grad
        assert tensor.device == device and tensor.grad is None
        assert tensor.shape == (3,) and tensor.numpy().dtype == np.float32


def test_running_statistics_keep_no_tensor_alive(device, rng):
    layer = nn.BatchNorm1d(3, device=device)
    values = rng.standard_normal((4, 3))
    counts = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            layer(ndl.Tensor(values, device=device, dtype="float32")).sum().backward()
            counts.append(ndl.autograd.TENSOR_COUNTER)
    finally:
        gc.enable()
    assert counts[4] == counts[-1]


def test_large_means_do_not_drown_the_variance(device, rng):
    x = (1000 + rng.standard_normal((50, 2))).astype(np.float32)
    y = nn.BatchNorm1d(2, device=device)(ndl.Tensor(x, device=device, dtype="float32"))
    np.testing.assert_allclose(y.numpy(), normed(x, 0, 1e-5), atol=1e-2)
