"""TensorTuples: values and gradients in float64, unused parts, iteration, copies."""

import copy
import pickle

import numpy as np
import pytest

from needle import autograd, ops
from needle.autograd import TensorTuple
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import TUPLE


def live_values():
    """Return how many Tensors and TensorTuples are alive."""
    return autograd.TENSOR_COUNTER


@pytest.mark.parametrize("row", TUPLE, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", TUPLE, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


def test_an_unused_part_gets_zeros():
    x = tensor64([[1.0, 2.0], [3.0, 4.0]])
    parts = ops.fused_add_scalars(x * 3, 1.0, 2.0)
    parts[0].backward(constant64([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(x.grad.numpy(), [[3, 6], [9, 12]])
    parts[1].backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 2), 3.0))


def test_every_part_used_more_than_once(rng):
    def mixed(x):
        first, second = ops.fused_add_scalars(x * x, 1.0, 2.0)
        return first * second + first

    check_gradients(mixed, rng.standard_normal(3), rng=rng)


def test_a_tuple_of_tuples_items(rng):
    def chained(x, y):
        parts = ops.make_tuple(x * y, y)
        product = ops.TupleGetItem(0)(parts, fold_const=False)
        factor = ops.TupleGetItem(1)(parts, fold_const=False)
        return product * factor

    check_gradients(chained, rng.standard_normal(3), rng.standard_normal(3), rng=rng)


def test_taking_out_what_was_put_in_folds():
    a, b = tensor64([1.0]), tensor64([2.0])
    parts = ops.make_tuple(a, b)
    assert parts[0] is a and parts[-1] is b
    assert isinstance(ops.TupleGetItem(0)(parts, fold_const=False).op, ops.TupleGetItem)


def test_length_and_iteration():
    parts = ops.make_tuple(*(tensor64([float(i)]) for i in range(3)))
    assert len(parts) == parts.num_outputs == 3
    assert [part.item() for part in parts] == [0, 1, 2]
    assert [part.item() for part in parts.tuple()] == [0, 1, 2] and type(parts.tuple()) is tuple
    assert [part.item() for part in ops.fused_add_scalars(tensor64([1.0]), 1, 2)] == [2, 3]


@pytest.mark.parametrize("position", [2, -3])
def test_an_index_outside_the_tuple(position):
    parts = ops.make_tuple(tensor64([1.0]), tensor64([2.0]))
    with pytest.raises(IndexingError, match=rf"\[tuple_get_item\] index {position} .* 2 Tensors"):
        parts[position]


def test_tuples_add_by_part():
    a, b = tensor64([1.0]), tensor64([2.0])
    total = ops.make_tuple(a, b) + ops.make_tuple(b, b)
    assert isinstance(total, TensorTuple)
    assert [part.item() for part in total] == [3, 4]
    with pytest.raises(ShapeError, match=r"\[add\] tuples of 2 and 1 Tensors"):
        ops.make_tuple(a, b) + ops.make_tuple(a)
    with pytest.raises(TypeError):
        ops.make_tuple(a, b) + a


def test_detached_tuples_have_no_graph():
    parts = ops.fused_add_scalars(tensor64([1.0]), 1.0, 2.0)
    constant = parts.detach()
    assert parts.requires_grad and parts.op is not None
    assert not constant.requires_grad and constant.op is None
    assert [part.item() for part in constant] == [2, 3]


def test_a_tuple_of_constants_is_a_constant():
    parts = ops.make_tuple(constant64([1.0]), constant64([2.0]))
    assert not parts.requires_grad and parts.op is None and parts.inputs == ()
    assert parts[1].item() == 2 and not parts[1].requires_grad


def test_copies_are_counted_and_hold_the_values():
    parts = ops.fused_add_scalars(tensor64([1.0, 2.0]), 1.0, 2.0)
    before = live_values()
    copies = [copy.copy(parts), copy.deepcopy(parts), pickle.loads(pickle.dumps(parts))]
    for duplicate in copies:
        assert not duplicate.requires_grad
        np.testing.assert_array_equal(duplicate[1].numpy(), [3, 4])
    assert live_values() == before + 3
    del copies, duplicate
    assert live_values() == before


def test_repr_shows_the_parts():
    assert repr(ops.make_tuple(tensor64([1.0]), tensor64([2.0]))).startswith(
        "TensorTuple((Tensor([1.]"
    )
