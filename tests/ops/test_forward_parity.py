"""Every op on every device in float32: value, gradient, dtype and device against float64."""

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor
from tests.gradcheck import outputs_of, tensor64
from tests.op_table import ROWS, distinct


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values_on_every_device(row, device, rng):
    arrays = row.inputs(rng)
    outputs = outputs_of(row.call(*(Tensor(a, device=device) for a in arrays)))
    expected = row.reference(*arrays)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    for y, value in zip(outputs, expected, strict=True):
        assert y.device == device and y.dtype == "float32" and y.shape == np.shape(value)
        np.testing.assert_allclose(y.numpy(), value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row", ROWS[::3], ids=str)
def test_gradients_on_every_device(row, device, rng):
    """The float64 gradients are checked elsewhere; here they are the measure."""
    arrays = [a.astype("float32") for a in row.inputs(rng)]
    grads = []
    for make in (tensor64, lambda a: Tensor(a, device=device)):
        inputs = [make(a) for a in arrays]
        for y in outputs_of(row.call(*inputs)):
            y.backward(make(weights(y.shape)), accumulate=True)
        grads.append([x.grad for x in inputs])
    for wide, narrow in zip(*grads, strict=True):
        assert narrow.device == device and narrow.dtype == "float32"
        assert narrow.shape == wide.shape
        np.testing.assert_allclose(narrow.numpy(), wide.numpy(), rtol=1e-4, atol=1e-5)


def weights(shape):
    """Return an uneven out_grad."""
    return np.linspace(-1, 2, int(np.prod(shape))).reshape(shape)


def test_views_as_inputs(device, rng):
    """Transposed, sliced, flipped and broadcast inputs give what their copies give."""
    base = distinct(rng, (4, 6))
    x = Tensor(base, device=device)
    views = [
        (x.permute((1, 0)), base.T),
        (x[1:3, ::2], base[1:3, ::2]),
        (x[::-1, ::-1], base[::-1, ::-1]),
        (x[0].broadcast_to((3, 6)), np.broadcast_to(base[0], (3, 6))),
    ]
    for tensor, array in views:
        results = [
            (ops.exp(tensor), np.exp(array)),
            (tensor * tensor + 1, array * array + 1),
            (tensor.sum(0), array.sum(0)),
            (tensor.max(1), array.max(1)),
            (tensor @ tensor.permute((1, 0)), array @ array.T),
            (tensor.reshape(-1), array.reshape(-1)),
            (ops.concatenate([tensor, tensor]), np.concatenate([array, array])),
            (ops.logsumexp(tensor, 1), np.log(np.exp(array).sum(1))),
            (ops.where(tensor > 0, tensor, -1), np.where(array > 0, array, -1)),
        ]
        for result, expected in results:
            assert result.device == device
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_nothing_moves_to_the_default_device(device, rng):
    """Numbers, numpy arrays, conditions and gradients stay where the Tensor is."""
    x = Tensor(rng.uniform(0.5, 1, (2, 3)), device=device)
    array = rng.uniform(0.5, 1, (2, 3))
    results = [
        x + 1,
        1 - x,
        2 / x,
        2**x,
        x * array,
        array - x,
        array / x,
        array @ x.transpose(),
        x[0],
        x.mean(),
        ops.where(array > 0.7, x, 0.0),
        ops.where([True, False, True], 1.0, x),
        ops.softmax(x),
        ops.max(x, 1),
        x > array,
        x < 0.7,
    ]
    for y in results:
        assert y.device == device
        if y.requires_grad:
            y.backward()
            assert x.grad.device == device
            assert x.grad.shape == x.shape


def test_second_order_on_every_device(device):
    x = Tensor([1.0, 2.0], device=device)
    y = (x * x * x).sum()
    y.backward()
    x.grad.backward()
    assert x.grad.device == device
    np.testing.assert_allclose(x.grad.numpy(), [6, 12], rtol=1e-6)
