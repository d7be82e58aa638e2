"""Stack and split: values, gradients by TensorTuples, what is refused."""

import re

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor, TensorTuple
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import CONV

ROWS = [row for row in CONV if row.op in ("stack", "split")]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda parts: ops.make_tuple(*parts)])
def test_any_collection_stacks(device, kind):
    arrays = [np.full((2,), float(i)) for i in range(3)]
    parts = [Tensor(a, device=device, dtype="float32") for a in arrays]
    np.testing.assert_array_equal(ops.stack(kind(parts), 1).numpy(), np.stack(arrays, 1))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_split_undoes_stack(device, rng, axis):
    arrays = [rng.standard_normal((2, 3)).astype("float32") for _ in range(4)]
    parts = ops.split(
        ops.stack([Tensor(a, device=device, dtype="float32") for a in arrays], axis), axis
    )
    assert isinstance(parts, TensorTuple) and len(parts) == 4
    for part, a in zip(parts, arrays, strict=True):
        assert part.device == device and part.shape == (2, 3)
        np.testing.assert_array_equal(part.numpy(), a)


def test_the_gradient_of_stack_is_one_tuple():
    a, b = tensor64([1.0, 2.0]), tensor64([3.0, 4.0])
    node = ops.stack([a, b], axis=1)
    out_grad = constant64([[1.0, 2.0], [3.0, 4.0]])
    grad = node.op.gradient(out_grad, node)
    assert isinstance(grad, TensorTuple) and len(node.op.gradient_as_tuple(out_grad, node)) == 1
    assert [part.numpy().tolist() for part in grad] == [[1, 3], [2, 4]]


def test_one_tensor_twice_gets_both_gradients():
    x = tensor64([1.0, 2.0])
    ops.stack([x, x], 0).backward(constant64([[1.0, 2.0], [10.0, 20.0]]))
    np.testing.assert_array_equal(x.grad.numpy(), [11, 22])
    ops.stack([x, x], 1).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])


def test_parts_that_are_not_used_get_zeros():
    x = tensor64([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    parts = ops.split(x, 0)
    parts[0].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[1, 1, 1], [0, 0, 0]])
    (parts[1] * parts[1] * parts[0]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[16, 25, 36], [8, 20, 36]])


def test_split_into_a_recurrence_and_back(rng):
    """What a recurrent layer does with a sequence."""

    def running_product(x):
        state, states = None, []
        for step in ops.split(x, 0):
            state = step if state is None else ops.tanh(state * step)
            states.append(state)
        return ops.stack(states, 0)

    check_gradients(running_product, rng.standard_normal((4, 2, 3)), rng=rng)


def test_constants_stay_constants():
    parts = ops.split(constant64([[1.0], [2.0]]), 0)
    assert not parts.requires_grad and not parts[1].requires_grad
    assert not ops.stack(parts, 0).requires_grad


@pytest.mark.parametrize(
    "shapes, axis, error, message",
    [
        ([], 0, ShapeError, "[stack] no Tensors given"),
        ([(2, 3), (3, 2)], 0, ShapeError, "[stack] shapes [(2, 3), (3, 2)] differ"),
        ([(2,), (2, 1)], 0, ShapeError, "[stack] shapes [(2,), (2, 1)] differ"),
        ([(2,), (2,)], 2, IndexingError, "[stack] axis 2 is out of range for 2 axes"),
        ([(2,), (2,)], -3, IndexingError, "[stack] axis -3 is out of range for 2 axes"),
    ],
)
def test_what_stack_refuses(shapes, axis, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ops.stack([tensor64(np.ones(shape)) for shape in shapes], axis)


@pytest.mark.parametrize("axis", [2, -3])
def test_what_split_refuses(axis):
    with pytest.raises(IndexingError, match=rf"\[split\] axis {axis} is out of range for 2 axes"):
        ops.split(tensor64(np.ones((2, 3))), axis)
