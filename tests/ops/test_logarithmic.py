"""logsumexp, logsoftmax and softmax: values and gradients in float64, shapes, extreme logits."""

import math

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import LOGARITHMIC


@pytest.mark.parametrize("row", LOGARITHMIC, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", LOGARITHMIC, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


WIDE = [-249.873, -424.127, -460.293, 378.097, -292.615]


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        (WIDE, 378.097),
        ([1000.0, 1000.0], 1000.6931471805599),
        ([-1e4] * 3, -9998.901387711332),
        ([1e8, 1e8], 1e8 + math.log(2)),
        ([1e10, 1.0], 1e10),
        ([-math.inf, 0.0], 0.0),
    ],
)
def test_logsumexp_at_any_magnitude(logits, expected):
    x = tensor64(logits)
    y = ops.logsumexp(x)
    y.backward(constant64(3.0))
    np.testing.assert_allclose(y.item(), expected, rtol=1e-14, atol=1e-14)
    shifted = np.exp(np.array(logits) - max(logits))
    np.testing.assert_allclose(x.grad.numpy(), 3 * shifted / shifted.sum(), rtol=1e-7, atol=1e-300)


@pytest.mark.parametrize("logits", [WIDE, [1000.0, 1000.0], [-1e4] * 3, [1e8, 1e8], [1e5, -1e5]])
def test_softmax_and_logsoftmax_at_any_magnitude(logits, rng):
    values = np.array([logits, logits[::-1]])
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    expected = shifted / shifted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ops.softmax(constant64(values)).numpy(), expected, rtol=1e-13)
    x = tensor64(values)
    out_grad = rng.standard_normal(values.shape)
    ops.logsoftmax(x).backward(constant64(out_grad))
    gradient = x.grad.numpy()
    wanted = out_grad - expected * out_grad.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize(("label", "expected"), [(3, 0.0), (0, 627.97)])
def test_cross_entropy_of_wide_logits(label, expected):
    logits = tensor64([WIDE])
    loss = -ops.logsoftmax(logits)[0, label]
    loss.backward()
    np.testing.assert_allclose(loss.item(), expected, atol=1e-9)
    wanted = np.eye(5)[3] - np.eye(5)[label]
    np.testing.assert_allclose(logits.grad.numpy(), [wanted], atol=1e-12)


def test_large_logits_survive_in_float32():
    x = Tensor(np.array([[1e5, -1e5, 1e5]], dtype=np.float32))
    y = ops.logsoftmax(x)
    y.backward(Tensor(np.array([[1, 2, 4]], dtype=np.float32)))
    np.testing.assert_allclose(y.numpy(), [[-math.log(2), -2e5, -math.log(2)]], rtol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), [[-2.5, 2, 0.5]], rtol=1e-5)
    assert y.numpy().dtype == x.grad.numpy().dtype == np.float32


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((1, 3), (1,), (1,)),
        ((3, 1, 2), (2,), (3, 1)),
        ((3, 1, 2), None, ()),
        ((1, 3), (-1,), (1,)),
        ((2, 3, 4), 1, (2, 4)),
        ((2, 3, 4), (0, -1), (3,)),
    ],
)
def test_logsumexp_drops_the_reduced_axes(shape, axes, expected, rng):
    values = rng.standard_normal(shape)
    x = tensor64(values)
    y = ops.logsumexp(x, axes)
    y.backward()
    assert y.shape == expected
    e = np.exp(values)
    softmax = e / e.sum(axis=axes, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(), softmax, rtol=1e-12)


def test_logsoftmax_of_a_matrix_is_along_the_rows(rng):
    values = rng.standard_normal((3, 4))
    np.testing.assert_allclose(np.exp(ops.logsoftmax(constant64(values)).numpy()).sum(1), 1)
    np.testing.assert_array_equal(ops.LogSoftmax()(constant64(values)).numpy().shape, (3, 4))


@pytest.mark.parametrize("function", [ops.logsumexp, ops.logsoftmax, ops.softmax])
def test_messages(function):
    name = function.__name__.removeprefix("softmax") or "logsoftmax"
    with pytest.raises(IndexingError, match=rf"\[{name}\] axis 2 is out of range for 2 axes"):
        function(tensor64(np.ones((2, 3))), 2)
    with pytest.raises(ShapeError, match=rf"\[{name}\] shape \(2, 0\) is empty along 1"):
        function(tensor64(np.ones((2, 0))), 1)
