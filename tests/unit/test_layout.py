"""The pure functions of layout.py: shapes, strides, axes, slices, indices; compared with numpy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from needle.backend_ndarray import layout
from needle.errors import BroadcastError, IndexingError, ShapeError

SHAPES = [(), (1,), (5,), (0,), (2, 3), (1, 4), (4, 1), (0, 3), (3, 0), (2, 1, 3), (2, 3, 4, 5)]

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def numpy_strides(array):
    return tuple(stride // array.itemsize for stride in array.strides)


# --- shapes and strides ---


@pytest.mark.parametrize(
    ("given_shape", "shape"),
    [
        (5, (5,)),
        ((2, 3), (2, 3)),
        ([2, 3], (2, 3)),
        ((), ()),
        (np.array([2, 3]), (2, 3)),
        (np.int64(4), (4,)),
        (range(1, 3), (1, 2)),
    ],
    ids=str,
)
def test_as_shape(given_shape, shape):
    result = layout.as_shape(given_shape, "empty")
    assert result == shape
    assert all(type(size) is int for size in result)


@pytest.mark.parametrize("bad", [(2.0, 3), 1.5, "ab", None, (None,), ((1, 2), 3)], ids=repr)
def test_as_shape_refuses_what_is_not_integers(bad):
    with pytest.raises(ShapeError, match=r"\[empty\] .* is not a shape; give integers"):
        layout.as_shape(bad, "empty")


def test_as_shape_refuses_negative_sizes():
    with pytest.raises(ShapeError, match=r"\[full\] shape \(2, -1\) has a negative size"):
        layout.as_shape((2, -1), "full")


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape], ids=str)
def test_compact_strides(shape):
    assert layout.compact_strides(shape) == numpy_strides(np.empty(shape, np.float32))


def test_compact_strides_of_an_empty_shape_are_a_row_of_its_last_axes():
    assert layout.compact_strides((0, 3)) == (3, 1)
    assert layout.compact_strides((3, 0)) == (0, 1)


@pytest.mark.parametrize(
    ("shape", "strides", "answer"),
    [
        ((), (), True),
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), False),
        ((2, 3), (4, 1), False),
        ((2, 3), (6, 2), False),
        ((2, 3), (-3, 1), False),
        ((2, 3), (0, 1), False),
        ((1, 3), (77, 1), True),
        ((3, 1), (1, -5), True),
        ((3, 1, 2), (2, 9, 1), True),
        ((1, 1), (0, 0), True),
        ((0, 3), (8, 8), True),
    ],
)
def test_is_row_major(shape, strides, answer):
    assert layout.is_row_major(shape, strides) is answer


@given(data=st.data())
def test_view_bounds_are_the_ends_of_all_positions(data):
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4).map(tuple))
    strides = data.draw(st.tuples(*[st.integers(-5, 5)] * len(shape)))
    offset = data.draw(st.integers(-3, 30))
    positions = [
        offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    assert layout.view_bounds(shape, strides, offset) == (min(positions), max(positions))


# --- axes ---


@pytest.mark.parametrize(
    ("axes", "ndim", "normal"),
    [
        (None, 3, (0, 1, 2)),
        (None, 0, ()),
        (1, 3, (1,)),
        (-1, 3, (2,)),
        (-3, 3, (0,)),
        ((2, 0), 3, (0, 2)),
        ([-1, 0], 3, (0, 2)),
        ((), 3, ()),
        (np.int64(1), 2, (1,)),
        ({1}, 2, (1,)),
    ],
)
def test_normalize_axes(axes, ndim, normal):
    assert layout.normalize_axes(axes, ndim, "sum") == normal


@pytest.mark.parametrize(
    ("axes", "ndim", "error", "message"),
    [
        (2, 2, IndexingError, r"\[sum\] axis 2 is out of range for 2 axes"),
        (-3, 2, IndexingError, r"\[sum\] axis -3 is out of range for 2 axes"),
        (0, 0, IndexingError, r"\[sum\] axis 0 is out of range for 0 axes"),
        ((0, 5), 2, IndexingError, r"\[sum\] axis 5 is out of range"),
        ((0, 0), 2, ShapeError, r"\[sum\] an axis is repeated in \(0, 0\)"),
        ((1, -1), 2, ShapeError, r"\[sum\] an axis is repeated in \(1, -1\)"),
        (1.0, 2, ShapeError, r"\[sum\] axis 1.0 is not an integer"),
        ("a", 2, ShapeError, r"\[sum\] axis 'a' is not an integer"),
    ],
)
def test_normalize_axes_refuses(axes, ndim, error, message):
    with pytest.raises(error, match=message):
        layout.normalize_axes(axes, ndim, "sum")


@given(shape=shapes, keepdims=st.booleans(), data=st.data())
def test_reduced_shape_is_numpys(shape, keepdims, data):
    axes = data.draw(st.sets(st.integers(0, max(0, len(shape) - 1)), max_size=len(shape)))
    axes = tuple(sorted(axes)) if shape else ()
    want = np.zeros(shape).sum(axis=axes, keepdims=keepdims).shape
    assert layout.reduced_shape(shape, axes, keepdims) == want


# --- reshape ---


@pytest.mark.parametrize(
    ("shape", "target", "resolved"),
    [
        ((2, 3), (6,), (6,)),
        ((2, 3), (-1,), (6,)),
        ((2, 3), (3, -1), (3, 2)),
        ((2, 3), (-1, 6, 1), (1, 6, 1)),
        ((), (), ()),
        ((), (1, 1), (1, 1)),
        ((1,), (), ()),
        ((0, 3), (3, 0), (3, 0)),
        ((0, 3), (-1, 5), (0, 5)),
    ],
)
def test_resolve_reshape(shape, target, resolved):
    assert layout.resolve_reshape(shape, target) == resolved
    assert np.empty(shape).reshape(target).shape == resolved


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3), (5,)),
        ((2, 3), (4, -1)),
        ((2, 3), (-1, -1)),
        ((2, 3), (-2, -3)),
        ((2, 3), (2, 3, 0)),
        ((2, 3), (-1, 0)),
        ((2, 3), ()),
        ((0, 3), (-1, 0)),
        ((2, 3), (-6, -1)),
    ],
)
def test_resolve_reshape_refuses(shape, target):
    with pytest.raises(ShapeError, match=rf"\[reshape\] \({', '.join(map(str, shape))}\) has "):
        layout.resolve_reshape(shape, target)


@pytest.mark.parametrize("target", [(2.0, 3), ("a",), (None,)])
def test_resolve_reshape_refuses_what_is_not_integers(target):
    with pytest.raises(ShapeError, match=r"\[reshape\] .* is not a shape; give integers"):
        layout.resolve_reshape((2, 3), target)


# --- broadcasting ---


@given(a=shapes, b=shapes)
def test_broadcast_shapes_is_numpys(a, b):
    try:
        want = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(BroadcastError, match=r"\[add\] shapes .* do not fit"):
            layout.broadcast_shapes(a, b, "add")
    else:
        assert layout.broadcast_shapes(a, b, "add") == want


def test_broadcast_error_names_both_shapes_and_is_an_assertion_error_too():
    message = r"\[mul\] shapes \(2, 3\) and \(4,\) do not fit; sizes must be equal or 1"
    for error in (ShapeError, ValueError, AssertionError):
        with pytest.raises(error, match=message):
            layout.broadcast_shapes((2, 3), (4,), "mul")


@given(data=st.data())
def test_broadcast_strides_show_what_numpy_shows(data):
    shape = data.draw(st.lists(st.integers(1, 4), max_size=3).map(tuple))
    added = data.draw(st.lists(st.integers(0, 3), max_size=2).map(tuple))
    stretched = tuple(data.draw(st.integers(0, 4)) if size == 1 else size for size in shape)
    target, array = added + stretched, np.arange(np.prod(shape, dtype=int)).reshape(shape)
    strides = layout.broadcast_strides(shape, numpy_strides(array), target)
    shown = as_strided(array, target, [stride * array.itemsize for stride in strides])
    np.testing.assert_array_equal(shown, np.broadcast_to(array, target))


def test_broadcast_strides_keep_the_stride_of_an_axis_that_stays():
    assert layout.broadcast_strides((2, 1, 3), (3, 3, 1), (4, 2, 5, 3)) == (0, 3, 0, 1)
    assert layout.broadcast_strides((1, 3), (7, 1), (1, 3)) == (7, 1)


@pytest.mark.parametrize(
    ("shape", "target"),
    [((2, 3), (2, 4)), ((2, 3), (3,)), ((3,), (3, 1)), ((2,), (1,)), ((0,), (2,))],
)
def test_broadcast_strides_refuse(shape, target):
    message = r"\[setitem\] \(.*\) cannot become \(.*\); each size must be 1 or the target's"
    with pytest.raises(BroadcastError, match=message):
        layout.broadcast_strides(shape, layout.compact_strides(shape), target, "setitem")


# --- indices ---


def bound():
    return st.none() | st.integers(-9, 9)


@given(
    index=st.builds(slice, bound(), bound(), bound().filter(lambda step: step != 0)),
    size=st.integers(0, 7),
)
def test_normalized_slice_takes_what_python_takes(index, size):
    normal = layout.normalize_slice(index, size)
    want = list(range(size))[index]
    assert all(type(part) is int for part in (normal.start, normal.stop, normal.step))
    assert list(range(normal.start, normal.stop, normal.step)) == want
    assert layout.slice_length(normal) == len(want)


@given(index=st.integers(-9, 9), size=st.integers(0, 7))
def test_integer_becomes_the_slice_of_one_element(index, size):
    if -size <= index < size:
        assert list(range(size))[layout.normalize_slice(index, size)] == [range(size)[index]]
    else:
        with pytest.raises(
            IndexError,
            match=rf"\[getitem\] index {index} is out of range for axis 2 of size {size}",
        ):
            layout.normalize_slice(index, size, 2)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            slice(None, None, 0),
            r"slice\(None, None, 0\) is no slice for axis 1: .*zero",
        ),
        (slice(0.5, None), r"\[getitem\] slice\(0.5, None, None\) is no slice for axis 1"),
        (1.0, r"\[getitem\] cannot index axis 1 with a float; use integers and slices"),
        ("a", r"cannot index axis 1 with a str"),
        (None, r"cannot index axis 1 with a NoneType"),
        ([0, 1], r"cannot index axis 1 with a list"),
        (np.array([0, 1]), r"cannot index axis 1 with a ndarray"),
        (True, r"cannot index axis 1 with a bool"),
    ],
    ids=str,
)
def test_normalize_slice_refuses(index, message):
    with pytest.raises(IndexingError, match=message):
        layout.normalize_slice(index, 4, 1)


ALL = slice(None)


@pytest.mark.parametrize(
    ("index", "ndim", "expanded"),
    [
        (1, 3, (1, ALL, ALL)),
        ((), 2, (ALL, ALL)),
        ((), 0, ()),
        (..., 2, (ALL, ALL)),
        (..., 0, ()),
        ((..., 1), 3, (ALL, ALL, 1)),
        ((1, ...), 3, (1, ALL, ALL)),
        ((1, ..., 2), 3, (1, ALL, 2)),
        ((1, ..., 2), 2, (1, 2)),
        ((slice(1, 2), 0), 2, (slice(1, 2), 0)),
    ],
    ids=str,
)
def test_expand_index(index, ndim, expanded):
    assert layout.expand_index(index, ndim) == expanded


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((1, 2, 3), r"\[getitem\] 3 indices for 2 axes"),
        ((1, 2, 3, ...), r"\[getitem\] 3 indices for 2 axes"),
        ((..., 1, ...), r"\[getitem\] more than one \.\.\. in an index"),
    ],
    ids=str,
)
def test_expand_index_refuses(index, message):
    with pytest.raises(IndexingError, match=message):
        layout.expand_index(index, 2)
