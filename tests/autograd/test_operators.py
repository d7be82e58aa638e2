"""Operators: numbers and numpy arrays on either side, the nodes they make, types, refusals."""

from fractions import Fraction

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor, find_topo_sort
from needle.backend_selection import BACKEND, cpu, cpu_numpy
from needle.errors import BroadcastError, DeviceError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64

OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}

NUMBERS = [3, 0.5, True, np.float64(1.5), np.float32(1.5), np.int64(2), np.uint8(3), Fraction(3, 2)]
ARRAYS = [
    np.array([1.0, 2.0, 3.0]),
    np.array([1, 2, 3]),
    np.array([1, 2, 3], dtype=np.uint8),
    np.array([True, True, True]),
    np.array(2.0),
    np.array([[1.0], [2.0]]),
    np.array([3.0, 2.0, 1.0], dtype=np.float32)[::-1],
]


def shown(value):
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}".replace(" ", "")
    return f"{type(value).__name__}({value})"


@pytest.mark.parametrize("other", NUMBERS + ARRAYS, ids=shown)
@pytest.mark.parametrize("operator", OPERATORS)
def test_numbers_and_arrays_on_the_right(operator, other, rng):
    apply = OPERATORS[operator]
    number = np.asarray(other).astype(np.float64)
    values = rng.uniform(0.5, 2, 3)
    check_values(lambda x: apply(x, other), lambda a: apply(a, number), values)
    check_gradients(lambda x: apply(x, other), values, rng=rng)


@pytest.mark.parametrize("other", NUMBERS + ARRAYS, ids=shown)
@pytest.mark.parametrize("operator", OPERATORS)
def test_numbers_and_arrays_on_the_left(operator, other, rng):
    apply = OPERATORS[operator]
    number = np.asarray(other).astype(np.float64)
    values = rng.uniform(0.5, 2, 3)
    check_values(lambda x: apply(other, x), lambda a: apply(number, a), values)
    check_gradients(lambda x: apply(other, x), values, rng=rng)


@pytest.mark.parametrize(
    ("call", "value", "gradient"),
    [
        (lambda x: 1 - x, [0, -1, -2], [-1, -1, -1]),
        (lambda x: 6 / x, [6, 3, 2], [-6, -1.5, -2 / 3]),
        (lambda x: 2**x, [2, 4, 8], np.log(2) * np.array([2, 4, 8])),
        (lambda x: x - 1, [0, 1, 2], [1, 1, 1]),
        (lambda x: -x, [-1, -2, -3], [-1, -1, -1]),
        (lambda x: abs(-x), [1, 2, 3], [1, 1, 1]),
    ],
)
def test_reflected_operators(call, value, gradient):
    x = tensor64([1.0, 2.0, 3.0])
    y = call(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), value, rtol=1e-15)
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-15)


def test_matrix_product_with_numpy_on_either_side(rng):
    left, right = rng.standard_normal((2, 3)), rng.standard_normal((3, 2))
    check_values(lambda x: x @ right, lambda a: a @ right, left)
    check_values(lambda x: left @ x, lambda a: left @ a, right)
    check_gradients(lambda x: x @ right, left, rng=rng)
    check_gradients(lambda x: left @ x, right, rng=rng)
    check_gradients(lambda x: right[:, 0] @ x, right, rng=rng)


def kinds(tensor):
    """Return the names of the ops of a graph in topological order, leaves left out."""
    return [type(node.op).__name__ for node in find_topo_sort([tensor]) if node.op is not None]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda a, b: a - b, ["Negate", "EWiseAdd"]),
        (lambda a, b: a - 3, ["AddScalar"]),
        (lambda a, b: a + 3, ["AddScalar"]),
        (lambda a, b: 3 + a, ["AddScalar"]),
        (lambda a, b: a + b, ["EWiseAdd"]),
        (lambda a, b: a * 3, ["MulScalar"]),
        (lambda a, b: 3 * a, ["MulScalar"]),
        (lambda a, b: a * b, ["EWiseMul"]),
        (lambda a, b: a / 3, ["DivScalar"]),
        (lambda a, b: a / b, ["EWiseDiv"]),
        (lambda a, b: a**3, ["PowerScalar"]),
        (lambda a, b: a**b, ["EWisePow"]),
        (lambda a, b: a @ b, ["MatMul"]),
        (lambda a, b: -a, ["Negate"]),
        (lambda a, b: a.sum(), ["Summation"]),
    ],
)
def test_the_nodes_that_an_operator_makes(call, expected):
    a, b = tensor64(np.ones((2, 2))), tensor64(np.ones((2, 2)))
    assert kinds(call(a, b)) == expected


def test_subtracting_a_number_adds_its_negative():
    assert (tensor64([1.0]) - 3).op.scalar == -3
    assert (tensor64([1.0]) - np.uint8(3)).op.scalar == -3


