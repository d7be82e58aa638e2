"""Writing through an index: what lands where, overlap, and what is refused."""

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.errors import DeviceError, DtypeError, ShapeError

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)

# An index that numpy and needle read alike: no bare integers.
INDICES = {
    "all": (slice(None), slice(None)),
    "row": (slice(1, 2),),
    "column": (slice(None), slice(-1, None)),
    "negative start": (slice(-2, None), slice(-3, -1)),
    "steps": (slice(None, None, 2), slice(1, None, 2)),
    "reversed": (slice(None, None, -1), slice(3, 0, -2)),
    "ellipsis": (..., slice(1, 3)),
    "nothing": (slice(2, 1),),
}


NUMBERS = [7.5, -0.0, float("nan"), float("inf"), 3, True, np.float64(0.1), np.int8(2), np.array(4)]


@pytest.mark.parametrize("index", INDICES)
def test_number(device, index):
    for value in NUMBERS:
        a, want = nd.array(ROWS, device=device), ROWS.copy()
        a[INDICES[index]] = value
        want[INDICES[index]] = value
        np.testing.assert_array_equal(a.numpy(), want)
        assert a.dtype == "float32"


@pytest.mark.parametrize("index", INDICES)
def test_array_of_the_same_shape(device, index, rng):
    a, want = nd.array(ROWS, device=device), ROWS.copy()
    values = rng.standard_normal(want[INDICES[index]].shape, dtype=np.float32)
    a[INDICES[index]] = nd.array(values, device=device)
    want[INDICES[index]] = values
    np.testing.assert_array_equal(a.numpy(), want)


@pytest.mark.parametrize(
    "shape", [(3, 4), (1, 4), (4,), (3, 1), (1, 1), (1,), (), (1, 3, 4)], ids=str
)
def test_array_that_broadcasts(device, shape, rng):
    a, want = nd.array(ROWS, device=device), ROWS.copy()
    values = rng.standard_normal(shape, dtype=np.float32)
    a[:, :] = nd.array(values, device=device)
    want[:, :] = values
    np.testing.assert_array_equal(a.numpy(), want)


@pytest.mark.parametrize(("index", "shape"), [((0, slice(None)), (4,)), ((slice(None), 1), (3,))])
def test_axes_of_size_1_may_be_missing(device, index, shape, rng):
    """An integer keeps its axis here, so a row is (1, 4); a vector fits it all the same."""
    a, want = nd.array(ROWS, device=device), ROWS.copy()
    values = rng.standard_normal(shape, dtype=np.float32)
    a[index] = nd.array(values, device=device)
    want[index] = values
    np.testing.assert_array_equal(a.numpy(), want)


def test_integer_writes_one_element(device):
    a, want = nd.array(ROWS, device=device), ROWS.copy()
    a[-1, -1] = 5
    a[0, 2] = nd.array([[6.0]], device=device)
    want[-1, -1], want[0, 2] = 5, 6
    np.testing.assert_array_equal(a.numpy(), want)


@pytest.mark.parametrize(
    "source",
    [
        lambda values: values.permute((1, 0)),
        lambda values: values[:, 0:1].broadcast_to((4, 3)).permute((1, 0)),
        lambda values: values.flip((0, 1)).permute((1, 0)),
        lambda values: values.numpy().T,
        lambda values: values.numpy().T.astype(np.float64),
        lambda values: values.numpy().T.tolist(),
    ],
    ids=["permuted", "broadcast", "flipped", "numpy", "float64", "list"],
)
def test_source_of_any_kind(device, source):
    values = nd.array(ROWS.reshape(4, 3) + 50, device=device)
    a, chosen = nd.full((3, 6), 1.0, device=device), source(values)
    a[:, 1:5] = chosen
    want = np.ones((3, 6), np.float32)
    want[:, 1:5] = np.asarray(chosen)
    np.testing.assert_array_equal(a.numpy(), want)
    np.testing.assert_array_equal(values.numpy(), ROWS.reshape(4, 3) + 50)


def test_fill(device):
    a = nd.array(ROWS, device=device)
    a[1:].fill(2.5)
    np.testing.assert_array_equal(a.numpy(), [[0, 1, 2, 3], [2.5] * 4, [2.5] * 4])
    assert a.fill(-1) is None
    np.testing.assert_array_equal(a.numpy(), -np.ones((3, 4)))


# --- overlap ---


