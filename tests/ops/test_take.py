"""take and indexing with an array: values and gradients in float64, second order, messages.

The rows of tests/op_table.py go through every device; here is what they do not say.
"""

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import TAKE


@pytest.mark.parametrize("row", TAKE, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", TAKE, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


def test_an_index_met_again_adds_up():
    x = tensor64(np.arange(4.0))
    ops.take(x, [2, 0, 2, -2]).backward(constant64([1.0, 10.0, 100.0, 1000.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [10, 0, 1101, 0])


def test_second_order(rng):
    """The gradient of a scatter-add is a gather: d/dx of sum(take(x)^3), differentiated again."""

    def slope(x):
        y = ops.take(x, [[2, 0], [2, 1]])
        (y * y * y).sum().backward(create_graph=True)
        return x.grad

    x = tensor64(rng.standard_normal((3, 2)))
    slope(x).sum().backward()
    count = np.array([[1], [1], [2]])
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.numpy() * count)


def test_add_rows_has_a_gradient(rng):
    rows = constant64([3, 0, 3])
    check_gradients(lambda a: ops.AddRows(rows, 5)(a), rng.standard_normal((3, 2)), rng=rng)


@pytest.mark.parametrize(
    "indices",
    [
        [[0, 2], [1, -1]],
        np.array([[0, 2], [1, -1]]),
        np.array([[0, 2], [1, -1]], np.int8),
        np.array([[0, 2], [1, 299]], np.uint16),
        constant64([[0, 2], [1, -1]]),
        tensor64([[0, 2], [1, -1]]),
    ],
    ids=["list", "int64", "int8", "uint16", "Tensor", "Tensor with a gradient"],
)
def test_kinds_of_indices(indices, rng):
    """Whatever they are, they get no gradient. The axis is longer than int8 counts."""
    a = rng.standard_normal((300, 2))
    x = tensor64(a)
    y = ops.take(x, indices)
    np.testing.assert_array_equal(y.numpy(), a[[[0, 2], [1, -1]]])
    y.sum().backward()
    assert getattr(indices, "grad", None) is None


def test_a_single_index_leaves_its_axis_out(rng):
    a = rng.standard_normal((3, 4))
    np.testing.assert_array_equal(ops.take(tensor64(a), 1).numpy(), a[1])
    np.testing.assert_array_equal(ops.take(tensor64(a), constant64(-1), axis=1).numpy(), a[:, -1])


def test_type_and_device_are_those_of_the_table(device):
    x = Tensor(np.ones((3, 2), np.float32), device=device)
    y = ops.take(x, Tensor([0.0, 1.0], requires_grad=False))
    assert y.dtype == "float32" and y.device == device


# --- an array as an index ---


@pytest.mark.parametrize(
    "index",
    [
        [0, 2],
        [[0, -1], [1, 1]],
        np.array([2, 2, 0]),
        [],
        np.zeros((0, 2), int),
        np.array([True, False, True]),
        [False, True, False],
        np.zeros(3, bool),
    ],
    ids=repr,
)
def test_array_index(index, rng):
    at = np.asarray(index) if np.size(index) else np.zeros(np.shape(index), int)
    check_values(lambda x: x[index], lambda a: a[at], rng.standard_normal((3, 2, 2)))
    check_gradients(lambda x: x[index], rng.standard_normal((3, 2, 2)), rng=rng)


def test_a_zero_dimensional_array_is_an_integer(rng):
    a = rng.standard_normal((3, 2))
    np.testing.assert_array_equal(tensor64(a)[np.array(1)].numpy(), a[1])


# --- messages ---


@pytest.mark.parametrize(
    ("indices", "axis", "message"),
    [
        ([0, 7], 0, r"\[take\] index 7 is out of range for axis 0 of size 5"),
        ([[-6, 0]], 0, r"\[take\] index -6 is out of range for axis 0 of size 5"),
        ([3], 1, r"\[take\] index 3 is out of range for axis 1 of size 3"),
        ([3], -1, r"\[take\] index 3 is out of range for axis 1 of size 3"),
        ([2**70], 0, r"\[take\] indices of type object; give integers"),
        (np.array([2**63], np.uint64), 0, r"\[take\] index 9223372036854775808 is out of range"),
        ([0.5], 0, r"\[take\] indices of type float64; give integers"),
        ([True], 0, r"\[take\] indices of type bool; give integers"),
        (["a"], 0, r"\[take\] indices of type <U1; give integers"),
        (constant64([1, 0.5]), 0, r"\[take\] index 0.5 is no whole number"),
        (constant64([np.nan]), 0, r"\[take\] index nan is no whole number"),
        (constant64([np.inf]), 0, r"\[take\] index inf is out of range for axis 0 of size 5"),
        (constant64([-1e30]), 0, r"\[take\] index -1\d+ is out of range"),
        ([0], 2, r"\[take\] axis 2 is out of range for 2 axes"),
    ],
    ids=repr,
)
def test_messages(indices, axis, message):
    with pytest.raises(IndexingError, match=message):
        ops.take(tensor64(np.ones((5, 3))), indices, axis)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 2], r"\[getitem\] index 2 is out of range for axis 0 of size 2"),
        ([0.5], r"\[getitem\] cannot index axis 0 with an array of float64; use integers or bool"),
        (["a"], r"\[getitem\] cannot index axis 0 with an array of <U1"),
        (np.ones(3, bool), r"\[getitem\] a mask of shape \(3,\) for shape \(2, 3\); .* one entry"),
        (np.ones((2, 3), bool), r"\[getitem\] a mask of shape \(2, 3\)"),
        (([0], 1), r"\[getitem\] cannot index axis 0 with a list; use integers and slices"),
    ],
    ids=repr,
)
def test_messages_of_an_array_index(index, message):
    with pytest.raises(IndexingError, match=message):
        tensor64(np.ones((2, 3)))[index]


def test_nothing_can_be_taken_of_a_number():
    with pytest.raises(IndexingError, match=r"\[take\] axis 0 is out of range for 0 axes"):
        ops.take(tensor64(1.0), [0])


def test_a_table_too_long_for_float_indices(device):
    """Stretched from one row, so that the test needs no memory for it."""
    long = ops.broadcast_to(Tensor(np.ones((1, 1), np.float32), device=device), (2**24 + 1, 1))
    with pytest.raises(ShapeError, match=r"\[take\] axis 0 has 16777217 .* reach 16777216"):
        ops.take(long, [0])
    last = ops.take(long[: 2**24], [2**24 - 1, -(2**24)])
    assert last.shape == (2, 1)
