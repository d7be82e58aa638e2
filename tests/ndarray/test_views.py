"""Views: shape, strides, offset and values are numpy's, one buffer serves all, no rank is lost."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from needle import backend_ndarray as nd
from needle.backend_ndarray.array_api import permute
from needle.errors import BroadcastError, IndexingError, ShapeError

# name: (shape of the source, what NDArray does, what numpy does)
VIEWS = {
    "reshape": ((4, 6), lambda a: a.reshape((2, 12)), lambda a: a.reshape((2, 12))),
    "reshape, several arguments": ((4, 6), lambda a: a.reshape(3, 8), lambda a: a.reshape(3, 8)),
    "reshape, -1": ((4, 6), lambda a: a.reshape((2, -1, 3)), lambda a: a.reshape((2, -1, 3))),
    "reshape to no axes": ((1, 1), lambda a: a.reshape(()), lambda a: a.reshape(())),
    "reshape, an int": ((4, 6), lambda a: a.reshape(24), lambda a: a.reshape(24)),
    "permute": ((2, 3, 4), lambda a: a.permute((2, 0, 1)), lambda a: a.transpose((2, 0, 1))),
    "permute, negative": (
        (2, 3, 4),
        lambda a: a.permute((-1, 0, 1)),
        lambda a: a.transpose(2, 0, 1),
    ),
    "permute, no axes": ((), lambda a: a.permute(()), lambda a: a.transpose()),
    "flip rows": ((3, 4), lambda a: a.flip((0,)), lambda a: np.flip(a, 0)),
    "flip, an int": ((3, 4), lambda a: a.flip(1), lambda a: np.flip(a, 1)),
    "flip both": ((3, 4), lambda a: a.flip((0, -1)), lambda a: np.flip(a)),
    "flip size 1": ((1, 4), lambda a: a.flip((0,)), lambda a: np.flip(a, 0)),
    "flip nothing": ((3, 4), lambda a: a.flip(()), lambda a: a),
    "flip twice": ((3, 4), lambda a: a.flip((0,)).flip((0,)), lambda a: a),
    "row": ((3, 4), lambda a: a[1], lambda a: a[1:2]),
    "last row": ((3, 4), lambda a: a[-1], lambda a: a[-1:]),
    "element": ((3, 4), lambda a: a[-1, 2], lambda a: a[-1:, 2:3]),
    "slices": ((6, 8), lambda a: a[1:5, 2:7], lambda a: a[1:5, 2:7]),
    "steps": ((6, 8), lambda a: a[::2, 1::3], lambda a: a[::2, 1::3]),
    "negative start": ((3, 4), lambda a: a[-2:, :], lambda a: a[-2:, :]),
    "negative start and stop": ((3, 4), lambda a: a[:, -3:-1], lambda a: a[:, -3:-1]),
    "beyond the end": ((3, 4), lambda a: a[1:99, -99:2], lambda a: a[1:99, -99:2]),
    "reversed": ((6, 8), lambda a: a[::-1, 6:1:-2], lambda a: a[::-1, 6:1:-2]),
    "integer and slice": ((3, 4), lambda a: a[-1, 1:3], lambda a: a[-1:, 1:3]),
    "slice and integer": ((3, 4), lambda a: a[:, 2], lambda a: a[:, 2:3]),
    "ellipsis": ((2, 3, 4), lambda a: a[..., 1:3], lambda a: a[..., 1:3]),
    "ellipsis between": ((2, 3, 4), lambda a: a[1, ..., 1], lambda a: a[1:2, ..., 1:2]),
    "everything": ((2, 3), lambda a: a[...], lambda a: a[...]),
    "numpy integer": ((3, 4), lambda a: a[np.int64(1)], lambda a: a[1:2]),
    "slice of a slice": ((9, 9), lambda a: a[1:8, 1:8][::2, 2], lambda a: a[1:8, 1:8][::2, 2:3]),
    "permuted slice": ((5, 6), lambda a: a[1:4].permute((1, 0)), lambda a: a[1:4].T),
    "slice of permuted": ((5, 6), lambda a: a.permute((1, 0))[2:4, ::2], lambda a: a.T[2:4, ::2]),
    "flipped slice": ((5, 6), lambda a: a[1:4, 2:].flip(1), lambda a: np.flip(a[1:4, 2:], 1)),
    "slice of flipped": ((5, 6), lambda a: a.flip((0, 1))[1:3, 4], lambda a: np.flip(a)[1:3, 4:5]),
    "broadcast": ((3, 1), lambda a: a.broadcast_to((3, 4)), lambda a: np.broadcast_to(a, (3, 4))),
    "broadcast, new axes": (
        (3,),
        lambda a: a.broadcast_to((2, 3)),
        lambda a: np.broadcast_to(a, (2, 3)),
    ),
    "broadcast a number": (
        (),
        lambda a: a.broadcast_to((2, 3)),
        lambda a: np.broadcast_to(a, (2, 3)),
    ),
    "slice of broadcast": (
        (3, 1),
        lambda a: a.broadcast_to((3, 4))[1:, ::2],
        lambda a: np.broadcast_to(a, (3, 4))[1:, ::2],
    ),
    "windows": (
        (4, 5),
        lambda a: a.as_strided((2, 3, 3, 3), (5, 1, 5, 1)),
        lambda a: as_strided(a, (2, 3, 3, 3), (20, 4, 20, 4)),
    ),
    "windows of a slice": (
        (4, 5),
        lambda a: a[1:].as_strided((2, 2), (5, 1)),
        lambda a: as_strided(a[1:], (2, 2), (20, 4)),
    ),
    "seven axes": (
        (2, 1, 3, 2, 1, 2, 2),
        lambda a: a.permute((6, 5, 4, 3, 2, 1, 0)),
        lambda a: a.transpose(),
    ),
}

EMPTY = {
    "empty slice": ((3, 4), lambda a: a[2:1], lambda a: a[2:1]),
    "empty slice at the end": ((3, 4), lambda a: a[3:, 4:], lambda a: a[3:, 4:]),
    "empty, reversed": ((3, 4), lambda a: a[0:2:-1], lambda a: a[0:2:-1]),
    "slice of nothing": ((0, 3), lambda a: a[:, 1:], lambda a: a[:, 1:]),
    "permute": ((0, 3), lambda a: a.permute((1, 0)), lambda a: a.T),
    "flip": ((0, 3), lambda a: a.flip((0, 1)), lambda a: np.flip(a)),
    "reshape": ((0, 3), lambda a: a.reshape((3, 0, 2)), lambda a: a.reshape((3, 0, 2))),
    "reshape, -1": ((0, 3), lambda a: a.reshape((-1, 3)), lambda a: a.reshape((-1, 3))),
    "broadcast": ((1, 3), lambda a: a.broadcast_to((0, 3)), lambda a: np.broadcast_to(a, (0, 3))),
}


def numbered(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def strides_that_matter(shape, strides):
    return [stride for size, stride in zip(shape, strides, strict=True) if size > 1]


@pytest.mark.parametrize("case", VIEWS)
def test_view_is_numpys(device, case):
    shape, of_needle, of_numpy = VIEWS[case]
    source = numbered(shape)
    a = nd.array(source, device=device)
    view, want = of_needle(a), of_numpy(source)
    np.testing.assert_array_equal(view.numpy(), want)
    assert view.shape == view._shape == want.shape
    assert view.ndim == want.ndim
    assert view.size == want.size
    assert view.device is a.device
    assert strides_that_matter(view.shape, view.strides) == strides_that_matter(
        want.shape, [stride // 4 for stride in want.strides]
    )
    # The same memory, from the same element on.
    assert view._handle is a._handle
    assert view._handle.ptr() == a._handle.ptr()
    if want.size:
        start = want.__array_interface__["data"][0] - source.__array_interface__["data"][0]
        assert view._offset == start // 4


@pytest.mark.parametrize("case", VIEWS)
def test_computing_with_a_view(device, case):
    """Each family of kernels reads the view's elements in its order."""
    shape, of_needle, of_numpy = VIEWS[case]
    view, want = of_needle(nd.array(numbered(shape), device=device)), of_numpy(numbered(shape))
    np.testing.assert_array_equal((view + view).numpy(), want + want)
    np.testing.assert_array_equal((view * 2).numpy(), want * 2)
    np.testing.assert_array_equal((-view).numpy(), -want)
    np.testing.assert_array_equal(view.sum().numpy(), want.sum())
    np.testing.assert_array_equal(view.max().numpy(), want.max())
    compacted = view.compact()
    assert compacted.is_compact()
    np.testing.assert_array_equal(compacted.numpy(), want)
    np.testing.assert_array_equal(compacted.reshape((want.size,)).numpy(), want.reshape(-1))


