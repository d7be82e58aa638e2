"""Operators and elementwise functions of NDArray: broadcasting, scalars, either side, dtype, NaN.

The kernels themselves are swept in tests/unit/test_kernels.py.
"""

import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.backend_ndarray import array_api
from needle.errors import BroadcastError, DeviceError, DtypeError

NAN, INF = float("nan"), float("inf")

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

# Method or function of needle, and numpy's.
BINARY = {
    "maximum": (array_api.maximum, np.maximum),
    "minimum": (array_api.minimum, np.minimum),
} | {name: (run, run) for name, run in OPERATORS.items()}

UNARY = {
    "neg": (operator.neg, np.negative),
    "abs": (operator.abs, np.abs),
    "array_api.abs": (array_api.abs, np.abs),
    "log": (array_api.log, np.log),
    "exp": (array_api.exp, np.exp),
    "tanh": (array_api.tanh, np.tanh),
    "sqrt": (array_api.sqrt, np.sqrt),
    "sin": (array_api.sin, np.sin),
    "cos": (array_api.cos, np.cos),
    "sigmoid": (array_api.sigmoid, lambda a: 1 / (1 + np.exp(-a))),
    "log, method": (nd.NDArray.log, np.log),
    "exp, method": (nd.NDArray.exp, np.exp),
    "tanh, method": (nd.NDArray.tanh, np.tanh),
}

SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((4, 1, 3), (2, 1)),
    ((), (2, 3)),
    ((1,), (5,)),
    ((), ()),
    ((0, 3), (0, 3)),
    ((0, 3), (3,)),
    ((0, 3), (1, 1)),
    ((1, 3), (0, 1)),
    ((7, 300), (7, 1)),
]


def positive(rng, shape):
    """Numbers for which every operator is finite, some of them equal to others."""
    return np.asarray(rng.integers(1, 9, shape) / 4, np.float32)


