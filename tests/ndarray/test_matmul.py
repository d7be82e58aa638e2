"""Matrix products of NDArray: sizes, views, leading axes that broadcast, and what is refused."""

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.errors import BroadcastError, ShapeError


def same(got, a, b):
    want = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert got.shape == want.shape
    assert got.is_compact()
    assert np.all(np.abs(got.numpy() - want) <= 1e-6 * scale + 1e-30)


SIZES = [(8, 8, 16), (16, 8, 8), (64, 8, 128), (8, 16, 24), (1, 1, 1), (1, 300, 1), (300, 1, 300)]
SIZES += [(5, 6, 7), (65, 63, 66), (128, 128, 128), (100, 784, 10), (0, 3, 2), (2, 0, 3), (2, 3, 0)]


@pytest.mark.parametrize(("m", "n", "p"), SIZES)
def test_sizes_and_transposed_operands(device, m, n, p, rng):
    a = rng.standard_normal((m, n), dtype=np.float32)
    b = rng.standard_normal((n, p), dtype=np.float32)
    x, y = nd.array(a, device=device), nd.array(b, device=device)
    x_t, y_t = (nd.array(each.T, device=device).permute((1, 0)) for each in (a, b))
    same(x @ y, a, b)
    same(x_t @ y, a, b)
    same(x @ y_t, a, b)
    same(x_t @ y_t, a, b)


def test_unequal_sides_by_value(device):
    """Square matrices cannot show rows and columns of tiles mixed up."""
    a = nd.array(np.arange(128).reshape(8, 16), device=device)
    b = nd.array(np.arange(384).reshape(16, 24), device=device)
    c = (a @ b).numpy()
    assert c[0, 0] == 29760
    assert c[7, 23] == 396296
    assert c.astype(np.float64).sum() == 38923008


def test_empty_inner_axis_gives_zeros(device):
    for _ in range(5):
        nd.full((2, 3), 123.0, device=device)
        product = nd.empty((2, 0), device=device) @ nd.empty((0, 3), device=device)
        np.testing.assert_array_equal(product.numpy(), np.zeros((2, 3)))


VIEWS = {
    "sliced": (lambda a: a[..., 1:6, 2:8], lambda a: a[..., 1:6, 2:8]),
    "stepped": (lambda a: a[..., ::2, 1::2], lambda a: a[..., ::2, 1::2]),
    "flipped": (lambda a: a.flip((1, 2)), lambda a: np.flip(a, (1, 2))),
    "permuted": (lambda a: a.permute((1, 2, 0)), lambda a: a.transpose(1, 2, 0)),
    "batch permuted": (lambda a: a.permute((2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "one matrix": (lambda a: a[1:2], lambda a: a[1:2]),
    "stretched row": (
        lambda a: a[:, :1].broadcast_to((3, 9, 10)),
        lambda a: np.broadcast_to(a[:, :1], (3, 9, 10)),
    ),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views(device, view, rng):
    of_needle, of_numpy = VIEWS[view]
    a = rng.standard_normal((3, 9, 10), dtype=np.float32)
    seen, want = of_needle(nd.array(a, device=device)), of_numpy(a)
    b = rng.standard_normal((want.shape[-1], 4), dtype=np.float32)
    same(seen @ nd.array(b, device=device), want, b)
    c = rng.standard_normal((4, want.shape[-2]), dtype=np.float32)
    same(nd.array(c, device=device) @ seen, c, want)


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((3, 4, 5), (3, 5, 2)),
        ((3, 4, 5), (5, 2)),
        ((4, 5), (3, 5, 2)),
        ((1, 4, 5), (3, 5, 2)),
        ((3, 4, 5), (1, 5, 2)),
        ((2, 1, 4, 5), (3, 5, 2)),
        ((2, 3, 4, 5), (2, 3, 5, 2)),
        ((0, 4, 5), (5, 2)),
        ((0, 4, 5), (1, 5, 2)),
        ((7, 1, 5), (5, 1)),
        ((100, 3, 3), (100, 3, 3)),
    ],
    ids=str,
)
def test_leading_axes_broadcast(device, a_shape, b_shape, rng):
    a = rng.standard_normal(a_shape, dtype=np.float32)
    b = rng.standard_normal(b_shape, dtype=np.float32)
    same(nd.array(a, device=device) @ nd.array(b, device=device), a, b)


def test_numpy_on_either_side(device, rng):
    a, b = rng.standard_normal((3, 4), dtype=np.float32), rng.standard_normal((4, 2))
    same(nd.array(a, device=device) @ b, a, b.astype(np.float32))
    same(a @ nd.array(b, device=device), a, b.astype(np.float32))


def test_float64(device, rng):
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    x, y = (nd.array(each, dtype="float64", device=device) for each in (a, b))
    product = x @ y
    assert product.dtype == "float64"
    np.testing.assert_allclose(product.numpy(), a @ b, rtol=1e-13)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "error", "message"),
    [
        ((2, 3), (4, 5), ShapeError, r"\[matmul\] inner sizes differ: \(2, 3\) @ \(4, 5\)"),
        ((7, 2, 3), (7, 2, 3), ShapeError, r"inner sizes differ: \(7, 2, 3\) @ \(7, 2, 3\)"),
        ((3,), (3, 2), ShapeError, r"\[matmul\] operands need two axes or more: \(3,\) @ \(3, 2\)"),
        ((2, 3), (3,), ValueError, r"\[matmul\] operands need two axes.*reshape a vector first"),
        ((), (), ShapeError, r"\[matmul\] operands need two axes or more: \(\) @ \(\)"),
        ((2, 4, 3), (3, 3, 5), BroadcastError, r"\[matmul\] shapes \(2,\) and \(3,\) do not fit"),
    ],
    ids=str,
)
def test_shapes_that_are_refused(device, a_shape, b_shape, error, message):
    with pytest.raises(error, match=message):
        nd.full(a_shape, 1.0, device=device) @ nd.full(b_shape, 1.0, device=device)
