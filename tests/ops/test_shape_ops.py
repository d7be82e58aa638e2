"""Ops that only rearrange or repeat: values and gradients in float64, shared memory, messages."""

import numpy as np
import pytest

from needle import ops
from needle.errors import BroadcastError, IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import SHAPE


@pytest.mark.parametrize("row", SHAPE, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", SHAPE, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


@pytest.mark.parametrize(
    ("shape", "to", "expected"),
    [
        ((2, 1), (1, 2, 3), [[3], [12]]),
        ((3,), (2, 3), [3, 5, 7]),
        ((1, 3), (2, 3), [[3, 5, 7]]),
        ((1, 1), (2, 3), [[15]]),
        ((), (2, 3), 15),
        ((1,), (2, 3), [15]),
        ((2, 3), (2, 3), [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_broadcast_gradient_sums_the_copies(shape, to, expected):
    x = tensor64(np.ones(shape))
    weights = constant64(np.arange(6.0).reshape(to))
    (x.broadcast_to(to) * weights).sum().backward()
    assert x.grad.shape == shape
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize(
    ("axes", "shape"), [(None, (2, 4, 3)), ((0, 1), (3, 2, 4)), ((-1, 0), (4, 3, 2))]
)
def test_transpose_swaps_a_pair(axes, shape):
    x = tensor64(np.arange(24.0).reshape(2, 3, 4))
    y = x.transpose(axes)
    weights = np.arange(24.0).reshape(shape)
    assert y.shape == shape
    (y * constant64(weights)).sum().backward()
    pair = (-1, -2) if axes is None else axes
    np.testing.assert_array_equal(x.grad.numpy(), np.swapaxes(weights, *pair))


def test_nothing_to_broadcast_adds_no_node():
    x = tensor64(np.ones((2, 3)))
    assert ops.broadcast_to(x, (2, 3)) is x
    assert (x + x).inputs == (x, x)


def test_broadcasting_an_operand_adds_one_node_a_side():
    x, row = tensor64(np.ones((2, 3))), tensor64(np.ones(3))
    left, right = (x + row).inputs
    assert left is x
    assert isinstance(right.op, ops.BroadcastTo) and right.inputs[0] is row


def test_reshape_accepts_numbers_and_a_tuple():
    x = tensor64(np.arange(6.0))
    assert x.reshape(2, 3).shape == x.reshape((2, 3)).shape == x.reshape(2, -1).shape == (2, 3)
    assert x.reshape(-1).shape == x.reshape([6]).shape == (6,)


def test_reshape_of_a_permuted_tensor_keeps_the_order_of_elements():
    x = tensor64(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(x.permute((1, 0)).reshape(6).numpy(), [0, 3, 1, 4, 2, 5])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda x: ops.transpose(x, (0, 1, 2)),
            ShapeError,
            r"\[transpose\] \(0, 1, 2\) is not a pair",
        ),
        (lambda x: ops.transpose(x, (0, 3)), IndexingError, r"\[transpose\] axis 3 .* 3 axes"),
        (
            lambda x: ops.transpose(x[0, 0]),
            ShapeError,
            r"\[transpose\] shape \(4,\) has no two axes",
        ),
        (lambda x: ops.permute(x, (0, 1)), ShapeError, r"\[permute\] \(0, 1\) .* 3 axes once"),
        (lambda x: ops.permute(x, (0, 1, 1)), ShapeError, r"\[permute\] an axis is repeated"),
        (lambda x: ops.permute(x, (0, 1, 3)), IndexingError, r"\[permute\] axis 3"),
        (
            lambda x: ops.reshape(x, (5, 5)),
            ShapeError,
            r"\[reshape\] \(2, 3, 4\) has 24 .*\(5, 5\)",
        ),
        (lambda x: ops.reshape(x, (-1, -1)), ShapeError, r"\[reshape\].*\(-1, -1\)"),
        (lambda x: ops.reshape(x, (-1, 5)), ShapeError, r"\[reshape\].*\(-1, 5\)"),
        (lambda x: ops.broadcast_to(x, (2, 3, 5)), BroadcastError, r"\[broadcast_to\] \(2, 3, 4\)"),
        (
            lambda x: ops.broadcast_to(x, (3, 4)),
            BroadcastError,
            r"\(2, 3, 4\) cannot become \(3, 4\)",
        ),
        (lambda x: ops.broadcast_to(x, (-1, 3, 4)), ShapeError, r"\[broadcast_to\].*negative"),
        (lambda x: ops.squeeze(x, 1), ShapeError, r"\[squeeze\] axes \(1,\) of shape \(2, 3, 4\)"),
        (lambda x: ops.squeeze(x, 3), IndexingError, r"\[squeeze\] axis 3"),
        (lambda x: ops.unsqueeze(x, 4), IndexingError, r"\[unsqueeze\] axis 4"),
    ],
)
def test_messages(call, kind, message):
    with pytest.raises(kind, match=message):
        call(tensor64(np.ones((2, 3, 4))))
