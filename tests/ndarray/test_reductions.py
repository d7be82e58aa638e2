"""sum, max and min: any axes of any view, keepdims, the shape of the result, and empty axes."""

import itertools

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.backend_ndarray import array_api
from needle.errors import IndexingError, ShapeError

NAMES = ["sum", "max", "min"]

AXES = [None, 0, 1, 2, -1, -3, (0,), (0, 2), (2, 0), (0, 1, 2), (-1, 0), [1, 2], {1}, np.int64(1)]


def same(got, want):
    """Equal in shape and, but for the rounding of a sum, in value."""
    assert got.dtype == "float32"
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)


def numpy_axis(axis):
    return tuple(axis) if isinstance(axis, list | set) else axis


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keepdims", [False, True], ids=["", "keepdims"])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axes(device, name, axis, keepdims, rng):
    a = rng.standard_normal((3, 4, 5), dtype=np.float32)
    got = getattr(nd.array(a, device=device), name)(axis=axis, keepdims=keepdims)
    same(got, getattr(a, name)(axis=numpy_axis(axis), keepdims=keepdims))
    got = getattr(array_api, name)(nd.array(a, device=device), axis, keepdims)
    same(got, getattr(a, name)(axis=numpy_axis(axis), keepdims=keepdims))


def test_axes_of_a_generator(device):
    """Read once."""
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    same(nd.array(a, device=device).sum(axis=(i for i in [1])), a.sum(axis=1))
    same(nd.array(a, device=device).max(axis=iter([0, 1])), a.max())


VIEWS = {
    "permuted": (lambda a: a.permute((2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "sliced": (lambda a: a[1:, ::2, 1:4], lambda a: a[1:, ::2, 1:4]),
    "flipped": (lambda a: a.flip((0, 2)), lambda a: np.flip(a, (0, 2))),
    "broadcast": (
        lambda a: a[:, :1].broadcast_to((3, 4, 5)),
        lambda a: np.broadcast_to(a[:, :1], (3, 4, 5)),
    ),
    "size 1": (lambda a: a[:, 1:2], lambda a: a[:, 1:2]),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", VIEWS)
def test_every_set_of_axes_of_a_view(device, name, view, rng):
    a = rng.standard_normal((3, 4, 5), dtype=np.float32)
    of_needle, of_numpy = VIEWS[view]
    seen, want = of_needle(nd.array(a, device=device)), of_numpy(a)
    for count in (1, 2, 3):
        for axes in itertools.combinations(range(3), count):
            same(getattr(seen, name)(axes), getattr(want, name)(axis=axes))


@pytest.mark.parametrize("shape", [(1000, 1000), (3, 70000), (70000, 3)], ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_large(device, shape, axis, rng):
    a = rng.random(shape, dtype=np.float32)
    x = nd.array(a, device=device)
    np.testing.assert_allclose(x.sum(axis).numpy(), a.astype(np.float64).sum(axis), rtol=1e-5)
    np.testing.assert_array_equal(x.max(axis).numpy(), a.max(axis))
    np.testing.assert_array_equal(x.min(axis).numpy(), a.min(axis))


@pytest.mark.parametrize("name", NAMES)
def test_full_reduction_has_no_axes(device, name):
    """The same shape on every device, and a number for Python."""
    x = nd.array([[1, 2], [3, 4]], device=device)
    full = getattr(x, name)()
    assert full.shape == ()
    assert full.numpy().shape == ()
    assert isinstance(full.numpy(), np.ndarray)
    assert float(full) == full.item() == {"sum": 10, "max": 4, "min": 1}[name]
    assert getattr(x, name)(keepdims=True).shape == (1, 1)
    assert getattr(x, name)(axis=(0, 1), keepdims=True).shape == (1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_array_without_axes(device, name):
    x = nd.array(3.0, device=device)
    result = getattr(x, name)()
    assert result.shape == ()
    assert result.item() == 3
    result.fill(5.0)  # a fresh buffer, not a view of x
    assert x.item() == 3


@pytest.mark.parametrize("name", NAMES)
def test_axis_of_size_1_is_copied(device, name):
    x = nd.array([[1, 2, 3]], device=device)
    result = getattr(x, name)(axis=0)
    result.fill(9.0)
    np.testing.assert_array_equal(x.numpy(), [[1, 2, 3]])


def test_empty_sums(device):
    x = nd.empty((0, 3), device=device)
    np.testing.assert_array_equal(x.sum(axis=0).numpy(), [0, 0, 0])
    assert x.sum(axis=1).shape == (0,)
    assert x.sum().item() == 0
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    assert nd.empty((2, 0, 3), device=device).sum(axis=(0, 1)).numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["max", "min"])
def test_no_maximum_of_an_empty_axis(device, name):
    x = nd.empty((0, 3), device=device)
    for axis, named in ((0, r"\(0,\)"), (None, r"\(0, 1\)")):
        message = rf"\[{name}\] shape \(0, 3\) is empty along {named}; a maximum or minimum needs"
        with pytest.raises(ShapeError, match=message):
            getattr(x, name)(axis=axis)
    assert getattr(x, name)(axis=1).shape == (0,)


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_is_the_extreme(device, name):
    a = np.float32([[1, np.nan, 3], [4, 5, -np.inf], [np.inf, 0, 1]])
    x = nd.array(a, device=device)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(getattr(x, name)(axis).numpy(), getattr(a, name)(axis))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("axis", "error", "message"),
    [
        (2, IndexingError, r"axis 2 is out of range for 2 axes"),
        (-3, IndexingError, r"axis -3 is out of range for 2 axes"),
        ((0, 0), ShapeError, r"an axis is repeated in \(0, 0\)"),
        ((1, -1), ShapeError, r"an axis is repeated in \(1, -1\)"),
        ((), ShapeError, r"no axes given; use axis=None for all axes"),
        ([], ValueError, r"no axes given"),
        (1.0, ShapeError, r"axis 1.0 is not an integer"),
    ],
    ids=str,
)
def test_axes_that_are_refused(device, name, axis, error, message):
    x = nd.full((2, 3), 1.0, device=device)
    with pytest.raises(error, match=rf"\[{name}\] {message}"):
        getattr(x, name)(axis=axis)


def test_float64(device, rng):
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    a = rng.standard_normal((30, 40))
    x = nd.array(a, dtype="float64", device=device)
    for name in NAMES:
        got = getattr(x, name)(axis=0)
        assert got.dtype == "float64"
        np.testing.assert_allclose(got.numpy(), getattr(a, name)(axis=0), rtol=1e-12, atol=1e-12)