def test_overlapping_vector(device):
    v = nd.array(np.arange(6), device=device)
    v[2:] = v[:-2]
    np.testing.assert_array_equal(v.numpy(), [0, 1, 0, 1, 2, 3])
    v[:-2] = v[2:]
    np.testing.assert_array_equal(v.numpy(), [0, 1, 2, 3, 2, 3])


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
        ((slice(None), slice(None, -1)), (slice(None), slice(1, None))),
        ((slice(1, None), slice(None)), (slice(None, -1), slice(None))),
        ((slice(None, -1), slice(None)), (slice(1, None), slice(None))),
        ((slice(None), slice(None)), (slice(None, None, -1), slice(None))),
        ((slice(None), slice(None)), (slice(None), slice(None, None, -1))),
        ((slice(None), slice(None)), (slice(1, 2), slice(None))),
        ((slice(None), slice(None)), (slice(None), slice(None))),
    ],
)
@pytest.mark.parametrize("n", [3, 130])
def test_overlapping_matrix(device, target, source, n):
    want = np.arange(n * n, dtype=np.float32).reshape(n, n)
    m = nd.array(want, device=device)
    m[target] = m[source]
    want[target] = want[source].copy()
    np.testing.assert_array_equal(m.numpy(), want)


def test_overlapping_matrix_values(device):
    m = nd.array(np.arange(9).reshape(3, 3), device=device)
    m[:, 1:] = m[:, :-1]
    np.testing.assert_array_equal(m.numpy(), [[0, 0, 1], [3, 3, 4], [6, 6, 7]])
    m = nd.array(np.arange(9).reshape(3, 3), device=device)
    m[1:, :] = m[:-1, :]
    np.testing.assert_array_equal(m.numpy(), [[0, 1, 2], [0, 1, 2], [3, 4, 5]])


def test_transposing_in_place(device):
    want = np.arange(40000, dtype=np.float32).reshape(200, 200)
    m = nd.array(want, device=device)
    m[:, :] = m.permute((1, 0))
    np.testing.assert_array_equal(m.numpy(), want.T)


def test_flipping_in_place_through_a_reshaped_view(device):
    """The source is another NDArray over the same buffer, compact as a whole."""
    v = nd.array(np.arange(6), device=device)
    v.flip(0)[...] = v.reshape((6,))
    np.testing.assert_array_equal(v.numpy(), [5, 4, 3, 2, 1, 0])


# --- what is refused ---


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        ((slice(None), slice(None)), (4, 3)),  # the right number of elements, another shape
        ((slice(None), slice(None)), (12,)),
        ((slice(None), slice(None)), (2, 4)),
        ((slice(0, 1), slice(None)), (3,)),
        ((slice(0, 1), slice(None)), (2, 4)),
        ((slice(0, 2), slice(None)), (2, 2, 4)),
        ((slice(0, 0),), (3, 4)),
    ],
)
def test_other_shapes_are_refused(device, index, shape):
    a = nd.array(ROWS, device=device)
    values = np.zeros(shape, np.float32)
    message = r"\[setitem\] \(.*\) cannot become \(.*\); each size must be 1"
    for source in (nd.array(values, device=device), values):
        for error in (ShapeError, ValueError, AssertionError):
            with pytest.raises(error, match=message):
                a[index] = source
    np.testing.assert_array_equal(a.numpy(), ROWS)


def test_broadcast_views_are_not_written(device):
    source = nd.array([[1], [2]], device=device)
    b = source.broadcast_to((2, 3))
    message = r"\[setitem\] cannot write to a broadcast view.*compact\(\) it"
    for value in (9.0, nd.full((2, 3), 9.0, device=device)):
        with pytest.raises(ShapeError, match=message):
            b[:, :] = value
    b[0:1, 0:1] = 9  # one element, shared with its own row only
    np.testing.assert_array_equal(source.numpy(), [[9], [2]])


def test_other_devices_are_refused(device):
    other = nd.cpu_numpy() if device != nd.cpu_numpy() else nd.BackendDevice("second", device.mod)
    a = nd.array(ROWS, device=device)
    message = rf"\[setitem\] operands on {device.name}\(\) and {other.name}\(\); move one with "
    with pytest.raises(DeviceError, match=message):
        a[:, :] = nd.array(ROWS, device=other)


@pytest.mark.parametrize(
    "value", ["text", None, {1: 2}, 1j, np.zeros(4, complex), np.array("3"), ["a"]], ids=repr
)
def test_other_types_are_refused(device, value):
    a = nd.array(ROWS, device=device)
    message = r"\[setitem\] an operand is a|\[array\] values of type .* are not real numbers"
    with pytest.raises(DtypeError, match=message):
        a[0] = value
    np.testing.assert_array_equal(a.numpy(), ROWS)
