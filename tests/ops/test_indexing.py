"""Indexing, slicing and joining: values and gradients in float64, reuse, messages."""

import numpy as np
import pytest

from needle import ops
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import INDEXING


@pytest.mark.parametrize("row", INDEXING, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", INDEXING, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


def test_a_slice_sends_its_gradient_to_its_place():
    x = tensor64(np.arange(5.0))
    x[:3].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 1, 0, 0])


def test_overlapping_slices_add_up(rng):
    def windows(x):
        return x[:3] * x[1:4] + x[2:] * x[0]

    check_gradients(windows, rng.standard_normal(5), rng=rng)


def test_index_with_numpy_integers():
    x = tensor64(np.arange(6.0).reshape(2, 3))
    assert x[np.int64(1), np.int32(-1)].item() == 5
    assert x[np.int64(1) :].shape == (1, 3)


def test_the_parts_of_a_tensor_in_order():
    x = tensor64(np.arange(6.0).reshape(3, 2))
    parts = list(x)
    assert [part.shape for part in parts] == [(2,)] * 3
    (parts[0] * 2 + parts[2]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2], [0, 0], [1, 1]])


def test_the_same_tensor_twice_in_one_join():
    x = tensor64([1.0, 2.0])
    ops.concatenate([x, x]).backward(constant64([1.0, 10.0, 100.0, 1000.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [101, 1010])


def test_join_takes_a_tuple_of_tensors():
    a, b = tensor64([1.0]), tensor64([2.0, 3.0])
    parts = ops.make_tuple(a, b)
    np.testing.assert_array_equal(ops.concatenate(parts).numpy(), [1, 2, 3])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (2, r"\[getitem\] index 2 is out of range for axis 0 of size 2"),
        (-3, r"\[getitem\] index -3 is out of range for axis 0"),
        ((0, 3), r"\[getitem\] index 3 is out of range for axis 1 of size 3"),
        ((0, 0, 0), r"\[getitem\] 3 indices for 2 axes"),
        ((..., ...), r"\[getitem\] more than one \.\.\."),
        (1.0, r"\[getitem\] cannot index axis 0 with a float; use integers and slices"),
        ("a", r"\[getitem\] cannot index axis 0 with a str"),
        (slice(None, None, 0), r"\[getitem\].*axis 0.*zero"),
    ],
    ids=repr,
)
def test_messages_of_an_index(index, message):
    with pytest.raises(IndexingError, match=message):
        tensor64(np.ones((2, 3)))[index]


@pytest.mark.parametrize(
    ("shapes", "axis", "kind", "message"),
    [
        ([], 0, ShapeError, r"\[concatenate\] no Tensors given"),
        ([(2, 3), (2, 4)], 0, ShapeError, r"\[concatenate\] .*\(2, 3\), \(2, 4\).* axis 0"),
        ([(2, 3), (2,)], 0, ShapeError, r"\[concatenate\] .* axis 0"),
        ([(2, 3), (2, 3)], 2, IndexingError, r"\[concatenate\] axis 2"),
        ([()], 0, IndexingError, r"\[concatenate\] axis 0 is out of range for 0 axes"),
    ],
)
def test_messages_of_a_join(shapes, axis, kind, message):
    with pytest.raises(kind, match=message):
        ops.concatenate([tensor64(np.ones(shape)) for shape in shapes], axis)