def check(got, want):
    assert got.dtype == "float32"
    assert got.shape == np.shape(want)
    assert got.is_compact()
    np.testing.assert_allclose(got.numpy(), np.float32(want), rtol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_broadcast(device, name, rng):
    of_needle, of_numpy = BINARY[name]
    for a_shape, b_shape in SHAPES:
        a, b = positive(rng, a_shape), positive(rng, b_shape)
        x, y = nd.array(a, device=device), nd.array(b, device=device)
        check(of_needle(x, y), of_numpy(a, b))
        np.testing.assert_array_equal(x.numpy(), a)
        np.testing.assert_array_equal(y.numpy(), b)


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(device, name, rng):
    of_needle, of_numpy = UNARY[name]
    for shape in ((), (1,), (0, 3), (2, 3), (7, 129)):
        a = positive(rng, shape)
        check(of_needle(nd.array(a, device=device)), of_numpy(a))


NUMBERS = [2, 0.5, True, Fraction(1, 4), np.float64(1.5), np.float32(0.25), np.int64(3)]
NUMBERS += [np.bool_(True), np.array(2.0), np.array(2)]


@pytest.mark.parametrize("name", OPERATORS)
def test_numbers_on_either_side(device, name, rng):
    """The result keeps the array's type, whatever number it meets."""
    run, a = OPERATORS[name], positive(rng, (2, 3))
    x = nd.array(a, device=device)
    for value in NUMBERS:
        number = np.float32(float(value))
        check(run(x, value), run(a, number))
        check(run(value, x), run(number, a))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_numpy_arrays_on_either_side(device, name, dtype, rng):
    run, a = OPERATORS[name], positive(rng, (2, 3))
    x = nd.array(a, device=device)
    for shape in ((2, 3), (3,), (1, 1), (4, 2, 3)):
        b = np.ceil(positive(rng, shape)).astype(dtype)
        check(run(x, b), run(a, b.astype(np.float32)))
        check(run(b, x), run(b.astype(np.float32), a))


def test_reflected_operators_by_value(device):
    x = nd.array([1, 2, 3], device=device)
    for got, want in (
        (1 - x, [0, -1, -2]),
        (6 / x, [6, 3, 2]),
        (2**x, [2, 4, 8]),
        (x - 1, [0, 1, 2]),
        (-x, [-1, -2, -3]),
        (2 + x, [3, 4, 5]),
        (2 * x, [2, 4, 6]),
        (x < 2, [1, 0, 0]),
        (x >= 2, [0, 1, 1]),
    ):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_augmented_assignment_makes_a_new_array(device):
    x = nd.array([1, 2, 3], device=device)
    y = x
    y += 1
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(y.numpy(), [2, 3, 4])


def test_comparisons_with_nan(device):
    a = nd.array([NAN, 1, 2], device=device)
    one = nd.full((3,), 1, device=device)
    for b in (1, 1.0, one):
        np.testing.assert_array_equal((a < b).numpy(), [0, 0, 0])
        np.testing.assert_array_equal((a <= b).numpy(), [0, 1, 0])
        np.testing.assert_array_equal((a > b).numpy(), [0, 0, 1])
        np.testing.assert_array_equal((a >= b).numpy(), [0, 1, 1])
        np.testing.assert_array_equal((a != b).numpy(), [1, 0, 1])
        np.testing.assert_array_equal((a == b).numpy(), [0, 1, 0])
    assert (a == a).numpy().tolist() == [0, 1, 1]
    assert (a != NAN).numpy().tolist() == [1, 1, 1]


def test_extremes_keep_nan(device):
    a, zero = nd.array([NAN, -1, 2], device=device), nd.full((3,), 0.0, device=device)
    for got in (a.maximum(0), a.maximum(zero), zero.maximum(a), nd.maximum(a, 0)):
        np.testing.assert_array_equal(got.numpy(), [NAN, 0, 2])
    for got in (a.minimum(0), a.minimum(zero), zero.minimum(a), array_api.minimum(a, 0)):
        np.testing.assert_array_equal(got.numpy(), [NAN, -1, 0])
    np.testing.assert_array_equal(zero.maximum(NAN).numpy(), [NAN] * 3)


def test_division_and_logarithm_at_their_edges(device):
    """Values of IEEE, and no warning."""
    a = nd.array([-1, 0, 1], device=device)
    np.testing.assert_array_equal((a / 0).numpy(), [-INF, NAN, INF])
    np.testing.assert_array_equal((a / a).numpy(), [1, NAN, 1])
    np.testing.assert_array_equal(a.log().numpy(), [NAN, -INF, 0])
    np.testing.assert_array_equal(array_api.sqrt(a).numpy(), [NAN, 0, 1])
    np.testing.assert_array_equal((a * INF).numpy(), [-INF, NAN, INF])
    np.testing.assert_array_equal((a**-1).numpy(), [-1, INF, 1])
    np.testing.assert_array_equal((nd.full((2,), 3e38, device=device) * 10).numpy(), [INF, INF])
    np.testing.assert_array_equal(nd.full((2,), 1e3, device=device).exp().numpy(), [INF, INF])
    np.testing.assert_array_equal(nd.full((2,), -1e3, device=device).exp().numpy(), [0, 0])


def test_maximum_takes_lists_as_numpy_does(device):
    a = nd.array([1, 5, 3], device=device)
    np.testing.assert_array_equal(a.maximum([4, 4, 4]).numpy(), [4, 5, 4])
    np.testing.assert_array_equal(nd.maximum(a, np.array([4, 4, 4])).numpy(), [4, 5, 4])


def test_where(device):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([[10], [20]])
    x, y = nd.array(a, device=device), nd.array(b, device=device)
    np.testing.assert_array_equal(array_api.where(x > 2, x, y).numpy(), np.where(a > 2, a, b))
    np.testing.assert_array_equal(array_api.where(x > 2, x, -1.0).numpy(), np.where(a > 2, a, -1))
    np.testing.assert_array_equal(array_api.where(x > 2, 0, b).numpy(), np.where(a > 2, 0, b))
    column = nd.array([[1], [0]], device=device)
    np.testing.assert_array_equal(
        array_api.where(column, x.flip(1), y).numpy(), [[2, 1, 0], [20, 20, 20]]
    )
    with pytest.raises(BroadcastError, match=r"\[where\] shapes \(2, 3\) and \(2,\) do not fit"):
        array_api.where(x, nd.array([1, 2], device=device), 0.0)


@pytest.mark.parametrize("name", BINARY)
def test_float64_stays_float64(device, name, rng):
    """On the device that carries it; scalars and numpy arrays take the array's type."""
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    of_needle, of_numpy = BINARY[name]
    a, b = rng.random((2, 2, 3)) + 1
    x = nd.array(a, dtype="float64", device=device)
    for other in (nd.array(b, dtype="float64", device=device), b, 0.1, np.float32(0.5)):
        want = of_numpy(a, other.numpy() if isinstance(other, nd.NDArray) else other)
        got = of_needle(x, other)
        assert got.dtype == "float64"
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


# --- what is refused ---


def test_mixed_dtypes_are_named(device):
    """No silent widening: the two types of one device do not mix."""
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    a = nd.full((2, 2), 1, device=device)
    b = nd.full((2, 2), 1, dtype="float64", device=device)
    for kernel, run in (
        ("add", lambda: a + b),
        ("maximum", lambda: a.maximum(b)),
        ("matmul", lambda: a @ b),
        ("where", lambda: array_api.where(a, b, 0.0)),
        ("setitem", lambda: a.__setitem__(0, b[0])),
    ):
        message = rf"\[{kernel}\] operands of float32 and float64; give both one dtype"
        with pytest.raises(DtypeError, match=message):
            run()


@pytest.mark.parametrize(
    ("name", "kernel"), [("+", "add"), ("-", "sub"), ("==", "eq"), ("**", "power")]
)
def test_shapes_that_do_not_fit(device, name, kernel):
    a, b = nd.full((2, 3), 1, device=device), nd.full((2,), 1, device=device)
    message = rf"\[{kernel}\] shapes \(2, 3\) and \(2,\) do not fit; sizes must be equal or 1"
    for other in (b, b.numpy()):
        with pytest.raises(BroadcastError, match=message):
            OPERATORS[name](a, other)


def test_mixed_devices_are_named(device):
    other = nd.cpu_numpy() if device != nd.cpu_numpy() else nd.BackendDevice("second", device.mod)
    a, b = nd.full((2, 3), 1, device=device), nd.full((2, 3), 1, device=other)
    both = rf"operands on {device.name}\(\) and {other.name}\(\); move one with \.to\(device\)"
    for kernel, run in (
        ("add", lambda: a + b),
        ("maximum", lambda: a.maximum(b)),
        ("lt", lambda: a < b),
        ("matmul", lambda: a @ b),
        ("where", lambda: array_api.where(a, b, 0.0)),
        ("where", lambda: array_api.where(a, 0.0, b)),
    ):
        with pytest.raises(DeviceError, match=rf"\[{kernel}\] {both}"):
            run()


@pytest.mark.parametrize(
    "other",
    ["text", None, [1, 2, 3], {"a": 1}, 1j, np.complex64(1j), np.str_("3"), Decimal(3)],
    ids=repr,
)
def test_operators_refuse_other_types(device, other):
    """A TypeError, never a number: not even where Python could make one of it."""
    x = nd.array([1, 2, 3], device=device)
    for name in ("+", "-", "*", "/", "**", "<", ">="):
        for operands in ((x, other), (other, x)):
            with pytest.raises(TypeError):
                OPERATORS[name](*operands)


@pytest.mark.parametrize(
    "other", [np.array("3"), np.zeros(3, complex), np.array([None] * 3)], ids=repr
)
def test_operators_refuse_numpy_arrays_of_other_types(device, other):
    x = nd.array([1, 2, 3], device=device)
    for operands in ((x, other), (other, x)):
        with pytest.raises(DtypeError, match=r"\[array\] values of type .* are not real numbers"):
            operator.add(*operands)


def test_equality_with_another_type_is_identity(device):
    """Python's own answer, so that arrays may stand in lists beside other things."""
    x = nd.array([1, 2, 3], device=device)
    assert (x == "text") is False
    assert (x != None) is True  # noqa: E711


@pytest.mark.parametrize("other", ["text", None, {"a": 1}], ids=repr)
def test_functions_refuse_other_types(device, other):
    x = nd.array([1, 2, 3], device=device)
    for kernel, run in (
        ("maximum", lambda: x.maximum(other)),
        ("minimum", lambda: array_api.minimum(x, other)),
        ("where", lambda: array_api.where(x, other, 0.0)),
        ("matmul", lambda: x @ other),
    ):
        message = rf"\[{kernel}\] an operand is a {type(other).__name__}; use an NDArray"
        with pytest.raises(DtypeError, match=message):
            run()


@pytest.mark.parametrize("run", [operator.mod, operator.floordiv, operator.and_])
def test_operators_that_do_not_exist(device, run):
    x = nd.array([1, 2, 3], device=device)
    for operands in ((x, 2), (2, x), (x, x)):
        with pytest.raises(TypeError, match="unsupported operand"):
            run(*operands)


def test_an_array_is_not_hashable(device):
    with pytest.raises(TypeError, match="unhashable"):
        hash(nd.array([1], device=device))