@pytest.mark.parametrize("case", [case for case in VIEWS if "broadcast" not in case])
def test_writing_to_a_view_writes_to_its_source(device, case):
    shape, of_needle, of_numpy = VIEWS[case]
    source = numbered(shape)
    a = nd.array(source, device=device)
    of_needle(a)[...] = -1.0
    of_numpy(source)[...] = -1.0
    np.testing.assert_array_equal(a.numpy(), source)


@pytest.mark.parametrize("case", EMPTY)
def test_view_without_elements(device, case):
    shape, of_needle, of_numpy = EMPTY[case]
    a = nd.array(numbered(shape), device=device)
    view, want = of_needle(a), of_numpy(numbered(shape))
    assert view.shape == want.shape
    assert view.numpy().shape == want.shape
    assert (view + 1).shape == want.shape
    assert view.sum().item() == 0
    assert view.compact().shape == want.shape
    view[...] = 5.0
    np.testing.assert_array_equal(a.numpy(), numbered(shape))


def test_source_is_unchanged_by_views(device):
    source = numbered((2, 3))
    a = nd.array(source, device=device)
    a.flip((0, 1)).compact()
    assert a.shape == (2, 3)
    assert a.strides == (3, 1)
    assert a._offset == 0
    np.testing.assert_array_equal(a.numpy(), source)


