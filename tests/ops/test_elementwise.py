"""Elementwise ops: values and gradients in float64, kinks, powers at zero, comparisons, errors."""

import math

import numpy as np
import pytest

from needle import ops
from needle.errors import BroadcastError, DtypeError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.op_table import ELEMENTWISE


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_values(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_gradients(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


def gradient_at(function, values, out_grad=None):
    """Return the gradient of `function` at `values`."""
    x = tensor64(values)
    y = function(x)
    y.backward(None if out_grad is None else constant64(out_grad))
    return x.grad.numpy()


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [(0, [0, 0]), (1, [1, 1]), (2, [0, 4]), (3, [0, 12]), (0.0, [0, 0]), (1.5, [0, 1.5 * 2**0.5])],
)
def test_power_scalar_at_zero(exponent, expected):
    gradient = gradient_at(lambda x: ops.power_scalar(x, exponent), [0.0, 2.0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def test_power_of_negative_numbers():
    gradient = gradient_at(lambda x: x**3, [-2.0, -0.5])
    np.testing.assert_allclose(gradient, [12, 0.75], rtol=1e-14)
    np.testing.assert_allclose((tensor64([-2.0]) ** 2).numpy(), [4.0])


def test_power_of_two_tensors_at_zero():
    base, exponent = tensor64([0.0, 0.0, 0.0, 2.0]), tensor64([0.0, 1.0, 2.0, 0.0])
    (base**exponent).backward()
    np.testing.assert_array_equal(base.grad.numpy(), [0, 1, 0, 0])
    np.testing.assert_array_equal(exponent.grad.numpy(), [0, 0, 0, math.log(2)])


def test_power_with_a_fixed_base_or_exponent():
    x = tensor64([1.5, 2.0])
    (x ** constant64([2.0, 3.0])).backward()
    np.testing.assert_allclose(x.grad.numpy(), [3, 12], rtol=1e-14)
    (constant64([-1.0, 2.0]) ** constant64([2.0, 3.0])).numpy()  # no logarithm of -1 is asked for
    y = tensor64([1.5, 2.0])
    (2.0**y).backward()
    np.testing.assert_allclose(y.grad.numpy(), 2 ** np.array([1.5, 2]) * math.log(2), rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (ops.relu, [-1.0, 0.0, 2.0], [0, 0, 1]),
        (ops.abs, [-3.0, 0.0, 2.0], [-1, 0, 1]),
        (lambda x: ops.clip(x, -1.0, 2.0), [-1.5, -1.0, 0.0, 2.0, 2.5], [0, 1, 1, 1, 0]),
        (lambda x: ops.clip(x, low=0.0), [-1.0, 0.0, 1.0], [0, 1, 1]),
        (lambda x: ops.clip(x, high=0.0), [-1.0, 0.0, 1.0], [1, 1, 0]),
    ],
    ids=["relu", "abs", "clip", "clip low", "clip high"],
)
def test_gradient_at_a_kink(function, values, expected):
    np.testing.assert_array_equal(gradient_at(function, values), expected)
    seed = np.arange(1.0, len(values) + 1)
    np.testing.assert_array_equal(gradient_at(function, values, seed), expected * seed)


@pytest.mark.parametrize("function", [ops.exp, ops.relu, ops.abs, ops.tanh, ops.sin, ops.negate])
def test_nan_stays_nan(function):
    assert np.isnan(function(constant64([math.nan, 1.0])).numpy()).tolist() == [True, False]


def test_saturated_functions_have_finite_gradients():
    for function in (ops.sigmoid, ops.tanh):
        gradient = gradient_at(function, [-800.0, 800.0])
        np.testing.assert_array_equal(gradient, [0, 0])
    np.testing.assert_array_equal(ops.sigmoid(constant64([-800.0, 800.0])).numpy(), [0, 1])


def test_where_does_not_let_the_other_part_through():
    """inf and NaN in what was not taken reach neither the value nor the gradient."""
    condition = constant64([1.0, 0.0])
    a, b = tensor64([1.0, math.nan]), tensor64([math.inf, 2.0])
    y = ops.where(condition, a, b)
    y.backward(constant64([math.inf, 5.0]))
    np.testing.assert_array_equal(y.numpy(), [1, 2])
    np.testing.assert_array_equal(a.grad.numpy(), [math.inf, 0])
    np.testing.assert_array_equal(b.grad.numpy(), [0, 5])


def test_where_takes_numbers_and_numpy_arrays():
    x = tensor64([1.0, 2.0, 3.0])
    y = ops.where(np.array([1, 0, 1]), x, -1.0)
    y.backward(constant64([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(y.numpy(), [1, -1, 3])
    np.testing.assert_array_equal(x.grad.numpy(), [5, 0, 7])
    chosen = ops.where(x, np.array([[9.0], [8.0]]), 0)
    assert chosen.shape == (2, 3) and chosen.dtype == "float64"
    np.testing.assert_array_equal(ops.where([0, 1], 2.0, 3.0).numpy(), [3, 2])


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(
    "other",
    [1.0, 1, np.float32(1), np.array([1.0, 2.0, 1.0, 0.0]), "tensor", "row", "0-d"],
    ids=repr,
)
def test_comparisons_give_0_and_1(name, other):
    values = np.array([math.nan, 1.0, 2.0, math.inf])
    others = {"tensor": np.array([1.0, 1, 3, math.nan]), "row": np.array([[1.0], [2]]), "0-d": 2.0}
    array = others[other] if isinstance(other, str) else np.asarray(other)
    operand = constant64(array) if isinstance(other, str) else other
    result = getattr(ops, name)(tensor64(values), operand)
    assert not result.requires_grad and result.op is None and result.dtype == "float64"
    np.testing.assert_array_equal(result.numpy(), COMPARISONS[name](values, array))


def test_comparison_of_a_single_number_is_an_array():
    result = ops.less(tensor64(1.0), 2.0)
    assert result.shape == () and result.item() == 1


@pytest.mark.parametrize("other", [None, "text", [1.0], 1j], ids=repr)
def test_comparison_refuses_other_types(other):
    for compare in (ops.equal, ops.less):
        with pytest.raises(DtypeError, match=rf"\[compare\].*{type(other).__name__}"):
            compare(tensor64([1.0]), other)


@pytest.mark.parametrize("op", ["add", "multiply", "divide", "power"])
def test_shapes_that_do_not_broadcast(op):
    with pytest.raises(BroadcastError, match=rf"\[{op}\].*\(4, 5\).*\(4, 6\)"):
        getattr(ops, op)(tensor64(np.ones((4, 5))), tensor64(np.ones((4, 6))))


def test_where_refuses_shapes_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"\[where\].*\(2,\).*\(3,\)"):
        ops.where(tensor64([1.0]), tensor64([1.0, 2.0]), tensor64([1.0, 2.0, 3.0]))
    with pytest.raises(ShapeError, match=r"\[where\].*\(4,\).*\(3,\)"):
        ops.where(tensor64(np.ones(4)), tensor64(np.ones(3)), 0.0)


def test_clip_refuses_bad_limits():
    with pytest.raises(ShapeError, match=r"\[clip\] give a low limit, a high one, or both"):
        ops.clip(tensor64([1.0]))
    with pytest.raises(ShapeError, match=r"\[clip\] the low limit 2 is above the high limit 1"):
        ops.clip(tensor64([1.0]), 2, 1)


@pytest.mark.parametrize("op", ["add_scalar", "mul_scalar", "divide_scalar", "power_scalar"])
def test_scalar_ops_take_what_is_a_number(op, rng):
    values = rng.uniform(0.5, 2, 3)
    wanted = getattr(ops, op)(constant64(values), scalar=3.0).numpy()
    for scalar in (3, np.float32(3), np.int64(3), np.array([3.0]), np.array(3)):
        result = getattr(ops, op)(constant64(values), scalar=scalar)
        assert type(result.numpy()) is np.ndarray and result.dtype == "float64"
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-15)


@pytest.mark.parametrize("op", ["add_scalar", "mul_scalar", "divide_scalar", "power_scalar"])
def test_scalar_ops_refuse_a_tensor(op):
    """A Tensor as the number would lose its gradient without a word."""
    with pytest.raises(DtypeError, match=r"\[scalar\] got a Tensor"):
        getattr(ops, op)(tensor64([1.0]), tensor64(2.0))
