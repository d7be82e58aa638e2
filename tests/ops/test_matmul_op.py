"""matmul: values and gradients in float64 over batches and vectors, work not done, messages."""

import numpy as np
import pytest

from needle import ops
from needle.errors import BroadcastError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import MATMUL


@pytest.mark.parametrize("row", MATMUL, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", MATMUL, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "a_grad", "b_grad"),
    [((2, 3, 4), (4, 5), 5, 6), ((4, 5), (2, 3, 5, 6), 36, 4)],
)
def test_an_operand_without_leading_axes_sums_its_uses(a_shape, b_shape, a_grad, b_grad):
    a, b = tensor64(np.ones(a_shape)), tensor64(np.ones(b_shape))
    (a @ b).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full(a_shape, a_grad))
    np.testing.assert_array_equal(b.grad.numpy(), np.full(b_shape, b_grad))


def test_gradient_of_a_vector_is_an_outer_product():
    a, b = tensor64(np.arange(12.0).reshape(3, 4)), tensor64(np.arange(4.0))
    (a @ b).backward(constant64([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(a.grad.numpy(), np.outer([1, 10, 100], np.arange(4)))
    np.testing.assert_array_equal(b.grad.numpy(), a.numpy().T @ [1, 10, 100])


@pytest.mark.parametrize("needing", ["a", "b"])
def test_only_the_operand_that_needs_it_gets_a_gradient(needing, monkeypatch):
    """The product for the other operand is not even computed."""
    a = tensor64(np.ones((2, 3)), requires_grad=needing == "a")
    b = tensor64(np.ones((3, 4)), requires_grad=needing == "b")
    y = a @ b
    products = []
    compute = ops.MatMul.compute
    monkeypatch.setattr(
        ops.MatMul, "compute", lambda op, p, q: products.append(1) or compute(op, p, q)
    )
    y.backward()
    assert len(products) == 1
    assert (a.grad is not None) == (needing == "a")
    assert (b.grad is not None) == (needing == "b")


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "kind", "message"),
    [
        ((2, 3), (4, 5), ShapeError, r"\[matmul\] inner sizes differ: \(2, 3\) @ \(4, 5\)"),
        ((3,), (4,), ShapeError, r"\[matmul\] inner sizes differ: \(3,\) @ \(4,\)"),
        ((2, 3), (2,), ShapeError, r"\[matmul\] inner sizes differ: \(2, 3\) @ \(2,\)"),
        ((), (3,), ShapeError, r"\[matmul\] operands need an axis: \(\) @ \(3,\); use \*"),
        ((3,), (), ShapeError, r"\[matmul\] operands need an axis"),
        ((2, 2, 3), (3, 3, 4), BroadcastError, r"\[matmul\] shapes \(2,\) and \(3,\) do not fit"),
    ],
)
def test_messages(a_shape, b_shape, kind, message):
    with pytest.raises(kind, match=message):
        ops.matmul(tensor64(np.ones(a_shape)), tensor64(np.ones(b_shape)))