# --- the fields and functions that the course's tests read ---


def test_fields(device):
    a = nd.array(numbered((4, 6)), device=device)[1:, ::2]
    assert a._shape == a.shape == (3, 3)
    assert a._strides == a.strides == (6, 2)
    assert a._offset == 6
    assert a._device is a.device is device
    assert a._handle.size == 24
    for field in (a.shape, a.strides):
        assert type(field) is tuple
        assert all(type(entry) is int for entry in field)


def test_compact_strides_is_a_static_method():
    assert nd.NDArray.compact_strides((2, 3, 4)) == (12, 4, 1)
    assert nd.NDArray.compact_strides([5]) == (1,)
    assert nd.NDArray.compact_strides(()) == ()


def test_make_allocates_only_without_a_handle(device):
    a = nd.array(numbered((4, 6)), device=device)
    same = nd.NDArray.make((6, 4), device=device, handle=a._handle)
    assert same._handle is a._handle
    assert same.strides == (4, 1)
    part = nd.NDArray.make((2, 2), strides=(6, 1), device=device, handle=a._handle, offset=8)
    np.testing.assert_array_equal(part.numpy(), [[8, 9], [14, 15]])
    fresh = nd.NDArray.make((6, 4), device=device)
    assert fresh._handle is not a._handle
    assert fresh._handle.size == 24


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (5, 5)}, r"\[make\] view touches elements 0\.\.24 of a buffer of 24"),
        (
            {"shape": (2,), "offset": 23},
            r"\[make\] view touches elements 23\.\.24 of",
        ),
        ({"shape": (2,), "offset": -1}, r"\[make\] view touches elements -1\.\.0"),
        ({"shape": (2,), "strides": (-1,)}, r"\[make\] view touches elements -1\.\.0"),
        ({"shape": (2, 3), "strides": (1,)}, r"\[make\] 1 strides for 2 axes; give one each"),
        ({"shape": (-2, 3)}, r"\[make\] shape \(-2, 3\) has a negative size"),
        ({"shape": (1.5,)}, r"\[make\] \(1\.5,\) is not a shape"),
    ],
)
def test_make_refuses(device, arguments, message):
    handle = nd.array(numbered((24,)), device=device)._handle
    with pytest.raises(ShapeError, match=message):
        nd.NDArray.make(**arguments, device=device, handle=handle)


