"""NDArray on the course's kernels alone agrees with NDArray on the strided ones: the form that a
student's kernels serve, and the full form.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from needle.backend_ndarray import BackendDevice, array, full, interface
from needle.errors import MissingKernelError

OPERATORS = ["add", "sub", "mul", "truediv", "eq", "ne", "lt", "le", "gt", "ge"]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5], np.float32)

# Views of an array (4, 6, 2), each of shape (2, 3, 2) or broadcastable to it.
VIEWS = {
    "sliced": lambda a: a[0:2, 0:6:2],
    "flipped": lambda a: a[2:0:-1, 5:2:-1, ::-1],
    "permuted": lambda a: a[0:2, 0:3].permute((2, 1, 0)),
    "stretched": lambda a: a[1, 2, 0].broadcast_to((2, 3, 2)),
    "offset": lambda a: a[2:4, 3:6],
    "compact": lambda a: a[0:2, 0:3].compact(),
    "of lower rank": lambda a: a[0, 0].compact().reshape((2,)),
}


@pytest.fixture
def stripped(device):
    """The device, over a module that has only the course's kernels."""
    names = [*interface.COURSE_KERNELS, "Array", "__tile_size__"]
    kept = {name: getattr(device.mod, name) for name in names if hasattr(device.mod, name)}
    return BackendDevice(device.name, SimpleNamespace(**kept), dtypes=device.dtypes)


def agree(device, stripped, function, *values, rtol=1e-5):
    """Run a function of arrays on both devices and compare the results."""
    want, got = (
        function(*(array(value, device=on) for value in values)).numpy()
        for on in (device, stripped)
    )
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-6)


def test_stripped_module_has_no_strided_kernel(stripped):
    assert not hasattr(stripped.mod, "copy")
    assert hasattr(stripped, "copy")
    with pytest.raises(MissingKernelError, match="sin"):
        stripped.sin(None, None)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_on_views(device, stripped, name, view, rng):
    a, b = rng.integers(-3, 4, (2, 4, 6, 2)).astype(np.float32)

    def function(a, b):
        left, right = VIEWS[view](a), VIEWS["offset"](b)
        return getattr(left, f"__{name}__")(right)

    agree(device, stripped, function, a, b)
    agree(device, stripped, lambda a: getattr(VIEWS[view](a), f"__{name}__")(2.0), a)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_on_special_numbers(device, stripped, name):
    """A comparison with NaN is false, though some are made of others."""
    rows, columns = np.meshgrid(SPECIAL, SPECIAL)
    agree(device, stripped, lambda a, b: getattr(a, f"__{name}__")(b), rows, columns)
    for value in SPECIAL:
        agree(device, stripped, lambda a, v=value: getattr(a, f"__{name}__")(float(v)), SPECIAL)


def test_functions(device, stripped, rng):
    a, b = rng.random((2, 5, 7), dtype=np.float32) + 0.5
    for function in (
        lambda a, b: a.maximum(b),
        lambda a, _: a.maximum(0.7),
        lambda a, _: a**1.5,
        lambda a, _: -a,
        lambda a, _: a.log() + a.exp() + a.tanh(),
        lambda a, _: 2.0 - a.permute((1, 0)),
    ):
        agree(device, stripped, function, a, b)


@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2), (0, 1, 2)])
def test_reductions(device, stripped, name, axis, rng):
    a = rng.standard_normal((4, 6, 2), dtype=np.float32)
    for view in ("sliced", "flipped", "permuted", "stretched", "compact"):
        agree(device, stripped, lambda a, v=view: getattr(VIEWS[v](a), name)(axis), a)
    agree(device, stripped, lambda a: getattr(a, name)(axis, keepdims=True), a)


def test_sum_over_nothing(device, stripped):
    agree(device, stripped, lambda a: a.sum(1), np.ones((3, 0), np.float32))


PRODUCTS = {
    "odd": ((3, 5), (5, 7)),
    "tiles": ((32, 16), (16, 48)),
    "batch": ((2, 3, 5, 4), (2, 3, 4, 6)),
    "one b for all": ((2, 3, 5, 4), (4, 6)),
    "one a for all": ((5, 4), (3, 4, 6)),
    "batch of tiles": ((2, 16, 32), (2, 32, 16)),
    "nothing inside": ((3, 0), (0, 2)),
    "no batch": ((0, 3, 2), (0, 2, 4)),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(device, stripped, case, rng):
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in PRODUCTS[case])
    agree(device, stripped, lambda a, b: a @ b, a, b, rtol=1e-4)
    if a.ndim == b.ndim:  # the transposed ones, as views
        order = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
        agree(device, stripped, lambda a, b: b.permute(order) @ a.permute(order), a, b, rtol=1e-4)


def test_tiled_product_is_used_where_tiles_fit(stripped, rng):
    if not hasattr(stripped, "matmul_tiled"):
        pytest.skip(f"{stripped} has no matmul_tiled, which is optional")
    tile, calls = stripped.__tile_size__, []
    tiled = stripped.mod.matmul_tiled
    stripped.mod.matmul_tiled = lambda *arguments: calls.append(arguments[3:]) or tiled(*arguments)
    a = array(rng.standard_normal((tile, 2 * tile), dtype=np.float32), device=stripped)
    b = array(rng.standard_normal((2 * tile, tile + 1), dtype=np.float32), device=stripped)
    np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-4, atol=1e-5)
    assert calls == []
    np.testing.assert_allclose(
        (a @ b[:, :tile]).numpy(), a.numpy() @ b.numpy()[:, :tile], rtol=1e-4, atol=1e-5
    )
    assert calls == [(tile, 2 * tile, tile)]


@pytest.mark.parametrize("view", ["sliced", "flipped", "offset"])
def test_writing(device, stripped, view, rng):
    a = rng.standard_normal((4, 6, 2), dtype=np.float32)

    def function(a):
        target = VIEWS[view](a)
        target[...] = 7.0
        target[0, 1:3] = full((2, 2), 3.0, device=a.device)
        a[0:2] = a[1:3]
        return a

    agree(device, stripped, function, a)


def test_float64_stays_float64(device, stripped, rng):
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    a = array(rng.standard_normal((3, 3)), dtype="float64", device=stripped)
    for result in (a + a.permute((1, 0)), a * 2, a.sum(0), a @ a, a[1:].compact(), a > 0):
        assert result.dtype == "float64"
