"""Reductions: values and gradients in float64, ties, NaN, synonyms of `axes`, messages."""

import math

import numpy as np
import pytest

from needle import ops
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import REDUCTION


@pytest.mark.parametrize("row", REDUCTION, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", REDUCTION, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


TIED = [[3.0, 1.0, 3.0], [2.0, 2.0, 2.0], [1.0, 0.0, 5.0]]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (1, [[1 / 2, 0, 1 / 2], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]),
        (0, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (None, [[0, 0, 0], [0, 0, 0], [0, 0, 1]]),
    ],
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_ties_share_the_gradient_evenly(axes, expected, keepdims):
    for function, sign in ((ops.max, 1), (ops.min, -1)):
        x = tensor64(sign * np.array(TIED))
        y = function(x, axes, keepdims)
        seed = np.arange(2.0, 2 + y.size).reshape(y.shape)
        y.backward(constant64(seed))
        spread = seed if keepdims or axes is None else np.expand_dims(seed, axes)
        np.testing.assert_allclose(x.grad.numpy(), expected * spread, rtol=1e-15)


def test_ties_over_several_axes_share_too():
    x = tensor64(np.full((2, 2, 2), 7.0))
    ops.max(x, (0, 2)).backward(constant64([4.0, 8.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [[[1, 1], [2, 2]]] * 2)


def test_extremes_let_nan_through():
    assert math.isnan(ops.max(constant64([1.0, math.nan])).item())
    assert math.isnan(ops.min(constant64([1.0, math.nan])).item())
    assert ops.max(constant64([-math.inf, -5.0])).item() == -5


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_axes_have_synonyms(name):
    x = tensor64(np.arange(6.0).reshape(2, 3))
    method = getattr(x, name)
    wanted = method(1).numpy()
    assert wanted.shape == (2,)
    for result in (method(axes=1), method(axis=1), method(dim=1), method((1,)), method(axis=-1)):
        np.testing.assert_array_equal(result.numpy(), wanted)
    assert method(axis=0, keepdims=True).shape == (1, 3)
    assert method(1, True).shape == (2, 1)
    with pytest.raises(ShapeError, match=r"\[axes\] give one of axes, axis and dim"):
        method(axis=0, dim=0)


def test_a_full_reduction_is_a_number():
    total = tensor64(np.arange(6.0).reshape(2, 3)).sum()
    assert total.shape == () and total.item() == 15 and float(total) == 15
    assert f"{float(total):.1f}" == "15.0"


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_messages(name):
    method = getattr(tensor64(np.ones((2, 3))), name)
    with pytest.raises(IndexingError, match=rf"\[{name}\] axis 2 is out of range for 2 axes"):
        method(2)
    with pytest.raises(IndexingError, match=rf"\[{name}\] axis -3"):
        method(-3)
    with pytest.raises(ShapeError, match=rf"\[{name}\] an axis is repeated in \(0, -2\)"):
        method((0, -2))
    with pytest.raises(ShapeError, match=rf"\[{name}\] axis 0.5 is not an integer"):
        method(0.5)
    with pytest.raises(ShapeError, match=rf"\[{name}\] no axes given"):
        method(())


@pytest.mark.parametrize("name", ["mean", "max", "min"])
@pytest.mark.parametrize("axes", [None, 0, (0, 1)])
def test_an_empty_axis_has_no_mean_or_extreme(name, axes):
    with pytest.raises(ShapeError, match=rf"\[{name}\] shape \(0, 3\) is empty along"):
        getattr(tensor64(np.ones((0, 3))), name)(axes)


def test_an_axis_beside_an_empty_one_is_fine():
    x = tensor64(np.ones((0, 3)))
    assert x.max(1).shape == x.mean(1).shape == (0,)
    assert x.sum(0).numpy().tolist() == [0, 0, 0]