def test_as_strided_stays_in_the_buffer(device):
    a = nd.array(numbered((4, 5)), device=device)
    with pytest.raises(ShapeError, match=r"view touches elements 0\.\.20 of a buffer of 20"):
        a.as_strided((4, 6), (5, 1))
    with pytest.raises(ShapeError, match=r"view touches elements 5\.\.20"):
        a[1:].as_strided((4,), (5,))
    with pytest.raises(ShapeError, match=r"1 strides for 2 axes"):
        a.as_strided((2, 2), (1,))


def test_compact_is_itself_if_compact(device):
    a = nd.array(numbered((2, 3)), device=device)
    assert a.compact() is a
    assert a.reshape((3, 2)).compact()._handle is a._handle
    copied = a.permute((1, 0)).compact()
    assert copied._handle is not a._handle
    copied[0, 0] = 99.0
    np.testing.assert_array_equal(a.numpy(), numbered((2, 3)))


@pytest.mark.parametrize(
    ("shape", "view", "answer"),
    [
        ((2, 3), lambda a: a, True),
        ((2, 3), lambda a: a.reshape((3, 2)), True),
        ((2, 3), lambda a: a[:, :], True),
        ((2, 3), lambda a: a.permute((1, 0)), False),
        ((2, 3), lambda a: a[0:1, :], False),  # row-major, but not the whole buffer
        ((2, 3), lambda a: a[1:2, :], False),
        ((2, 3), lambda a: a[:, 0:2], False),
        ((2, 3), lambda a: a.flip(0), False),
        ((1, 3), lambda a: a.flip(0), True),
        ((1, 3), lambda a: a.permute((1, 0)), True),
        ((2, 1), lambda a: a.broadcast_to((2, 3)), False),
        ((2, 3), lambda a: a.broadcast_to((1, 2, 3)), True),
        ((1, 1), lambda a: a.broadcast_to((1, 1)), True),
        ((), lambda a: a, True),
        ((0, 3), lambda a: a, True),
        ((2, 3), lambda a: a[0:0], False),
    ],
)
def test_is_compact(device, shape, view, answer):
    seen = view(nd.array(numbered(shape), device=device))
    assert seen.is_compact() is answer
    assert seen.compact().is_compact()
    if not answer:
        assert seen.compact()._handle is not seen._handle


def test_flat_writes_through(device):
    a = nd.array(numbered((2, 3)), device=device)
    assert a.flat.shape == (6,)
    assert a.flat._handle.ptr() == a._handle.ptr()
    a.flat[4] += 10.0
    a.flat[-1] = -1.0
    np.testing.assert_array_equal(a.numpy(), [[0, 1, 2], [3, 14, -1]])
    assert a.flat[4].shape == (1,)
    assert a.flat[4].item() == 14


def test_flat_of_a_view_raises_rather_than_copy(device):
    with pytest.raises(ShapeError, match=r"not compact; call compact\(\) first"):
        nd.array(numbered((2, 3)), device=device).permute((1, 0)).flat  # noqa: B018