def test_numpy_scalars_become_python_numbers():
    x = tensor64([1.0])
    for result in (x * np.float64(2), x + np.float32(2), x / np.int64(2), np.float64(2) * x):
        assert type(result.op.scalar) in (float, int)


@pytest.mark.parametrize("number", [np.float64(0.5), np.array(0.5), np.array([0.5]), 0.5])
def test_float64_does_not_leak_into_float32(number):
    x = Tensor(np.full((2, 3), 0.25, dtype=np.float32))
    results = [OPERATORS[o](x, number) for o in OPERATORS]
    results += [OPERATORS[o](number, x) for o in OPERATORS]
    results += [ops.clip(x, number, number), ops.where(x, number, x), x.sum() * number]
    results += [ops.add_scalar(x, number), x.mean() - number, ops.less(x, number), x[0, 0] / number]
    for result in results:
        assert result.numpy().dtype == np.float32
        if result.requires_grad:
            x.grad = None
            result.backward()
            assert x.grad.numpy().dtype == np.float32


def test_reductions_and_losses_stay_float32():
    x = Tensor(np.full((2, 3), 0.25, dtype=np.float32))
    for y in (
        x.sum(),
        x.mean(),
        x.max(),
        ops.logsumexp(x),
        ops.softmax(x).sum(),
        ops.sigmoid(x[0, 0]),
        ops.sqrt(x.sum()) * 0.5 + 1,
        (x**2).sum() / 3,
        2 ** x.sum(),
    ):
        assert type(y.numpy()) is np.ndarray and y.numpy().dtype == np.float32
        y.backward()
        assert x.grad.numpy().dtype == np.float32


@pytest.mark.parametrize("operator", [*OPERATORS, "@"])
@pytest.mark.parametrize("other", [None, "text", 1j, print, {}, np.bool_(True)], ids=shown)
def test_an_operand_of_another_type_is_refused(operator, other):
    apply = {**OPERATORS, "@": lambda a, b: a @ b}[operator]
    x = tensor64([1.0, 2.0])
    for left, right in ((x, other), (other, x)):
        with pytest.raises(TypeError):
            apply(left, right)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_order_gives_0_and_1(operator):
    x = tensor64([1.0, 2.0, 3.0])
    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }[operator]
    for other in (2, 2.0, np.float64(2), np.array([2.0, 2, 2]), constant64([2.0])):
        array = other.numpy() if isinstance(other, Tensor) else other
        result = compare(x, other)
        assert not result.requires_grad and result.dtype == "float64"
        np.testing.assert_array_equal(result.numpy(), compare(x.numpy(), array))
        np.testing.assert_array_equal(compare(other, x).numpy(), compare(array, x.numpy()))
    with pytest.raises(TypeError):
        compare(x, "text")


def test_equality_is_identity():
    x, y = tensor64([1.0]), tensor64([1.0])
    assert x == x and x != y  # no comparison of elements
    assert x in [y, x] and {x: 1, y: 2}[y] == 2 and len({x, y, x}) == 2
    assert (x == np.ones(1)) is False and (np.float64(1) == x) is False


def test_shapes_broadcast_and_gradients_sum_back():
    x, row = tensor64(np.ones((2, 3))), tensor64([1.0, 2.0, 3.0])
    (x * row).backward(constant64([[1.0, 2, 3], [4, 5, 6]]))
    np.testing.assert_array_equal(row.grad.numpy(), [5, 7, 9])
    np.testing.assert_array_equal(x.grad.numpy(), [[1, 4, 9], [4, 10, 18]])
    with pytest.raises(BroadcastError, match=r"\[add\] shapes \(2, 3\) and \(2,\) do not fit"):
        x + tensor64(np.ones(2))
    with pytest.raises(BroadcastError, match=r"\[multiply\] shapes \(2, 3\) and \(4,\)"):
        x * np.ones(4)


@pytest.mark.skipif(BACKEND == "np", reason="there is one device")
@pytest.mark.skipif(BACKEND == "nd" and not cpu().enabled(), reason="needs two devices")
def test_operands_on_two_devices_are_refused():
    here, there = Tensor(np.ones((2, 2)), device=cpu()), Tensor(np.ones((2, 2)), device=cpu_numpy())
    applied = {**OPERATORS, "@": lambda a, b: a @ b, "<": lambda a, b: a < b}
    applied["where"] = lambda a, b: ops.where(a, b, b)
    for apply in applied.values():
        for left, right in ((here, there), (there, here)):
            names = (
                rf"{left.device.name}\(\) and {right.device.name}\(\); move one with .to\(device\)"
            )
            with pytest.raises(DeviceError, match=names):
                apply(left, right)
