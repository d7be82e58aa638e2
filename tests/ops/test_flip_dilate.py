"""Flip, dilate and undilate: values, gradients, what is refused."""

import re

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import CONV

ROWS = [row for row in CONV if row.op in ("flip", "dilate", "undilate")]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


def test_flip_twice_is_nothing_and_the_source_stays(device):
    x = Tensor(np.arange(6).reshape(2, 3), device=device, dtype="float32")
    y = ops.flip(x, (0,))
    np.testing.assert_array_equal(y.numpy(), [[3, 4, 5], [0, 1, 2]])
    np.testing.assert_array_equal(y.sum(1).numpy(), [12, 3])
    np.testing.assert_array_equal(ops.flip(y, 0).numpy(), x.numpy())
    np.testing.assert_array_equal(x.numpy(), np.arange(6).reshape(2, 3))


def test_the_gradient_of_flip_is_flipped(device):
    x = Tensor(np.ones((2, 3)), device=device, dtype="float32")
    weights = np.arange(6).reshape(2, 3)
    (ops.flip(x, (0, 1)) * weights).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), weights[::-1, ::-1])


def test_zeros_follow_every_element_the_last_too(device):
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device=device, dtype="float32")
    expected = [[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(ops.dilate(x, (0, 1), 1).numpy(), expected)
    np.testing.assert_array_equal(ops.dilate(x, (1,), 2).numpy()[0], [1, 0, 0, 2, 0, 0])
    np.testing.assert_array_equal(ops.undilate(ops.dilate(x, (0, 1), 3), (0, 1), 3).numpy(), x)


def test_dilated_zeros_are_zero_whatever_the_memory_held(device):
    x = Tensor(np.ones((3, 3)), device=device, dtype="float32")
    for _ in range(5):
        Tensor(np.full((6, 6), 123.0), device=device, dtype="float32")
        assert ops.dilate(x, (0, 1), 1).numpy().sum() == 9


def test_axes_that_are_not_there_are_ignored(device):
    x = Tensor(np.ones((2, 3)), device=device, dtype="float32")
    assert ops.dilate(x, (2, 7), 1).shape == (2, 3)
    assert ops.dilate(x, (1, 2), 1).shape == (2, 6)
    assert ops.undilate(x, (0, 5), 1).shape == (1, 3)


def test_undilate_of_an_odd_size_hands_its_gradient_back():
    x = tensor64([1.0, 2.0, 3.0, 4.0, 5.0])
    ops.undilate(x, 0, 2).backward(constant64([7.0, 8.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [7, 0, 0, 8, 0])


@pytest.mark.parametrize("op", ["dilate", "undilate"])
def test_what_dilation_refuses(op):
    with pytest.raises(ShapeError, match=re.escape(f"[{op}] dilation is -1; the number of zeros")):
        getattr(ops, op)(tensor64(np.ones((2, 3))), (0,), -1)
    with pytest.raises(IndexingError, match=re.escape(f"[{op}] axis -3 is out of range")):
        getattr(ops, op)(tensor64(np.ones((2, 3))), (-3,), 1)


@pytest.mark.parametrize("axes", [2, (0, -3)], ids=str)
def test_what_flip_refuses(axes):
    with pytest.raises(IndexingError, match=r"\[flip\] axis -?[23] is out of range for 2 axes"):
        ops.flip(tensor64(np.ones((2, 3))), axes)


def test_flip_names_an_axis_once():
    with pytest.raises(ShapeError, match=r"\[flip\] an axis is repeated in \(0, -2\)"):
        ops.flip(tensor64(np.ones((2, 3))), (0, -2))