class Logged(nd.NDArray):
    """A subclass, as the course's tests make one to call process_slice."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("index", "explicit"),
    [
        (slice(1, 3), slice(1, 3, 1)),
        (slice(None), slice(0, 6, 1)),
        (slice(None, None, 2), slice(0, 6, 2)),
        (slice(-2, None), slice(4, 6, 1)),
        (slice(1, -1), slice(1, 5, 1)),
        (slice(2, 99), slice(2, 6, 1)),
        (3, slice(3, 4, 1)),
        (-1, slice(5, 6, 1)),
    ],
)
@pytest.mark.parametrize("kind", [nd.NDArray, Logged])
def test_process_slice(device, kind, index, explicit):
    a = kind(numbered((2, 6)), device=device)
    assert a.process_slice(index, 1) == explicit


# --- rank, length, iteration ---


def test_integers_keep_their_axis(device):
    """Rank never changes, whichever way an element is named."""
    a = nd.array(numbered((2, 3, 4)), device=device)
    for index in (0, -1, (0, 0), (0, 0, 0), (-1, -1, -1), (slice(None), 1), (0, slice(1), -1), ...):
        assert a[index].ndim == 3
    assert a[1, 2, 3].shape == a[-1, -1, -1].shape == (1, 1, 1)
    assert a[1, 2, 3].item() == a[-1, -1, -1].item() == 23
    assert a[0:1].shape == a[0].shape == a[-2].shape == (1, 3, 4)


def test_iteration(device):
    a = nd.array(numbered((3, 2)), device=device)
    assert len(a) == 3
    rows = list(a)
    assert [row.shape for row in rows] == [(1, 2)] * 3
    np.testing.assert_array_equal(rows[2].numpy(), [[4, 5]])
    assert list(nd.array(numbered((0, 2)), device=device)) == []


def test_length_needs_an_axis(device):
    with pytest.raises(ShapeError, match=r"\[len\] an array without axes has no length"):
        len(nd.array(1.0, device=device))


def test_array_without_axes(device):
    a = nd.array(3.5, device=device)
    assert a.shape == a.strides == ()
    assert a.size == 1
    assert a[()].item() == a[...].item() == a.flat[0].item() == 3.5
    assert a.reshape((1, 1)).shape == (1, 1)
    a[...] = 2.0
    assert a.item() == 2.0


# --- what is refused ---


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (3, IndexError, r"\[getitem\] index 3 is out of range for axis 0 of size 3"),
        (-4, IndexError, r"\[getitem\] index -4 is out of range for axis 0 of size 3"),
        ((0, 4), IndexError, r"\[getitem\] index 4 is out of range for axis 1 of size 4"),
        ((0, 0, 0), IndexError, r"\[getitem\] 3 indices for 2 axes"),
        ((..., 0, ...), IndexError, r"\[getitem\] more than one \.\.\."),
        (None, IndexingError, r"\[getitem\] cannot index axis 0 with a NoneType"),
        ([0, 1], IndexingError, r"\[getitem\] cannot index axis 0 with a list"),
        (1.0, IndexingError, r"\[getitem\] cannot index axis 0 with a float"),
        (True, IndexingError, r"\[getitem\] cannot index axis 0 with a bool"),
        (slice(None, None, 0), IndexingError, r"\[getitem\] .*zero"),
    ],
)
def test_index_is_refused(device, index, error, message):
    a = nd.array(numbered((3, 4)), device=device)
    with pytest.raises(error, match=message):
        a[index]
    with pytest.raises(error, match=message):
        a[index] = 1.0
    np.testing.assert_array_equal(a.numpy(), numbered((3, 4)))


def test_an_array_is_no_index(device):
    a = nd.array(numbered((3, 4)), device=device)
    with pytest.raises(IndexingError, match=r"cannot index axis 0 with a NDArray; use integers"):
        a[a > 3]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.permute((1, 0)),
        lambda a: a[:, 1:],
        lambda a: a[1:],
        lambda a: a.flip(0),
        lambda a: a[0:1].broadcast_to((2, 3)),
    ],
    ids=["permuted", "columns", "rows", "flipped", "broadcast"],
)
def test_reshape_of_a_view_raises_rather_than_copy(device, view):
    seen = view(nd.array(numbered((2, 3)), device=device))
    message = r"\[reshape\] a view of shape .* is not compact; call compact\(\)"
    for error in (ShapeError, ValueError):
        with pytest.raises(error, match=message):
            seen.reshape((seen.size,))
    want = seen.numpy().reshape(-1)
    np.testing.assert_array_equal(nd.reshape(seen, (seen.size,)).numpy(), want)  # this one copies


@pytest.mark.parametrize("shape", [(5,), (2, 2), (-1, -1), (4, -1), (-2, -3), (7, 0)])
def test_reshape_to_another_size_raises(device, shape):
    a = nd.array(numbered((2, 3)), device=device)
    message = r"\[reshape\] \(2, 3\) has 6 elements, \(.*\) has another number"
    with pytest.raises(ValueError, match=message):
        a.reshape(shape)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((0,), r"\[permute\] \(0,\) does not name each of 2 axes once"),
        ((), r"\[permute\] \(\) does not name each of 2 axes once"),
        ((0, 0), r"\[permute\] an axis is repeated in \(0, 0\)"),
        ((0, -2), r"\[permute\] an axis is repeated"),
        ((0, 2), r"\[permute\] axis 2 is out of range for 2 axes"),
        ((0, 1, 2), r"\[permute\] axis 2 is out of range for 2 axes"),
        ((0, 1.0), r"\[permute\] axis 1.0 is not an integer"),
    ],
)
def test_permute_refuses(device, axes, message):
    with pytest.raises(ShapeError, match=message):
        nd.array(numbered((2, 3)), device=device).permute(axes)


@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (3,), (2, 3, 1), (), (0, 3)])
def test_broadcast_to_another_shape_raises(device, shape):
    a = nd.array(numbered((2, 3)), device=device)
    for error in (ShapeError, AssertionError, BroadcastError):
        with pytest.raises(error, match=r"\[broadcast_to\] \(2, 3\) cannot become \("):
            a.broadcast_to(shape)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((2,), r"\[flip\] axis 2 is out of range for 2 axes"),
        ((0, 0), r"\[flip\] an axis is repeated in \(0, 0\)"),
        ("x", r"\[flip\] axis 'x' is not an integer"),
    ],
)
def test_flip_refuses(device, axes, message):
    with pytest.raises(ShapeError, match=message):
        nd.array(numbered((2, 3)), device=device).flip(axes)


# --- views that were once taken for contiguous ---


def test_broadcast_view_is_not_contiguous(device):
    b = nd.array([[1], [2]], device=device).broadcast_to((2, 3))
    np.testing.assert_array_equal(b.compact().numpy(), [[1, 1, 1], [2, 2, 2]])
    np.testing.assert_array_equal(nd.reshape(b, (6,)).numpy(), [1, 1, 1, 2, 2, 2])
    assert b.sum().item() == 9
    np.testing.assert_array_equal((b + b).numpy(), [[2, 2, 2], [4, 4, 4]])


def test_permuted_view_is_read_in_its_own_order(device):
    p = nd.array(numbered((2, 3)), device=device).permute((1, 0))
    np.testing.assert_array_equal(nd.reshape(p, (6,)).numpy(), [0, 3, 1, 4, 2, 5])
    np.testing.assert_array_equal(p.compact().flat.numpy(), [0, 3, 1, 4, 2, 5])
    assert p.sum().item() == 15
    assert p.max().item() == 5


def test_rows_with_an_offset_are_not_the_whole(device):
    rows = nd.array(numbered((2, 3)), device=device)
    np.testing.assert_array_equal((rows[1:2, :] + rows[0:1, :]).numpy(), [[3, 5, 7]])
    np.testing.assert_array_equal(rows[1:2, :].sum(axis=1).numpy(), [12])
    ones = nd.full((1, 2), 1.0, device=device)
    np.testing.assert_array_equal((rows[:, 2:3] @ ones).numpy(), [[2, 2], [5, 5]])


def test_flip_values(device):
    a = nd.array(numbered((2, 3)), device=device)
    np.testing.assert_array_equal(a.flip((0,)).numpy(), [[3, 4, 5], [0, 1, 2]])
    np.testing.assert_array_equal(a.flip((0, 1)).numpy(), [[5, 4, 3], [2, 1, 0]])
    np.testing.assert_array_equal(a.flip((0,)).sum(axis=1).numpy(), [12, 3])
    np.testing.assert_array_equal(nd.flip(nd.flip(a, (0, 1)), (0, 1)).numpy(), numbered((2, 3)))


def test_functions_are_the_methods(device):
    a = nd.array(numbered((2, 3)), device=device)
    assert permute(a, (1, 0)).strides == (1, 3)
    assert nd.broadcast_to(a, (4, 2, 3)).strides == (0, 3, 1)
    assert nd.flip(a, (1,)).strides == (3, -1)
    assert nd.reshape(a, (6,))._handle is a._handle
