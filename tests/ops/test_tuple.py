"""TensorTuples: values and gradients in float64, unused parts, iteration, copies."""

import copy
import pickle

import numpy as np
import pytest

from needle import autograd, engine, ops
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


@pytest.mark.parametrize("used", [0, 1, 29, 30])
def test_parts_cost_one_array_of_zeros_each_at_most(used, monkeypatch):
    """TupleGetItem's own gradient makes zeros for all other parts: 30 parts would make 870."""
    x = tensor64(np.arange(60.0).reshape(30, 2))
    total = tensor64([0.0, 0.0])
    for part in list(ops.split(x, 0))[:used]:
        total = total + part * part
    made = []
    full_like = engine.array_api.full_like

    def counted(a, fill_value, shape=None):
        if shape is None:  # the joint gradient has a shape of its own
            made.append(a)
        return full_like(a, fill_value, shape)

    monkeypatch.setattr(engine.array_api, "full_like", counted)
    total.backward(constant64([1.0, 1.0]))
    assert len(made) == (30 - used if used else 0)
    monkeypatch.undo()
    expected = 2 * x.numpy()
    expected[used:] = 0
    if used:
        np.testing.assert_array_equal(x.grad.numpy(), expected)
    else:
        assert x.grad is None


def test_a_tuple_used_whole_and_in_parts(rng):
    def both(x):
        parts = ops.split(x, 0)
        return ops.stack(parts, 1).sum() * parts[1] + parts[1] * parts[0]

    check_gradients(both, rng.standard_normal((3, 2)), rng=rng)


def test_the_plain_algorithm_agrees_on_tuples(rng):
    values, weights = rng.standard_normal((3, 2)), constant64(rng.standard_normal(2))

    def graph():
        x = tensor64(values)
        first, second, _ = ops.split(x, 0)
        return x, first * second * first

    x, y = graph()
    autograd.compute_gradient_of_variables(y, weights)
    again, y = graph()
    y.backward(weights)
    np.testing.assert_allclose(again.grad.numpy(), x.grad.numpy(), rtol=1e-12)


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
